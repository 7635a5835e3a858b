import type { IncomingMessage, OutgoingHttpHeaders, ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { BROKER_HOST, RUN_DIR, SOCKET_NAME, TURN_NONCE_HEADER } from '@sandbox/protocol'

// Not by `import`: that reads every export of the module, and one of them loads Node's whole WebSocket: 30 ms.
const { Agent, createServer, request } = process.getBuiltinModule('node:http')

/** What {@link openLoopbackForwarder} may be told. */
export interface ForwarderOptions {
  /** Default `/run/sandbox/worker.sock`. */
  readonly socketPath?: string
  /** Port of 127.0.0.1; default 0, which lets the kernel choose. */
  readonly port?: number
}

/** The loopback address of one turn. */
export interface ForwardedTurn {
  /** Such as `http://127.0.0.1:4711/t/<random>`, without a slash at its end: what a client takes for its base URL. */
  readonly baseUrl: string
  /** The host's last answer said that the same call will not do better (`x-should-retry: false`). */
  readonly refusedForGood: boolean
  /** Ends the turn's address: calls in flight are cut on both sides, later ones are answered 410. Idempotent. */
  close(): void
}

/** A loopback port in the container that leads to the host's Unix socket. */
export interface LoopbackForwarder extends AsyncDisposable {
  readonly port: number
  /**
   * Gives a turn its own address (decision 3). Calls through it carry this nonce and no other, so that what is left of
   * one turn cannot spend another's. Throws `TypeError` for a nonce that no header can carry.
   */
  open(nonce: string): ForwardedTurn
}

/** The host takes 16 connections from a worker; some are for the worker's own calls. */
const HOST_CONNECTIONS = 12
const CLIENT_CONNECTIONS = 64
/** The host reads heads of this size too. */
const MAX_HEAD_BYTES = 16 * 1024
/** How many ended turns are told from paths that never were. */
const ENDED_TURNS = 256

const TARGET = /^\/t\/([A-Za-z0-9_-]{22})(\/.*)$/
const NONCE = /^[\x21-\x7e]{1,256}$/
/** Only about the connection between two ends. Other words in `connection` pass: the host refuses them. */
const OWN_CONNECTION = /^\s*(keep-alive|close)\s*$/i

/**
 * Listens on 127.0.0.1 and passes HTTP on to the host's Unix socket, bodies as they come, breaks and aborts in both
 * directions. Nothing is added but the turn's nonce and `host: broker`, nothing is taken away but what concerns the
 * connection alone: every check is the host's. Rejects with the listener's error, such as `EADDRINUSE`.
 */
export async function openLoopbackForwarder(options: ForwarderOptions = {}): Promise<LoopbackForwarder> {
  const { socketPath = `${RUN_DIR}/${SOCKET_NAME}`, port = 0 } = options
  const agent = new Agent({ keepAlive: true, maxSockets: HOST_CONNECTIONS })
  const turns = new TurnPaths()
  const serve = (incoming: IncomingMessage, response: ServerResponse) => {
    const [, id = '', path = ''] = TARGET.exec(incoming.url ?? '') ?? []
    const turn = turns.find(id)
    if (turn === undefined) return refuse(incoming, response, 404, 'not_found', 'There is no such path.')
    if (turn === 'over') return refuse(incoming, response, 410, 'turn_over', 'This turn is over.')
    forward({ incoming, response, path, turn, wire: { socketPath, agent } })
  }
  const server = createServer({ maxHeaderSize: MAX_HEAD_BYTES, requireHostHeader: false, requestTimeout: 0 })
  server.maxConnections = CLIENT_CONNECTIONS
  server.on('request', serve)
  // Without these, a body would be invited, or an expectation answered, before the host has seen the request.
  server.on('checkContinue', serve)
  server.on('checkExpectation', serve)
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject)
    server.listen(port, '127.0.0.1', () => {
      server.removeListener('error', reject)
      resolve()
    })
  })
  const bound = (server.address() as AddressInfo).port
  return {
    port: bound,
    open: (nonce) => turns.open(nonce, `http://127.0.0.1:${bound}`),
    [Symbol.asyncDispose]: async () => {
      turns.closeAll()
      agent.destroy()
      const closed = new Promise((resolve) => server.close(resolve))
      server.closeAllConnections()
      await closed
    },
  }
}

/** A turn whose address is open. */
interface OpenTurn {
  readonly nonce: string
  refusedForGood: boolean
  /** Cuts each call in flight. */
  readonly calls: Set<() => void>
}

/** Which path belongs to which turn. Of turns that are over, the last few are known. */
class TurnPaths {
  readonly #open = new Map<string, OpenTurn>()
  readonly #over = new Set<string>()

  find(id: string): OpenTurn | 'over' | undefined {
    return this.#open.get(id) ?? (this.#over.has(id) ? 'over' : undefined)
  }

  open(nonce: string, origin: string): ForwardedTurn {
    if (!NONCE.test(nonce)) throw new TypeError('A turn nonce is 1 to 256 printable characters.')
    const id = Buffer.from(crypto.getRandomValues(new Uint8Array(16))).toString('base64url')
    const turn: OpenTurn = { nonce, refusedForGood: false, calls: new Set() }
    this.#open.set(id, turn)
    return {
      baseUrl: `${origin}/t/${id}`,
      get refusedForGood() {
        return turn.refusedForGood
      },
      close: () => this.#close(id),
    }
  }

  closeAll(): void {
    for (const id of [...this.#open.keys()]) this.#close(id)
  }

  #close(id: string): void {
    const turn = this.#open.get(id)
    if (turn === undefined) return
    this.#open.delete(id)
    this.#over.add(id)
    for (const oldest of this.#over) {
      if (this.#over.size <= ENDED_TURNS) break
      this.#over.delete(oldest)
    }
    for (const cut of [...turn.calls]) cut()
  }
}

/** One request on its way. */
interface ForwardCall {
  readonly incoming: IncomingMessage
  readonly response: ServerResponse
  readonly path: string
  readonly turn: OpenTurn
  readonly wire: { readonly socketPath: string; readonly agent: InstanceType<typeof Agent> }
}

function forward({ incoming, response, path, turn, wire }: ForwardCall): void {
  const headers = passedHeaders(incoming.rawHeaders)
  headers.host = BROKER_HOST
  headers[TURN_NONCE_HEADER] = turn.nonce
  const { method } = incoming
  const outgoing = request({ ...wire, method, path, headers, setDefaultHeaders: false })
  const cut = () => {
    outgoing.destroy()
    response.destroy()
  }
  turn.calls.add(cut)
  const unreachable = () => refuse(incoming, response, 502, 'broker_unreachable', 'The host does not answer.')
  outgoing.on('response', (answer) => {
    const { statusCode = 0 } = answer
    answer.on('error', cut)
    // Nothing that could be passed on: 100 to 199 come by other events.
    if (statusCode < 200) return outgoing.destroy(new TypeError('no answer'))
    turn.refusedForGood = answer.headers['x-should-retry'] === 'false'
    response.sendDate = false
    response.writeHead(statusCode, passedHeaders(answer.rawHeaders))
    // The head of a stream may come long before its first event.
    response.flushHeaders()
    answer.pipe(response)
  })
  // A host that has answered may close before it has read the body: that is no refusal.
  outgoing.on('error', unreachable)
  // 101: nobody asked for another protocol.
  outgoing.on('upgrade', (_, socket) => {
    socket.destroy()
    unreachable()
  })
  outgoing.on('close', () => {
    incoming.unpipe(outgoing)
    incoming.resume()
  })
  incoming.on('error', cut)
  response.on('error', cut)
  response.on('close', () => {
    turn.calls.delete(cut)
    if (!response.writableFinished) outgoing.destroy()
  })
  // A host may answer before the first byte of a body.
  outgoing.flushHeaders()
  incoming.pipe(outgoing)
}

/** Every header as it came, repeated ones too, for whoever checks them at the other end. */
function passedHeaders(raw: readonly string[]): OutgoingHttpHeaders {
  const headers = new Map<string, string | string[]>()
  for (let at = 0; at + 1 < raw.length; at += 2) {
    const [name = '', value = ''] = [raw[at]?.toLowerCase(), raw[at + 1]]
    if (name === 'keep-alive' || (name === 'connection' && OWN_CONNECTION.test(value))) continue
    const before = headers.get(name)
    headers.set(name, before === undefined ? value : [before, value].flat())
  }
  return Object.fromEntries(headers)
}

/** In the shape of the host's own refusals. */
function refuse(
  incoming: IncomingMessage,
  response: ServerResponse,
  status: number,
  code: string,
  message: string,
): void {
  if (response.headersSent || response.destroyed) return
  incoming.resume()
  const body = JSON.stringify({ error: { code, message } })
  response.writeHead(status, {
    'content-type': 'application/json',
    'content-length': Buffer.byteLength(body),
    ...(status === 502 ? {} : { 'x-should-retry': 'false' }),
  })
  response.end(body)
}
