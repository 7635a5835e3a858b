/**
 * Which of a turn's two lines a call stands in: `single` for short calls one after another, `parallel` for those of
 * clients that make several at once and read for long.
 */
export type CallLane = 'single' | 'parallel'

/** Gives a slot back. Idempotent. */
export type LeaveSlot = () => void

/**
 * A few calls at a time, and a short queue in the order of arrival. A slot is held until the answer's body has
 * gone out, not only until its first byte.
 */
export class CallSlots {
  readonly #queued: number
  readonly #waiting: (() => void)[] = []
  #free: number

  constructor(options: { readonly concurrent: number; readonly queued: number }) {
    this.#free = options.concurrent
    this.#queued = options.queued
  }

  /** True when a call would have to be refused. */
  get full(): boolean {
    return this.#free === 0 && this.#waiting.length >= this.#queued
  }

  /** Takes a slot, at once or in turn. Rejects with the signal's reason, and then holds nothing. */
  async enter(signal: AbortSignal): Promise<LeaveSlot> {
    signal.throwIfAborted()
    if (this.#free > 0) this.#free -= 1
    else await this.#wait(signal)
    let held = true
    return () => {
      if (!held) return
      held = false
      const next = this.#waiting.shift()
      if (next === undefined) this.#free += 1
      else next()
    }
  }

  #wait(signal: AbortSignal): Promise<void> {
    return new Promise((resolve, reject) => {
      const onAbort = () => {
        this.#waiting.splice(this.#waiting.indexOf(take), 1)
        reject(signal.reason)
      }
      const take = () => {
        signal.removeEventListener('abort', onAbort)
        resolve()
      }
      signal.addEventListener('abort', onAbort, { once: true })
      this.#waiting.push(take)
    })
  }
}
