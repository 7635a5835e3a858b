import { type RuntimeClock, realClock } from './clock.ts'

/** How long a turn may count as being handed over, and how long a removal gives way at most. */
const HAND_OVER_MS = 100

/**
 * Lets the removal of a worker give way to turns that are being handed over. Both need the cores, and whoever speaks
 * waits for the hand-over: it comes before the model's answer, and most removals then fall into that wait.
 */
export class HandOvers {
  readonly #clock: RuntimeClock
  readonly #begun = new Set<() => void>()
  readonly #waiting = new Set<() => void>()

  constructor(clock: RuntimeClock = realClock) {
    this.#clock = clock
  }

  /** A turn is handed over. Returns what says that it has its outcome; idempotent. */
  begin(): () => void {
    const end = (): void => {
      if (!this.#begun.delete(end)) return
      cancel()
      if (this.#begun.size > 0) return
      for (const done of this.#waiting) done()
    }
    this.#begun.add(end)
    const cancel = this.#clock.after(HAND_OVER_MS, end, { idle: true })
    return end
  }

  /** Resolves when no turn is being handed over, after 100 ms at the latest. */
  giveWay(): Promise<void> {
    if (this.#begun.size === 0) return Promise.resolve()
    return new Promise((resolve) => {
      const done = (): void => {
        cancel()
        this.#waiting.delete(done)
        resolve()
      }
      this.#waiting.add(done)
      const cancel = this.#clock.after(HAND_OVER_MS, done)
    })
  }
}
