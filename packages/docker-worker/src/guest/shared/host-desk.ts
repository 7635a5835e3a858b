import {
  limits,
  type Posture,
  PROTOCOL_VERSION,
  protocolMismatch,
  WORKER_NONCE_HEADER,
  WORKER_ROUTES,
  type WorkerHello,
} from '@sandbox/protocol'
import type { BrokerWire, WireAnswer, WireCall } from './broker-wire.ts'
import { GuestError } from './errors.ts'
import { isHeaderSafe } from './header-text.ts'
import { isObject, type JsonObject } from './json.ts'

/** An empty poll that ends sooner than this is followed by a pause, so that no host is polled in a tight loop. */
const SHORT_POLL_MS = 1_000

/** Which kind of worker speaks, and the largest turn that it takes. */
export interface DeskOptions {
  readonly mode: WorkerHello['mode']
  readonly turnBytes: number
  /** Statuses of `next` that mean: ask again. Default 408, nothing yet. */
  readonly askAgain?: readonly number[]
}

/**
 * The worker's side of the host's desk: hello, then next, ack, result for each turn, in this order. Every method
 * throws a {@link GuestError}: `refused` when the host says no, `connection_lost` or `timeout` when the host is gone.
 */
export class HostDesk {
  readonly #wire: BrokerWire
  readonly #options: DeskOptions
  #headers: Readonly<Record<string, string>> = {}

  constructor(wire: BrokerWire, options: DeskOptions) {
    this.#wire = wire
    this.#options = options
  }

  /** The first message. Its answer brings the worker nonce that all others carry; returns the whole answer. */
  async hello(posture: Posture): Promise<JsonObject> {
    const hello: WorkerHello = { protocol: PROTOCOL_VERSION, mode: this.#options.mode, posture }
    const { body } = accepted(await this.#wire.call(post(WORKER_ROUTES.hello, hello)), 'hello')
    if (!isObject(body) || !isHeaderSafe(body.workerNonce)) {
      throw new GuestError('refused', 'hello: the answer has a wrong shape')
    }
    if (body.protocol !== PROTOCOL_VERSION) {
      throw new GuestError('refused', protocolMismatch(PROTOCOL_VERSION, Number(body.protocol)))
    }
    this.#headers = { [WORKER_NONCE_HEADER]: body.workerNonce }
    return body
  }

  /** Waits for the turn, as long as the host holds the socket; unchecked. `undefined` when there will be none. */
  async next(): Promise<unknown> {
    const { turnBytes, askAgain = [408] } = this.#options
    for (;;) {
      const startedAt = performance.now()
      const answer = await this.#twice({
        method: 'GET',
        path: WORKER_ROUTES.next,
        answerBytes: turnBytes,
      })
      if (answer.status === 410) return undefined
      if (!askAgain.includes(answer.status)) return accepted(answer, 'next').body
      if (performance.now() - startedAt < SHORT_POLL_MS) await pause(SHORT_POLL_MS)
    }
  }

  /** Tells the host that the turn has arrived. */
  async ack(turnId: string): Promise<void> {
    await this.post(WORKER_ROUTES.ack, { turnId })
  }

  /** Hands in the outcome. */
  async result(turnId: string, result: unknown): Promise<void> {
    await this.post(WORKER_ROUTES.result, { turnId, result })
  }

  /** Posts any worker message; the body of the answer. */
  async post(path: string, message: unknown): Promise<unknown> {
    return accepted(await this.#twice(post(path, message)), nameOf(path)).body
  }

  /** Asks for a small worker message; `undefined` when the host does not know it. */
  async get(path: string): Promise<unknown> {
    const answer = await this.#twice({ method: 'GET', path, answerBytes: limits.WORKER_MESSAGE_BYTES })
    return answer.status === 404 ? undefined : accepted(answer, nameOf(path)).body
  }

  /** Once more on a fresh connection when the first broke off: the host may have closed an idle one. */
  async #twice(call: WireCall): Promise<WireAnswer> {
    const withNonce = { ...call, headers: this.#headers }
    try {
      return await this.#wire.call(withNonce)
    } catch (error) {
      if (!GuestError.isInstance(error) || error.code !== 'connection_lost') throw error
      return await this.#wire.call(withNonce)
    }
  }
}

function post(path: string, message: unknown): WireCall {
  return { method: 'POST', path, body: JSON.stringify(message), answerBytes: limits.WORKER_MESSAGE_BYTES }
}

function nameOf(path: string): string {
  return path.slice(path.lastIndexOf('/') + 1)
}

function accepted(answer: WireAnswer, what: string): WireAnswer {
  if (answer.status === 200) return answer
  throw new GuestError(
    'refused',
    `${what}: the host answered ${answer.status}. ${answer.refusal ?? ''}`.trim(),
  )
}

function pause(durationMs: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, durationMs))
}
