import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Driver, WorkerExit } from '@sandbox/docker-worker'
import { PiSandboxRuntime } from '@sandbox/roundtable-plugin'

// A host that keeps a Pi worker for each of its channels. What it starts are sockets: the workers are in another process.

type Asked =
  | { readonly begin: number }
  | { readonly finish: true }
  | { readonly stop: true }
  | { readonly memory: true }
  | { readonly usage: true }

const [partyDir = ''] = process.argv.slice(2)
const sockets: string[] = []
const runtime = new PiSandboxRuntime({
  partyDir,
  profiles: { default: {} },
  model: 'claude-host',
  oauthToken: () => 'sk-ant-oat01-bench-0123456789abcdefghijklmnopqrstuv',
  onCall: () => {},
  onFailure: () => {},
  onTurn: () => {},
  driver: elsewhere,
  ...(process.getuid?.() === 0 ? { uid: 64_200, gid: 64_200 } : {}),
})
const turns = new Map<`bench:${string}`, ReturnType<PiSandboxRuntime['runTurn']>>()
let count = 0

process.on('message', async (asked: Asked) => process.send?.(await answer(asked)))
process.on('disconnect', () => process.exit(0))
process.send?.({ ready: true })

async function answer(asked: Asked): Promise<object> {
  if ('begin' in asked) return { sockets: await begin(asked.begin) }
  if ('finish' in asked) await finish()
  else if ('stop' in asked) await stop()
  else if ('memory' in asked) await collect()
  const { user, system } = process.cpuUsage()
  const { rss, heapUsed } = process.memoryUsage()
  return { cpuUs: user + system, rssBytes: rss, heapBytes: heapUsed }
}

/** So many new channels get a message; the sockets of their workers. */
async function begin(channels: number): Promise<string[]> {
  for (let at = 0; at < channels; at += 1) {
    count += 1
    const speaker = { id: `u-${count}`, name: 'Ann' }
    const channel = `bench:${count}` as const
    turns.set(channel, runtime.runTurn({ channel, profile: 'default', speaker, text: 'Hello' }))
  }
  while (sockets.length < channels) await sleep(10)
  return sockets.splice(0)
}

async function finish(): Promise<void> {
  for (const reply of await Promise.all(turns.values())) {
    if (!reply.ok) throw new TypeError(`bench: a turn failed: ${reply.text}`)
  }
}

async function stop(): Promise<void> {
  await Promise.all([...turns.keys()].map((channel) => runtime.stop(channel)))
  turns.clear()
}

/** What is left when everything that can go has gone. */
async function collect(): Promise<void> {
  if (globalThis.gc === undefined) throw new TypeError('bench: start this part with --expose-gc')
  for (let times = 0; times < 4; times += 1) {
    globalThis.gc()
    await sleep(100)
  }
}

function elsewhere(): Driver {
  return {
    kind: 'process',
    isolation: 'none',
    check: async () => {},
    verify: () => [],
    sweep: async () => [],
    start: async ({ workerId, runDir }) => {
      sockets.push(join(runDir, 'worker.sock'))
      const { promise: exited, resolve } = Promise.withResolvers<WorkerExit>()
      const remove = async () => resolve({ reason: 'killed' })
      return { id: workerId, workerId, exited, output: () => '', remove }
    },
    [Symbol.asyncDispose]: async () => {},
  }
}
