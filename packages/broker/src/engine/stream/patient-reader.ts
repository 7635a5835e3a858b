type Next = IteratorResult<Uint8Array, unknown>

/**
 * Reads a stream whose silences are noticed. One timer and one set of functions serve the whole stream: what is made
 * for each chunk anew outlives its chunk, and a long stream then stops for the collection of all of it.
 */
export class PatientReader {
  readonly #chunks: AsyncIterator<Uint8Array, unknown>
  readonly #quietMs: number
  #quiet: NodeJS.Timeout | undefined
  #isAsked = false
  #resolve: ((next: Next | undefined) => void) | undefined
  #reject: ((error: unknown) => void) | undefined
  /** What came while nobody waited. */
  #early: Promise<Next> | undefined

  /** `quietMs`: how long {@link PatientReader.next} waits, in milliseconds. */
  constructor(chunks: AsyncIterator<Uint8Array, unknown>, quietMs: number) {
    this.#chunks = chunks
    this.#quietMs = quietMs
  }

  /**
   * The next chunk; `undefined` when it is awaited and nothing was {@link PatientReader.heard} for `quietMs`, and then
   * to be asked for again. To be called by one reader, who awaits each answer. Rejects as the stream does.
   */
  next(): Promise<Next | undefined> {
    const early = this.#early
    if (early !== undefined) {
      this.#early = undefined
      return early
    }
    if (!this.#isAsked) {
      this.#isAsked = true
      this.#chunks.next().then(this.#arrived, this.#failed)
    }
    this.#quiet ??= setTimeout(this.#onQuiet, this.#quietMs)
    return new Promise(this.#wait)
  }

  /** A chunk said something that was passed on: silence begins anew. */
  heard(): void {
    this.#quiet?.refresh()
  }

  /** Lets go of the timer. */
  stop(): void {
    clearTimeout(this.#quiet)
  }

  readonly #wait = (resolve: (next: Next | undefined) => void, reject: (error: unknown) => void): void => {
    this.#resolve = resolve
    this.#reject = reject
  }

  readonly #onQuiet = (): void => {
    this.#quiet?.refresh()
    this.#settle(undefined)
  }

  readonly #arrived = (next: Next): void => {
    this.#isAsked = false
    if (this.#resolve === undefined) this.#early = Promise.resolve(next)
    else this.#settle(next)
  }

  readonly #failed = (error: unknown): void => {
    this.#isAsked = false
    const reject = this.#reject
    if (reject === undefined) {
      this.#early = Promise.reject(error)
      this.#early.catch(() => {})
    } else {
      this.#resolve = undefined
      this.#reject = undefined
      reject(error)
    }
  }

  #settle(next: Next | undefined): void {
    this.#resolve?.(next)
    this.#resolve = undefined
    this.#reject = undefined
  }
}
