/** What ended a turn: `over` is the normal end. */
export type TurnEndCause = 'timeout' | 'stopped' | 'over'

/** The one signal of a turn. It fires once: at the deadline, on a stop, or when the turn is over. */
export class TurnEnding {
  /** On the clock of `performance.now()`, in milliseconds. */
  readonly deadline: number
  readonly #controller = new AbortController()
  readonly #timer: NodeJS.Timeout
  #cause: TurnEndCause | undefined

  constructor(timeoutMs: number) {
    this.deadline = performance.now() + timeoutMs
    this.#timer = setTimeout(() => this.end('timeout'), timeoutMs)
  }

  /** Fires with the turn's end. */
  get signal(): AbortSignal {
    return this.#controller.signal
  }

  /** What ended the turn; `undefined` while it runs. */
  get cause(): TurnEndCause | undefined {
    return this.#cause
  }

  /** Ends the turn. The first cause counts; false when the turn had ended before. */
  end(cause: TurnEndCause): boolean {
    if (this.#cause !== undefined) return false
    this.#cause = cause
    clearTimeout(this.#timer)
    this.#controller.abort(new DOMException(`The turn ended: ${cause}`, 'AbortError'))
    return true
  }
}

/** Waits for `work` until the signal fires; then rejects with its reason, and what `work` does is ignored. */
export async function untilAborted<T>(work: Promise<T>, signal: AbortSignal): Promise<T> {
  work.catch(() => {})
  signal.throwIfAborted()
  let abandon = () => {}
  const aborted = new Promise<never>((_, reject) => {
    abandon = () => reject(signal.reason)
    signal.addEventListener('abort', abandon, { once: true })
  })
  try {
    return await Promise.race([work, aborted])
  } finally {
    signal.removeEventListener('abort', abandon)
  }
}
