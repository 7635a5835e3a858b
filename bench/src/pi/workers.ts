import { Agent, request } from 'node:http'
import { type PiTurn, type PiWelcome, WORKER_NONCE_HEADER, type WorkerHello } from '@sandbox/protocol'

// Workers that say hello, answer every turn at once and ask for the next one: all of them in one process.

let working = 0
let polls = 0

process.on('message', async (asked: { work?: readonly string[] }) => {
  await Promise.all((asked.work ?? []).map(begin))
  process.send?.({ working, polls })
})
process.on('disconnect', () => process.exit(0))
process.send?.({ ready: true })

type Send = <T>(path: string, body?: object) => Promise<{ status: number; json: T }>

/** Resolves once it is let in; then it works until its host has no more turns. */
async function begin(socketPath: string): Promise<void> {
  const headers: Record<string, string> = {}
  const agent = new Agent({ keepAlive: true, maxSockets: 1 })
  const send: Send = (path, body) =>
    new Promise((resolve, reject) => {
      const method = body === undefined ? 'GET' : 'POST'
      const sent = request({ agent, socketPath, path, method, headers: { host: 'broker', ...headers } })
      sent.on('error', reject).on('response', async (response) => {
        const chunks: Buffer[] = []
        for await (const chunk of response) chunks.push(chunk as Buffer)
        resolve({ status: response.statusCode ?? 0, json: JSON.parse(Buffer.concat(chunks).toString()) })
      })
      sent.end(body === undefined ? undefined : JSON.stringify(body))
    })
  const { status, json } = await send<PiWelcome>('/worker/hello', HELLO)
  if (status !== 200) throw new TypeError(`bench: a hello was answered ${status}`)
  headers[WORKER_NONCE_HEADER] = json.workerNonce
  working += 1
  work(send).catch(() => {
    working -= 1
    agent.destroy()
  })
}

async function work(send: Send): Promise<void> {
  for (;;) {
    const { status, json } = await send<PiTurn>('/worker/next')
    if (status === 408) polls += 1
    else if (status !== 200) throw new TypeError(`bench: a poll was answered ${status}`)
    else {
      const { turnId } = json
      await send('/worker/ack', { turnId })
      await send('/worker/result', { turnId, result: { ok: true, text: 'Hello.', files: [] } })
    }
  }
}

const HELLO: WorkerHello = {
  protocol: 1,
  mode: 'pi',
  posture: {
    runtime: 'node 24',
    uid: 1000,
    gid: 1000,
    groups: [],
    capabilities: { inheritable: '0', permitted: '0', effective: '0', bounding: '0', ambient: '0' },
    noNewPrivs: true,
    seccomp: 2,
    interfaces: ['lo'],
    routes: [],
    rootReadOnly: true,
    mounts: [],
    environment: ['PATH'],
    namespaces: [],
  },
}
