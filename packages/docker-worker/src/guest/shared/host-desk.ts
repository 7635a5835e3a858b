import {
  limits,
  type Posture,
  PROTOCOL_VERSION,
  protocolMismatch,
  type SealedOutcome,
  WORKER_NONCE_HEADER,
  WORKER_ROUTES,
} from '@sandbox/protocol'
import type { BrokerWire, WireAnswer, WireCall } from '../shared/broker-wire.ts'
import { GuestError } from '../shared/errors.ts'
import { isObject } from '../shared/json.ts'
import { isHeaderSafe } from './turn-check.ts'

/** An empty poll that ends sooner than this is followed by a pause, so that no host is polled in a tight loop. */
const SHORT_POLL_MS = 1_000

/**
 * The worker's side of the host's desk: hello, next, ack, result, in this order. Every method throws a
 * {@link GuestError}: `refused` when the host says no, `connection_lost` or `timeout` when the host is gone.
 */
export class HostDesk {
  readonly #wire: BrokerWire
  #headers: Readonly<Record<string, string>> = {}

  constructor(wire: BrokerWire) {
    this.#wire = wire
  }

  /** The first message. Its answer brings the worker nonce that all others carry. */
  async hello(posture: Posture): Promise<void> {
    const hello = { protocol: PROTOCOL_VERSION, mode: 'sealed', posture }
    const { body } = accepted(await this.#wire.call(post(WORKER_ROUTES.hello, hello)), 'hello')
    if (!isObject(body) || !isHeaderSafe(body.workerNonce)) {
      throw new GuestError('refused', 'hello: the answer has a wrong shape')
    }
    if (body.protocol !== PROTOCOL_VERSION) {
      throw new GuestError('refused', protocolMismatch(PROTOCOL_VERSION, Number(body.protocol)))
    }
    this.#headers = { [WORKER_NONCE_HEADER]: body.workerNonce }
  }

  /** Waits for the turn, as long as the host holds the socket; unchecked. `undefined` when there will be none. */
  async next(): Promise<unknown> {
    for (;;) {
      const startedAt = performance.now()
      const answer = await this.#twice({
        method: 'GET',
        path: WORKER_ROUTES.next,
        answerBytes: limits.SEALED_TURN_BYTES,
      })
      if (answer.status === 410) return undefined
      if (answer.status !== 408) return accepted(answer, 'next').body
      if (performance.now() - startedAt < SHORT_POLL_MS) await pause(SHORT_POLL_MS)
    }
  }

  /** Tells the host that the turn has arrived. */
  async ack(turnId: string): Promise<void> {
    accepted(await this.#twice(post(WORKER_ROUTES.ack, { turnId })), 'ack')
  }

  /** Hands in the outcome. */
  async result(turnId: string, result: SealedOutcome): Promise<void> {
    accepted(await this.#twice(post(WORKER_ROUTES.result, { turnId, result })), 'result')
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
