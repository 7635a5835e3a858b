import { type PiProgress, PROTOCOL_VERSION } from '@sandbox/protocol'
import type { Delivery, DeskWork } from './desk-messages.ts'

/**
 * One turn on the desk: offered, delivered on a lease, acknowledged, settled. A delivery that nobody
 * acknowledges is repeated, so that an answer lost on its way does not hang the turn.
 */
export class TurnOffer<Work extends DeskWork, Outcome> {
  /** Settles with the worker's outcome, or with what ended the wait. */
  readonly outcome: Promise<Outcome>
  readonly #turn: Work
  readonly #deadline: number
  readonly #settled = new AbortController()
  #deliveredMs: number | undefined
  #acknowledged = false
  #resolve: ((outcome: Outcome) => void) | undefined
  #reject: ((error: Error) => void) | undefined
  readonly #onProgress: ((piece: PiProgress) => void) | undefined
  #lastSeq = -1

  constructor(
    turn: Work,
    options: { readonly deadline: number; readonly onProgress?: (piece: PiProgress) => void },
  ) {
    this.#turn = turn
    this.#deadline = options.deadline
    this.#onProgress = options.onProgress?.bind(options)
    this.outcome = new Promise((resolve, reject) => {
      this.#resolve = resolve
      this.#reject = reject
    })
  }

  get turnId(): string {
    return this.#turn.turnId
  }

  /** Fires when the offer is settled, either way. */
  get signal(): AbortSignal {
    return this.#settled.signal
  }

  get acknowledged(): boolean {
    return this.#acknowledged
  }

  /** True from the delivery until the outcome. */
  get awaitsResult(): boolean {
    return this.#deliveredMs !== undefined && !this.signal.aborted
  }

  /** Time until a delivered turn may be delivered again; `undefined` when nothing is on lease. */
  leaseLeftMs(leaseMs: number): number | undefined {
    if (this.#deliveredMs === undefined) return undefined
    return Math.max(0, this.#deliveredMs + leaseMs - performance.now())
  }

  /** The turn, unless it is on lease. */
  take(leaseMs: number): (Work & Delivery) | undefined {
    const left = this.leaseLeftMs(leaseMs)
    if (left !== undefined && left > 0) return undefined
    const now = performance.now()
    this.#deliveredMs = now
    const remainingMs = Math.max(0, Math.round(this.#deadline - now))
    return { ...this.#turn, protocol: PROTOCOL_VERSION, remainingMs }
  }

  /** False when this turn was not delivered, or is settled. */
  acknowledge(turnId: unknown): boolean {
    if (!this.awaitsResult || turnId !== this.#turn.turnId) return false
    this.#acknowledged = true
    return true
  }

  /** False when this turn was not delivered, or is settled. */
  settle(turnId: string, outcome: Outcome): boolean {
    if (!this.awaitsResult || turnId !== this.#turn.turnId) return false
    this.#settled.abort()
    this.#resolve?.(outcome)
    return true
  }

  /** Passes a piece of the answer on, unless a later one came before it. */
  tell(piece: PiProgress): void {
    if (piece.seq <= this.#lastSeq) return
    this.#lastSeq = piece.seq
    try {
      this.#onProgress?.(piece)
    } catch {}
  }

  /** Ends the wait. Without effect once settled. */
  fail(error: Error): void {
    if (this.signal.aborted) return
    this.#settled.abort()
    this.#reject?.(error)
  }
}
