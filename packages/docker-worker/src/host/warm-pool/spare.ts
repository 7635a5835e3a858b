import { DriverError } from '../../errors.ts'
import type { ReadyWorker, WorkerPlace } from './pool-options.ts'
import type { StartTicket } from './start-gate.ts'

/** How long a spare may take to get ready. */
const READY_MS = 30_000

/** One worker that is being started for nobody yet, or waits. */
export class Spare<Place extends WorkerPlace> {
  readonly channel: string
  /** On the clock of `performance.now()`: not wanted any longer. */
  readonly wantedUntil: number
  readonly #abort = new AbortController()
  readonly #late: NodeJS.Timeout
  #idle: NodeJS.Timeout | undefined
  #ticket: StartTicket | undefined
  #urgent = false
  /** What the driver would start from when this one was started. */
  identity: string | undefined
  /** The worker, once it waits. */
  waiting: ReadyWorker<Place> | undefined
  /** Settles when it waits, or with `undefined` when it does not. Never rejects. */
  started: Promise<ReadyWorker<Place> | undefined> = Promise.resolve(undefined)

  constructor(channel: string, wantedUntil: number) {
    this.channel = channel
    this.wantedUntil = wantedUntil
    this.#late = setTimeout(() => this.#abort.abort(tooLong()), READY_MS)
    this.#late.unref()
  }

  /** Fires when the spare is not wanted any more, or takes too long to get ready. */
  get signal(): AbortSignal {
    return this.#abort.signal
  }

  /** A turn waits for it. */
  promote(): void {
    this.#urgent = true
    this.#ticket?.promote()
  }

  /** Its place in the queue of starts. */
  queued(enter: (urgent: boolean) => StartTicket): StartTicket {
    this.#ticket = enter(this.#urgent)
    return this.#ticket
  }

  /** It waits now; `expired` is called when nobody came. */
  waits(ready: ReadyWorker<Place>, expired: () => void): void {
    clearTimeout(this.#late)
    this.waiting = ready
    this.#idle = setTimeout(expired, Math.max(0, this.wantedUntil - performance.now()))
    this.#idle.unref()
  }

  /** It is handed over: no clock runs any more. */
  taken(): void {
    clearTimeout(this.#late)
    clearTimeout(this.#idle)
  }

  /** It is not wanted any more. */
  cancel(): void {
    this.taken()
    this.#abort.abort()
  }
}

function tooLong(): DriverError {
  return new DriverError('start_failed', `The worker did not get ready within ${READY_MS} ms.`)
}
