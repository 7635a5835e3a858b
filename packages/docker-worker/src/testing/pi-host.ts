import { once } from 'node:events'
import { chmodSync, chownSync, mkdirSync } from 'node:fs'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import {
  type PiOutcome,
  type PiProgress,
  type PiTurn,
  type PiWelcome,
  type PiWorkerConfig,
  PROTOCOL_VERSION,
  readPiProgress,
  readPiResult,
  SOCKET_NAME,
} from '@sandbox/protocol'
import { tempDir } from '@sandbox/testing'
import { messageEvents, type ScriptedPart } from './messages-stream.ts'
import { testUser } from './worker-bench.ts'

/** One model call, as it arrived. */
export interface ModelCall {
  readonly nonce: string
  readonly headers: IncomingMessage['headers']
  readonly body: { readonly messages: readonly unknown[]; readonly system?: unknown } & Record<
    string,
    unknown
  >
}

/** One tool call, as it arrived. */
export interface ToolCallSeen {
  readonly path: string
  readonly nonce: string
  readonly body: Record<string, unknown>
}

/** What the model answers: parts, a refusal, parts with a pause before each event or with a large context. */
export type ModelAnswer =
  | readonly ScriptedPart[]
  | { readonly status: number; readonly json: unknown; readonly headers?: Readonly<Record<string, string>> }
  | { readonly parts: readonly ScriptedPart[]; readonly everyMs?: number; readonly inputTokens?: number }
  | 'hang'

/** What a {@link PiHost} is told. */
export interface PiHostOptions {
  readonly tools?: PiWelcome['tools']
  readonly mcp?: PiWelcome['mcp']
  model(call: ModelCall, index: number): ModelAnswer | Promise<ModelAnswer>
  /** The JSON of an answer on `/tools/`, `/mcp/` and `/compaction/`; without one it is 404. */
  tool?(call: ToolCallSeen): unknown
  readonly config?: PiWorkerConfig
  /** What becomes of the n-th poll: a broken connection, a status, or as usual. */
  poll?(index: number): 'break' | number | undefined
}

/** A small real host for one Pi worker: a desk for many turns and a scripted Messages service, on one Unix socket. */
export interface PiHost extends AsyncDisposable {
  readonly socketPath: string
  readonly runDir: string
  readonly workspace: string
  readonly modelCalls: readonly ModelCall[]
  readonly toolCalls: readonly ToolCallSeen[]
  readonly progress: readonly PiProgress[]
  /** Resolves with the body of the worker's hello; anew after {@link expectWorker}. */
  hello(): Promise<Record<string, unknown>>
  /** Resolves when a worker first asks for a turn. */
  polled(): Promise<void>
  /** Another worker says hello from now on. */
  expectWorker(): void
  /** Hands out a turn and waits for its outcome. */
  play(changes?: Partial<PiTurn>): Promise<PiOutcome>
  /** Tells the worker with its next sign of life that the turn is over. */
  callOff(): void
}

let turns = 0

/** A turn with every field, some of them replaced. */
function samplePiTurn(changes: Partial<PiTurn> = {}): PiTurn {
  turns += 1
  return {
    protocol: PROTOCOL_VERSION,
    turnId: `turn-${turns}`,
    nonce: `turn-nonce-${String(turns).padStart(8, '0')}`,
    remainingMs: 60_000,
    text: 'Hello',
    speaker: { id: 'u-ann', name: 'Ann' },
    profile: 'default',
    thinking: 'low',
    model: 'claude-sonnet-4-5',
    timeZone: 'Europe/Berlin',
    attachments: [],
    images: [],
    mcp: [],
    ...changes,
  }
}

/** Listens on a fresh socket. */
export async function openPiHost(options: PiHostOptions): Promise<PiHost> {
  const host = new ScriptedPiHost(options, makePlace())
  await host.listen()
  return host
}

function makePlace(): Pick<PiHost, 'runDir' | 'workspace'> & Disposable {
  const directory = tempDir()
  chmodSync(directory.path, 0o711)
  const [runDir, workspace] = [join(directory.path, 'run'), join(directory.path, 'work')]
  for (const path of [runDir, workspace]) {
    mkdirSync(path, { mode: 0o700 })
    giveToWorker(path)
  }
  return { runDir, workspace, [Symbol.dispose]: () => directory[Symbol.dispose]() }
}

function giveToWorker(path: string): void {
  const { uid, gid } = testUser()
  if (process.getuid?.() === 0) chownSync(path, uid, gid)
}

class ScriptedPiHost implements PiHost {
  readonly runDir: string
  readonly workspace: string
  readonly socketPath: string
  readonly modelCalls: ModelCall[] = []
  readonly toolCalls: ToolCallSeen[] = []
  readonly progress: PiProgress[] = []
  readonly #options: PiHostOptions
  readonly #place: Disposable
  readonly #server = createServer((request, response) => void this.#serve(request, response))
  #hello = Promise.withResolvers<Record<string, unknown>>()
  #polled = Promise.withResolvers<void>()
  #pending: { turn: PiTurn; acked: boolean; done: (outcome: PiOutcome) => void } | undefined
  #waiter: (() => void) | undefined
  #over = false
  #polls = 0

  constructor(options: PiHostOptions, place: ReturnType<typeof makePlace>) {
    this.#options = options
    this.#place = place
    this.runDir = place.runDir
    this.workspace = place.workspace
    this.socketPath = join(place.runDir, SOCKET_NAME)
  }

  async listen(): Promise<void> {
    this.#server.listen(this.socketPath)
    await once(this.#server, 'listening')
    giveToWorker(this.socketPath)
  }

  hello(): Promise<Record<string, unknown>> {
    return this.#hello.promise
  }

  polled(): Promise<void> {
    return this.#polled.promise
  }

  expectWorker(): void {
    this.#hello = Promise.withResolvers()
    this.#polled = Promise.withResolvers()
    this.#pending = undefined
    this.#waiter = undefined
  }

  callOff(): void {
    this.#over = true
  }

  play(changes: Partial<PiTurn> = {}): Promise<PiOutcome> {
    this.#over = false
    return new Promise((done) => {
      this.#pending = { turn: samplePiTurn(changes), acked: false, done }
      this.#waiter?.()
    })
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#server.closeAllConnections()
    await new Promise((resolve) => this.#server.close(resolve))
    this.#place[Symbol.dispose]()
  }

  async #serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const chunks: Buffer[] = []
    for await (const chunk of request) chunks.push(chunk)
    const text = Buffer.concat(chunks).toString()
    const body = text === '' ? {} : JSON.parse(text)
    const path = (request.url ?? '').replace(/\?.*$/, '')
    const nonce = String(request.headers['x-sandbox-turn'] ?? '')
    if (path.startsWith('/worker/')) return this.#desk(path, body, response)
    if (nonce !== this.#pending?.turn.nonce) return answer(response, 410, { error: { code: 'turn_over' } })
    if (path === '/anthropic/v1/messages') {
      const call = { nonce, headers: request.headers, body }
      this.modelCalls.push(call)
      return say(response, await this.#options.model(call, this.modelCalls.length - 1))
    }
    const call = { path, nonce, body }
    this.toolCalls.push(call)
    const reply = await this.#options.tool?.(call)
    return answer(response, reply === undefined ? 404 : 200, reply ?? {})
  }

  async #desk(path: string, body: Record<string, unknown>, response: ServerResponse): Promise<void> {
    const pending = this.#pending
    switch (path) {
      case '/worker/hello': {
        const { tools = [], mcp = [] } = this.#options
        answer(response, 200, {
          protocol: PROTOCOL_VERSION,
          workerNonce: 'worker-nonce-0123456789',
          tools,
          mcp,
        })
        return this.#hello.resolve(body)
      }
      case '/worker/next': {
        this.#polled.resolve()
        const fate = this.#options.poll?.(this.#polls++)
        if (fate === 'break') return void response.socket?.destroy()
        if (fate !== undefined) return answer(response, fate, { error: { code: 'x', message: 'x' } })
        if (pending === undefined || pending.acked) {
          await new Promise<void>((resolve) => {
            this.#waiter = resolve
          })
        }
        return answer(response, 200, this.#pending?.turn)
      }
      case '/worker/ack':
        if (pending) pending.acked = true
        return answer(response, 200, {})
      case '/worker/config':
        return answer(response, this.#options.config === undefined ? 404 : 200, this.#options.config ?? {})
      case '/worker/heartbeat':
        return answer(response, 200, { over: this.#over })
      case '/worker/progress': {
        const piece = readPiProgress(body)
        if (piece) this.progress.push(piece)
        return answer(response, piece ? 200 : 400, {})
      }
      case '/worker/result': {
        const result = readPiResult(body)
        answer(response, result ? 200 : 400, {})
        if (result) pending?.done(result.result)
        return
      }
      default:
        return answer(response, 404, {})
    }
  }
}

function answer(
  response: ServerResponse,
  status: number,
  json: unknown,
  headers: Readonly<Record<string, string>> = {},
): void {
  response.writeHead(status, { 'content-type': 'application/json', ...headers }).end(JSON.stringify(json))
}

async function say(response: ServerResponse, reply: ModelAnswer): Promise<void> {
  if (reply === 'hang') return
  if ('status' in reply) return answer(response, reply.status, reply.json, reply.headers)
  const { parts, everyMs = 0, inputTokens } = 'parts' in reply ? reply : { parts: reply }
  response.writeHead(200, { 'content-type': 'text/event-stream' })
  for (const event of messageEvents(parts, inputTokens)) {
    if (everyMs > 0) await pause(everyMs)
    response.write(event)
  }
  response.end()
}
