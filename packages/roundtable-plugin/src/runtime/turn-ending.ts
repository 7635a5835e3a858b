import { type RuntimeClock, realClock } from './clock.ts'

/** What ended a turn: `over` is the normal end, `unready` means that no worker came. */
export type TurnEndCause = 'timeout' | 'unready' | 'stopped' | 'revoked' | 'over'

/** The one signal of a turn. It fires once: at the deadline, on a stop or a revocation, or when the turn is over. */
export class TurnEnding {
  /** On the clock of `performance.now()`, in milliseconds. */
  readonly deadline: number
  readonly #controller = new AbortController()
  readonly #cancel: () => void
  readonly #clock: RuntimeClock
  #cause: TurnEndCause | undefined
  /** What the turn spends through, from its binding on. */
  spending: { revoke(): void } | undefined

  constructor(timeoutMs: number, clock: RuntimeClock = realClock) {
    this.#clock = clock
    this.deadline = clock.now() + timeoutMs
    this.#cancel = clock.after(timeoutMs, () => this.end('timeout'))
  }

  /** Ends the turn, unless what is returned is called by then: a worker that does not come is not waited for to the deadline. */
  needsWorkerWithin(ms: number): () => void {
    return this.#clock.after(ms, () => this.end('unready'))
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
    this.#cancel()
    this.#controller.abort(new DOMException(`The turn ended: ${cause}`, 'AbortError'))
    return true
  }

  /** Ends the turn because its speaker may not spend any more; its calls end as that, and not as those of a turn that is over. */
  revoke(): boolean {
    if (this.#cause !== undefined) return false
    this.spending?.revoke()
    return this.end('revoked')
  }
}

/** Bounds how long a reply waits for what is being removed. */
export class ReplyBound implements Disposable {
  readonly #ms: number
  readonly #settle: (late: true) => void
  #timer: NodeJS.Timeout | undefined
  /** Resolves when the time is over. */
  readonly late: Promise<true>

  constructor(ms: number) {
    this.#ms = ms
    const { promise, resolve } = Promise.withResolvers<true>()
    this.late = promise
    this.#settle = resolve
  }

  /** It is clear what the reply is, or that there will be none: the time starts, once. */
  begin(): void {
    this.#timer ??= setTimeout(() => this.#settle(true), this.#ms)
  }

  [Symbol.dispose](): void {
    clearTimeout(this.#timer)
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
