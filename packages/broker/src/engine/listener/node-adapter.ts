import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import type { AnswerStream, BrokerAnswer, BrokerHandler } from '../call/exchange.ts'
import { refusalAnswer } from '../call/guest-answer.ts'
import { CRUMB_BYTES } from '../call/read-body.ts'
import { CallRefusal } from '../call/refusal.ts'

/** Largest body that is read to its end although nobody wants it. */
const DRAIN_BYTES = 64 * 1024
/** How much, and for how many milliseconds, a connection that will be closed is read. */
const LINGER_BYTES = 1024 * 1024
const DRAIN_MS = 1000

/** How a connection is served. */
export interface NodeAdapterOptions {
  readonly handler: BrokerHandler
  /**
   * How long an answer waits for a guest that does not read, in milliseconds. Nothing else is timed here: the
   * handler ends its calls itself, and its refusals go out after that.
   */
  readonly drainMs: number
  /** Called when a connection has no request at work any more. */
  onIdle?(socket: Socket): void
}

/**
 * Connects `node:http` with a handler, one request at a time on a connection: a request that arrives before
 * the last one was answered (pipelining) costs the connection. Says for every socket whether it is at work.
 */
export class NodeAdapter {
  readonly #options: NodeAdapterOptions
  /** The newest response of each connection that is at work. */
  readonly #newest = new WeakMap<Socket, ServerResponse>()
  /** Connections that got a request just now: whatever else came with it was sent before any answer. */
  readonly #fresh = new WeakSet<Socket>()

  constructor(options: NodeAdapterOptions) {
    this.#options = options
  }

  /** Whether a request of this connection is being answered. */
  isWorking(socket: Socket): boolean {
    return this.#newest.has(socket)
  }

  /** Serves one request; to be used as the server's listener. */
  readonly serve = (incoming: IncomingMessage, response: ServerResponse): void => {
    const { socket } = incoming
    if (this.#isPipelined(socket)) {
      socket.destroy()
      return
    }
    this.#newest.set(socket, response)
    this.#fresh.add(socket)
    setImmediate(() => this.#fresh.delete(socket))
    const guest = new AbortController()
    let answer: BrokerAnswer | undefined
    let closed = false
    let sent = false
    incoming.on('error', () => {})
    response.on('error', () => {})
    // First in line: the server's own listener may close the socket. Bun finishes answers of dead sockets too.
    response.prependListener('finish', () => {
      sent = !socket.destroyed
    })
    response.on('close', () => {
      closed = true
      if (!sent) guest.abort(new CallRefusal('aborted'))
      answer?.ended(sent)
      this.#rest(socket, response)
    })
    void this.#answer(incoming, guest.signal).then(
      (made) => {
        answer = made
        if (closed) return made.ended(false)
        write(incoming, response, made, this.#options.drainMs).catch(() => socket.destroy())
      },
      () => socket.destroy(),
    )
  }

  /** By what was handed over, not by `finish`: a quick guest has read an answer before the server hears of it. */
  #isPipelined(socket: Socket): boolean {
    return this.#fresh.has(socket) || this.#newest.get(socket)?.writableEnded === false
  }

  #rest(socket: Socket, response: ServerResponse): void {
    if (this.#newest.get(socket) !== response) return
    this.#newest.delete(socket)
    this.#options.onIdle?.(socket)
  }

  async #answer(incoming: IncomingMessage, signal: AbortSignal): Promise<BrokerAnswer> {
    if (incoming.httpVersion !== '1.1') return unhandled()
    try {
      return await this.#options.handler({
        method: incoming.method ?? '',
        target: incoming.url ?? '',
        rawHeaders: incoming.rawHeaders,
        body: new GuestBody(incoming),
        signal,
      })
    } catch {
      return unhandled()
    }
  }
}

/** A request's body: as a stream for who can read one. However its reader leaves, the connection stays. */
class GuestBody implements AsyncIterable<Uint8Array> {
  readonly stream: IncomingMessage

  constructor(stream: IncomingMessage) {
    this.stream = stream
  }

  [Symbol.asyncIterator](): AsyncIterator<Uint8Array> {
    return this.stream.iterator({ destroyOnReturn: false })
  }
}

/**
 * Sends an answer. What is left of a small body is read first, so that the connection can stay. With a large one
 * the connection closes, but not at once: whoever is still writing would see an error in place of the answer.
 */
async function write(
  incoming: IncomingMessage,
  response: ServerResponse,
  answer: BrokerAnswer,
  drainMs: number,
): Promise<void> {
  const { body } = answer
  if (!incoming.complete && announced(incoming) <= DRAIN_BYTES) await drained(incoming)
  const stays = incoming.complete
  if (answer.signal?.aborted) return void response.socket?.destroy()
  response.sendDate = false
  response.writeHead(answer.status, {
    ...answer.headers,
    ...(body instanceof Uint8Array ? { 'content-length': body.byteLength } : {}),
    ...(stays ? {} : { connection: 'close' }),
  })
  if (stays && body instanceof Uint8Array) {
    response.end(body)
    // The usual case: the system has taken all of it.
    if (response.writableLength === 0) return
  }
  const { signal } = answer
  const onAbort = () => response.socket?.destroy()
  signal?.addEventListener('abort', onAbort)
  response.on('close', () => signal?.removeEventListener('abort', onAbort))
  if (!(body instanceof Uint8Array)) return pass(response, body, drainMs)
  if (!stays) {
    response.write(body)
    await drained(incoming)
    response.end()
  }
  if (!response.writableFinished) await taken(response, 'finish', drainMs)
}

/** Sends a stream at the speed of its reader (LS-06). One that breaks off closes the connection. */
async function pass(response: ServerResponse, body: AnswerStream, drainMs: number): Promise<void> {
  response.flushHeaders()
  for await (const chunk of body) {
    if (response.destroyed) return
    if (!writeNow(response, chunk)) await taken(response, 'drain', drainMs)
  }
  response.end()
  if (!response.writableFinished) await taken(response, 'finish', drainMs)
}

/** Hands a chunk to the system at once: `node:http` would do so only after all else that is due. */
function writeNow(response: ServerResponse, chunk: Uint8Array): boolean {
  const { socket } = response
  socket?.cork()
  const hasRoom = response.write(chunk)
  socket?.uncork()
  return hasRoom
}

/** LS-05 and W-95: only a peer that does not drain is out of time. */
function taken(response: ServerResponse, event: 'drain' | 'finish', drainMs: number): Promise<void> {
  return new Promise((resolve) => {
    const timer = setTimeout(() => response.socket?.destroy(), drainMs)
    const end = () => {
      clearTimeout(timer)
      response.off(event, end)
      response.off('close', end)
      resolve()
    }
    response.on(event, end)
    response.on('close', end)
  })
}

function announced(incoming: IncomingMessage): number {
  return Number(incoming.headers['content-length'] ?? Number.POSITIVE_INFINITY)
}

/** Reads a body and throws it away, for a bounded time and a bounded size. */
function drained(incoming: IncomingMessage): Promise<void> {
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, DRAIN_MS)
    let left = LINGER_BYTES
    const end = () => {
      clearTimeout(timer)
      resolve()
    }
    incoming.on('data', (chunk: Uint8Array) => {
      // Thousands of crumbs may still be on their way in one read.
      if (left < 0) return
      left -= Math.max(chunk.byteLength, CRUMB_BYTES)
      if (left < 0) end()
    })
    incoming.on('end', end)
    incoming.on('close', end)
    // Its reader may have left it paused.
    incoming.resume()
  })
}

/** LS-09: what never got an answer from the handler. */
function unhandled(): BrokerAnswer {
  return { ...refusalAnswer(new CallRefusal('request_invalid')), ended: () => {} }
}
