import {
  limits,
  type PiHeartbeat,
  type PiOutcome,
  type PiProgress,
  type PiWelcome,
  type PiWorkerConfig,
  type Posture,
  PROTOCOL_VERSION,
  WORKER_ROUTES,
} from '@sandbox/protocol'
import type { BrokerWire } from '../shared/broker-wire.ts'
import { GuestError } from '../shared/errors.ts'
import { HostDesk } from '../shared/host-desk.ts'
import { isObject } from '../shared/json.ts'
import { hasTexts, isListOf, isToolSpec } from './turn-check.ts'

/**
 * A Pi worker's side of the host's desk: hello once, then turn after turn. Every method throws a {@link GuestError}:
 * `refused` when the host says no, `connection_lost` or `timeout` when the host is gone.
 */
export class PiDesk {
  readonly #desk: HostDesk

  constructor(wire: BrokerWire) {
    // 409: the host still waits for the result of the turn before. 429: it is asked too often.
    this.#desk = new HostDesk(wire, {
      mode: 'pi',
      turnBytes: limits.PI_TURN_BYTES,
      askAgain: [408, 409, 429],
    })
  }

  /** The first message; what the host offers to this worker. */
  async hello(posture: Posture): Promise<PiWelcome> {
    const welcome = await this.#desk.hello(posture)
    const { tools = [], mcp = [] } = welcome
    const isServer = (one: unknown) => hasTexts(one, 'name') && isListOf(one.tools, isText)
    if (isListOf(tools, isToolSpec) && isListOf(mcp, isServer)) {
      return { protocol: PROTOCOL_VERSION, workerNonce: '', ...welcome, tools, mcp } as unknown as PiWelcome
    }
    throw new GuestError('refused', 'hello: the list of tools has a wrong shape')
  }

  /** What the host does for this worker besides answering calls. A host that does nothing may not know the question. */
  async config(): Promise<PiWorkerConfig> {
    const config = await this.#desk.get(WORKER_ROUTES.config)
    const { compaction } = isObject(config) ? config : {}
    return isObject(compaction) && isText(compaction.engine)
      ? { compaction: { engine: compaction.engine } }
      : {}
  }

  /** Waits for a turn; unchecked. `undefined` when there will be none. */
  async next(): Promise<unknown> {
    return this.#desk.next()
  }

  /** Tells the host that the turn has arrived. */
  async ack(turnId: string): Promise<void> {
    await this.#desk.ack(turnId)
  }

  /** A sign of life; true when the turn is over for the host. */
  async isOver(turnId: string): Promise<boolean> {
    const sign: PiHeartbeat = { turnId }
    const answer = await this.#desk.post(WORKER_ROUTES.heartbeat, sign)
    return isObject(answer) && answer.over === true
  }

  /** Hands over a piece of the answer as it grows. */
  async progress(piece: PiProgress): Promise<void> {
    await this.#desk.post(WORKER_ROUTES.progress, piece)
  }

  /** Hands in the outcome. */
  async result(turnId: string, outcome: PiOutcome): Promise<void> {
    await this.#desk.result(turnId, outcome)
  }
}

function isText(value: unknown): value is string {
  return typeof value === 'string'
}
