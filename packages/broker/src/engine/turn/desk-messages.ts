import type { WorkerHello } from '@sandbox/protocol'
import type { Pieces } from '../call/in-pieces.ts'

/** What a desk hands out has a name, under which it is acknowledged and its result comes back. */
export interface DeskWork {
  readonly turnId: string
}

/** What a desk adds when its work is fetched. */
export interface Delivery {
  readonly protocol: number
  /** Time left, in milliseconds. */
  readonly remainingMs: number
}

/** What a worker of one mode is handed, and what it hands in. */
export interface DeskMessages<Work extends DeskWork, Outcome> {
  readonly mode: WorkerHello['mode']
  /** Largest result. */
  readonly resultBytes: number
  /**
   * A copy of what is to be handed out.
   * @throws BrokerError `turn_invalid`
   */
  checked(work: Work): Work
  /** As `checked`, for what may be large: others run while it yields. */
  checkedPieces?(work: Work): Pieces<Work>
  /** What the worker's poll is answered with. Omitted = the delivery, as JSON. */
  written?(delivery: Work & Delivery): unknown
  /** A copy with the known fields; `undefined` for what is no result. */
  readResult(body: Readonly<Record<string, unknown>>): DeskResult<Outcome> | undefined
  /** As `readResult`, for results that may be large: others run while it yields. */
  resultPieces?(body: Readonly<Record<string, unknown>>): Pieces<DeskResult<Outcome> | undefined>
}

/** What a worker handed in. */
export interface DeskResult<Outcome> {
  readonly turnId: string
  readonly result: Outcome
}
