import { once } from 'node:events'
import { chmodSync, chownSync, mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { join } from 'node:path'
import { account } from './turn-start-lane.ts'

/** The smallest host that a Pi worker can say hello to and take turns from; its model answers "Hello." at once. */
export interface PiDesk extends AsyncDisposable {
  readonly socketPath: string
  readonly workspaceDir: string
  /** Resolves when the worker asks for its first turn. */
  readonly polled: Promise<void>
  /** Hands out a turn; resolves when its result is in, with the milliseconds to its first model call. */
  play(): Promise<number>
}

/** Listens in a new directory below `state`. */
export async function openPiDesk(state: string): Promise<PiDesk> {
  const place = mkdtempSync(join(state, 'w-'))
  const [runDir, workspaceDir] = [join(place, 'run'), join(place, 'work')]
  chmodSync(place, 0o711)
  for (const path of [runDir, workspaceDir]) mkdirSync(path, { mode: 0o700 })
  const socketPath = join(runDir, 'worker.sock')
  const desk = new Desk()
  const server = createServer((request, response) => void desk.serve(request, response))
  server.listen(socketPath)
  await once(server, 'listening')
  if (process.getuid?.() === 0) {
    for (const path of [runDir, workspaceDir, socketPath]) chownSync(path, account.uid, account.gid)
  }
  return {
    socketPath,
    workspaceDir,
    polled: desk.polled,
    play: () => desk.play(),
    async [Symbol.asyncDispose]() {
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
      rmSync(place, { recursive: true, force: true })
    },
  }
}

class Desk {
  readonly polled: Promise<void>
  #poll = () => {}
  #waiting: ServerResponse | undefined
  #turns = 0
  #handedAt = 0
  #calledAt = 0
  #finish: (() => void) | undefined

  constructor() {
    this.polled = new Promise((resolve) => {
      this.#poll = resolve
    })
  }

  async play(): Promise<number> {
    while (this.#waiting === undefined) await new Promise((resolve) => setTimeout(resolve, 5))
    const finished = new Promise<void>((resolve) => {
      this.#finish = resolve
    })
    const response = this.#waiting
    this.#waiting = undefined
    this.#turns += 1
    this.#calledAt = 0
    this.#handedAt = performance.now()
    answer(response, turn(this.#turns))
    await finished
    return this.#calledAt - this.#handedAt
  }

  async serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const path = (request.url ?? '').replace(/\?.*$/, '')
    if (path === '/anthropic/v1/messages' && this.#calledAt === 0) this.#calledAt = performance.now()
    for await (const _chunk of request);
    switch (path) {
      case '/worker/hello':
        return answer(response, { protocol: 1, workerNonce: 'bench-nonce-0123456789', tools: [], mcp: [] })
      case '/worker/next':
        this.#waiting = response
        return this.#poll()
      case '/anthropic/v1/messages':
        response.writeHead(200, { 'content-type': 'text/event-stream' }).end(HELLO)
        return
      case '/worker/result':
        answer(response, {})
        return this.#finish?.()
      default:
        return answer(response, {})
    }
  }
}

function turn(count: number) {
  return {
    protocol: 1,
    turnId: `turn-${count}`,
    nonce: `bench-turn-nonce-${count}`,
    remainingMs: 60_000,
    text: 'Hello',
    speaker: { id: 'u-1', name: 'Ann' },
    profile: 'default',
    thinking: 'low',
    model: 'claude-sonnet-4-5',
    timeZone: 'UTC',
    attachments: [],
    images: [],
    mcp: [],
  }
}

const usage = { input_tokens: 1, output_tokens: 1 }
const HELLO = [
  {
    type: 'message_start',
    message: {
      id: 'm',
      type: 'message',
      role: 'assistant',
      model: 'm',
      content: [],
      stop_reason: null,
      usage,
    },
  },
  { type: 'content_block_start', index: 0, content_block: { type: 'text', text: '' } },
  { type: 'content_block_delta', index: 0, delta: { type: 'text_delta', text: 'Hello.' } },
  { type: 'content_block_stop', index: 0 },
  { type: 'message_delta', delta: { stop_reason: 'end_turn', stop_sequence: null }, usage },
  { type: 'message_stop' },
]
  .map((event) => `event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`)
  .join('')

function answer(response: ServerResponse, body: unknown): void {
  response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(body))
}
