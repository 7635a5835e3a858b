import { untilAborted } from './turn-ending.ts'

/** One holder at a time, in the order of asking. */
export class ChannelMutex {
  #last: Promise<void> = Promise.resolve()
  #waiting = 0

  /** True while somebody holds it or waits for it. */
  get taken(): boolean {
    return this.#waiting > 0
  }

  /**
   * Waits until it is free and takes it. Returns what gives it back, which may be called twice. Rejects with the
   * signal's reason when it fires first; then nothing is held, and who comes later does not wait for the caller.
   */
  async take(signal?: AbortSignal): Promise<() => void> {
    signal?.throwIfAborted()
    const before = this.#last
    const { promise, resolve } = Promise.withResolvers<void>()
    this.#last = before.then(() => promise)
    this.#waiting += 1
    let held = true
    const release = () => {
      if (held) this.#waiting -= 1
      held = false
      resolve()
    }
    try {
      await (signal === undefined ? before : untilAborted(before, signal))
      return release
    } catch (cause) {
      release()
      throw cause
    }
  }
}
