import { untilAborted } from '../runtime/turn-ending.ts'
import type { PrecheckPolicy } from './runner-options.ts'

/** So many runs at once, and a queue for a few more, first come, first served. */
export class RunQueue {
  readonly #limits: Pick<PrecheckPolicy, 'maxRunning' | 'maxQueued'>
  /** In the order of their coming. */
  readonly #waiting = new Set<() => void>()
  #running = 0

  constructor(limits: Pick<PrecheckPolicy, 'maxRunning' | 'maxQueued'>) {
    this.#limits = limits
  }

  /**
   * Waits for a place, which `leave` gives back. Rejects, with no place taken, with a RangeError when the queue is full
   * and with the signal's reason when that fires.
   */
  async enter(signal: AbortSignal): Promise<void> {
    signal.throwIfAborted()
    const { maxRunning, maxQueued } = this.#limits
    if (this.#running < maxRunning) {
      this.#running += 1
      return
    }
    if (this.#waiting.size >= maxQueued) throw new RangeError(`${maxRunning} run and ${maxQueued} wait`)
    const { promise, resolve } = Promise.withResolvers<void>()
    this.#waiting.add(resolve)
    try {
      await untilAborted(promise, signal)
    } catch (reason) {
      // The place may have come in the same moment.
      if (!this.#waiting.delete(resolve)) this.leave()
      throw reason
    }
  }

  /** Hands a place on to whoever waits longest. */
  leave(): void {
    const [next] = this.#waiting
    if (next === undefined) {
      this.#running -= 1
      return
    }
    this.#waiting.delete(next)
    next()
  }
}
