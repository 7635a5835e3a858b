import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { PROTOCOL_VERSION, type SealedOutcome, type SealedTurn } from '@sandbox/protocol'
import { tempDir } from '@sandbox/testing'

/** One request of the worker, as it arrived. */
export interface SeenCall {
  readonly method: string
  readonly path: string
  readonly headers: IncomingMessage['headers']
  readonly headerNames: readonly string[]
  readonly body: Record<string, unknown>
  /** Counts the connections of this host, from 1. */
  readonly connection: number
}

/** A JSON answer, a text that need not be JSON, or a connection that breaks. */
export type HostAnswer =
  | { readonly status?: number; readonly json: unknown }
  | { readonly status?: number; readonly text: string }
  | 'break'

/** Answers one request; `index` counts the requests of its path from 0. */
export type HostScript = (call: SeenCall, index: number) => HostAnswer | Promise<HostAnswer>

/** A small real host on a real Unix socket, for one worker. */
export interface WorkerHost extends AsyncDisposable {
  readonly socketPath: string
  /** An empty directory for the worker's workspace. */
  readonly workspace: string
  readonly seen: readonly SeenCall[]
  /** The bodies of all requests to a path. */
  bodies(path: string): Record<string, unknown>[]
  /** The outcome that the worker handed in. */
  outcome(): SealedOutcome
}

/** A turn with every field, some of them replaced. */
export function sampleTurn(changes: Partial<SealedTurn> = {}): SealedTurn {
  return {
    protocol: PROTOCOL_VERSION,
    turnId: 'turn-1',
    nonce: 'turn-nonce-0123456789',
    remainingMs: 60_000,
    text: 'Hello',
    speaker: { id: 'u-ann', name: 'Ann' },
    model: 'some-model',
    timeZone: 'Europe/Berlin',
    reset: false,
    tools: [],
    mcp: [],
    ...changes,
  }
}

/** A chat completion whose message is this. */
export function completion(message: Record<string, unknown>): HostAnswer {
  return { json: { choices: [{ index: 0, message: { role: 'assistant', ...message } }] } }
}

/** A chat completion that calls tools: name, arguments, id. */
export function toolCalls(...calls: readonly (readonly [string, unknown, unknown?])[]): HostAnswer {
  return completion({
    content: null,
    tool_calls: calls.map(([name, input, id], index) => ({
      id: id === undefined ? `id-${index}` : id,
      type: 'function',
      function: { name, arguments: typeof input === 'string' ? input : JSON.stringify(input) },
    })),
  })
}

/**
 * Listens on a fresh socket. `scripts` replaces the answers by path (`/tools/` for all tools); by default the host
 * greets, hands out `turn`, acknowledges, lets the model say "Hi." and takes the result.
 */
export async function openWorkerHost(options: {
  readonly turn?: SealedTurn
  readonly scripts?: Readonly<Record<string, HostScript>>
}): Promise<WorkerHost> {
  const { turn = sampleTurn() } = options
  const directory = tempDir()
  const workspace = tempDir()
  const socketPath = `${directory.path}/worker.sock`
  const seen: SeenCall[] = []
  const scripts: Record<string, HostScript> = {
    '/worker/hello': () => ({ json: { protocol: PROTOCOL_VERSION, workerNonce: 'worker-nonce-0123456789' } }),
    '/worker/next': () => ({ json: turn }),
    '/worker/ack': () => ({ json: {} }),
    '/worker/result': () => ({ json: {} }),
    '/model': () => completion({ content: 'Hi.' }),
    ...options.scripts,
  }
  let connections = 0
  const numbers = new WeakMap<object, number>()
  const server = createServer((request, response) => {
    void serve(request, response, numbers.get(request.socket) ?? 0)
  })
  const serve = async (request: IncomingMessage, response: ServerResponse, connection: number) => {
    const call = await readCall(request, connection)
    const key = call.path.startsWith('/tools/') && scripts[call.path] === undefined ? '/tools/' : call.path
    const index = seen.filter(({ path }) => path === call.path).length
    seen.push(call)
    const script = scripts[key] ?? (() => ({ status: 404, json: {} }))
    write(response, await script(call, index))
  }
  server.on('connection', (socket) => {
    connections += 1
    numbers.set(socket, connections)
  })
  server.listen(socketPath)
  await once(server, 'listening')
  const bodies = (path: string) => seen.filter((call) => call.path === path).map(({ body }) => body)
  return {
    socketPath,
    workspace: workspace.path,
    seen,
    bodies,
    outcome: () => bodies('/worker/result').at(-1)?.result as SealedOutcome,
    [Symbol.asyncDispose]: async () => {
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
      directory[Symbol.dispose]()
      workspace[Symbol.dispose]()
    },
  }
}

async function readCall(request: IncomingMessage, connection: number): Promise<SeenCall> {
  const chunks: Buffer[] = []
  for await (const chunk of request) chunks.push(chunk)
  const text = Buffer.concat(chunks).toString()
  return {
    method: request.method ?? '',
    path: request.url ?? '',
    headers: request.headers,
    headerNames: request.rawHeaders.filter((_, index) => index % 2 === 0),
    body: text === '' ? {} : JSON.parse(text),
    connection,
  }
}

function write(response: ServerResponse, answer: HostAnswer): void {
  if (answer === 'break') {
    response.socket?.destroy()
    return
  }
  const text = 'text' in answer ? answer.text : JSON.stringify(answer.json)
  response.writeHead(answer.status ?? 200, {
    'content-type': 'application/json',
    'content-length': Buffer.byteLength(text),
  })
  response.end(text)
}
