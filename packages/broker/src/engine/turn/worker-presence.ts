/**
 * Whether a worker that lives for many turns is there: from its first poll on, for as long as it gives signs of
 * life. A poll that is held is one as long as it is held.
 */
export class WorkerPresence {
  readonly #silenceMs: number
  #polled = false
  #held = false
  #seenMs = performance.now()

  /** `silenceMs`: how long a worker may say nothing, in milliseconds. */
  constructor({ silenceMs }: { readonly silenceMs: number }) {
    this.#silenceMs = silenceMs
  }

  /** Whether it has ever asked for a turn. */
  get polled(): boolean {
    return this.#polled
  }

  /** Time until it counts as silent, in milliseconds; 0 or less when it does. */
  get leftMs(): number {
    return this.#held ? this.#silenceMs : this.#seenMs + this.#silenceMs - performance.now()
  }

  /** A sign of life. */
  seen(): void {
    this.#seenMs = performance.now()
  }

  /** A poll begins; to be called again when it ends. */
  hold(held: boolean): void {
    this.#polled = true
    this.#held = held
    this.seen()
  }

  /** Calls back once it is silent. Answers how to stop looking. */
  watch(onSilent: () => void): () => void {
    let timer: NodeJS.Timeout | undefined
    const look = () => {
      const left = this.leftMs
      if (left <= 0) onSilent()
      else timer = setTimeout(look, Math.ceil(left)).unref()
    }
    look()
    return () => clearTimeout(timer)
  }
}
