import { stopIfAborted } from '../../errors.ts'

/** One holder at a time for each channel, in the order of asking; channels do not wait for each other. */
export class ChannelLock {
  /** A channel that has an entry is held; the entry is who waits for it. */
  readonly #waiting = new Map<string, (() => void)[]>()

  /**
   * Waits until the channel is free and takes it. Returns what gives it back, which may be called twice. Rejects with
   * `aborted` when the signal fires first, and then holds nothing.
   */
  async take(channel: string, signal?: AbortSignal): Promise<() => void> {
    stopIfAborted(signal)
    const queue = this.#waiting.get(channel)
    if (queue === undefined) this.#waiting.set(channel, [])
    else await waitIn(queue, signal)
    let held = true
    return () => {
      if (held) this.#next(channel)
      held = false
    }
  }

  /** Handed from one holder to the next without a moment in between, so that nobody can step in. */
  #next(channel: string): void {
    const next = this.#waiting.get(channel)?.shift()
    if (next) next()
    else this.#waiting.delete(channel)
  }
}

function waitIn(queue: (() => void)[], signal: AbortSignal | undefined): Promise<void> {
  return new Promise((resolve, reject) => {
    const turn = () => {
      signal?.removeEventListener('abort', leave)
      resolve()
    }
    const leave = () => {
      queue.splice(queue.indexOf(turn), 1)
      try {
        stopIfAborted(signal)
      } catch (error) {
        reject(error)
      }
    }
    queue.push(turn)
    signal?.addEventListener('abort', leave, { once: true })
  })
}
