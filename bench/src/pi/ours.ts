import { setTimeout as sleep } from 'node:timers/promises'
import { type PiDeskTurn, PiSandboxBroker } from '@sandbox/pi-broker'

// Pi brokers with every check on, in a process of their own: one for each channel.

type Asked =
  | { readonly open: readonly string[] }
  | { readonly bind: true }
  | { readonly play: true }
  | { readonly close: true }
  | { readonly memory: true }
  | { readonly usage: true }

const [upstream = ''] = process.argv.slice(2)
const MODEL = 'claude-host'
const open: PiSandboxBroker[] = []
let turns = 0

process.on('message', async (asked: Asked) => process.send?.(await answer(asked)))
process.on('disconnect', () => process.exit(0))
process.send?.({ ready: true })

async function answer(asked: Asked): Promise<object> {
  if ('open' in asked) await Promise.all(asked.open.map(openBroker))
  else if ('close' in asked) await Promise.all(open.splice(0).map((broker) => broker.stop()))
  else if ('play' in asked) await Promise.all(open.map(playTurn))
  else if ('bind' in asked) return { nonces: open.map((broker) => bind(broker).nonce) }
  else if ('memory' in asked) await collect()
  const { user, system } = process.cpuUsage()
  const { rss, heapUsed } = process.memoryUsage()
  return { cpuUs: user + system, rssBytes: rss, heapBytes: heapUsed }
}

async function openBroker(socketPath: string): Promise<void> {
  const broker = new PiSandboxBroker({
    model: MODEL,
    upstream,
    allowHttp: true,
    oauthToken: () => 'sk-ant-oat01-bench-0123456789abcdefghijklmnopqrstuv',
    maxCalls: 1000,
    onCall: () => {},
    onFailure: () => {},
  })
  open.push(broker)
  await broker.listen(socketPath)
}

/** What a channel that waits has behind it. */
async function playTurn(broker: PiSandboxBroker): Promise<void> {
  await broker.desk.ready()
  const { turnId, nonce, scope, release } = bind(broker)
  const turn: PiDeskTurn = {
    turnId,
    nonce,
    text: 'Hello',
    speaker: scope.speaker,
    profile: 'default',
    thinking: 'low',
    model: MODEL,
    timeZone: 'UTC',
    attachments: [],
    images: [],
    mcp: [],
  }
  await broker.desk.deliver(turn, { deadline: performance.now() + 60_000 })
  release()
}

function bind(broker: PiSandboxBroker) {
  turns += 1
  return broker.bind({
    channel: `bench:room-${turns}`,
    speaker: { id: `u-${turns}`, name: 'Ann' },
    profile: 'default',
    deadline: performance.now() + 600_000,
    signal: new AbortController().signal,
  })
}

/** What is left when everything that can go has gone. */
async function collect(): Promise<void> {
  if (globalThis.gc === undefined) throw new TypeError('bench: start this part with --expose-gc')
  for (let times = 0; times < 4; times += 1) {
    globalThis.gc()
    await sleep(100)
  }
}
