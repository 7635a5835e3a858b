import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import type { BrokerAnswer, BrokerHandler } from '../call/exchange.ts'
import { refusalAnswer } from '../call/guest-answer.ts'
import { CallRefusal } from '../call/refusal.ts'

/** How a connection is served. */
export interface NodeAdapterOptions {
  readonly handler: BrokerHandler
  /** Total time of one request from its head to the end of its answer, in milliseconds. */
  readonly requestMs: number
}

/**
 * Connects `node:http` with a handler, one request at a time on a connection: a request that arrives before
 * the last one was answered (pipelining) costs the connection. Says for every socket whether it is at work.
 */
export class NodeAdapter {
  readonly #options: NodeAdapterOptions
  readonly #working = new WeakSet<Socket>()

  constructor(options: NodeAdapterOptions) {
    this.#options = options
  }

  /** Whether a request of this connection is being answered. */
  isWorking(socket: Socket): boolean {
    return this.#working.has(socket)
  }

  /** Serves one request; to be used as the server's listener. */
  readonly serve = (incoming: IncomingMessage, response: ServerResponse): void => {
    const { socket } = incoming
    if (this.#working.has(socket)) {
      socket.destroy()
      return
    }
    this.#working.add(socket)
    const guest = new AbortController()
    const timer = setTimeout(() => socket.destroy(), this.#options.requestMs)
    let answer: BrokerAnswer | undefined
    let closed = false
    incoming.on('error', () => {})
    response.on('error', () => {})
    response.on('close', () => {
      closed = true
      clearTimeout(timer)
      this.#working.delete(socket)
      if (!response.writableFinished) guest.abort(new CallRefusal('aborted'))
      answer?.ended(response.writableFinished)
    })
    this.#answer(incoming, guest.signal).then(
      (made) => {
        answer = made
        if (closed) made.ended(false)
        else write(incoming, response, made)
      },
      () => write(incoming, response, unhandled()),
    )
  }

  async #answer(incoming: IncomingMessage, signal: AbortSignal): Promise<BrokerAnswer> {
    if (incoming.httpVersion !== '1.1') return unhandled()
    return await this.#options.handler({
      method: incoming.method ?? '',
      target: incoming.url ?? '',
      rawHeaders: incoming.rawHeaders,
      body: incoming.iterator({ destroyOnReturn: false }),
      signal,
    })
  }
}

function write(incoming: IncomingMessage, response: ServerResponse, answer: BrokerAnswer): void {
  const { socket } = incoming
  if (answer.signal?.aborted) {
    socket.destroy()
    return
  }
  const onAbort = () => socket.destroy()
  answer.signal?.addEventListener('abort', onAbort)
  response.on('close', () => answer.signal?.removeEventListener('abort', onAbort))
  response.sendDate = false
  response.writeHead(answer.status, {
    ...answer.headers,
    'content-length': answer.body.byteLength,
    // Who sends more than is read cannot stay: the rest would be taken for the next request.
    ...(incoming.complete ? {} : { connection: 'close' }),
  })
  response.end(answer.body)
}

/** LS-09: what never got an answer from the handler. */
function unhandled(): BrokerAnswer {
  return { ...refusalAnswer(new CallRefusal('request_invalid')), ended: () => {} }
}
