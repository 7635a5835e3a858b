/** How often something may happen. */
export interface BucketOptions {
  /** In the long run. */
  readonly perSecond: number
  /** At once, after a rest. */
  readonly burst: number
  /** A clock in milliseconds that never goes back; for tests. */
  readonly now?: () => number
}

/** For requests that spend nothing of a turn, such as a worker's messages. */
export const CHEAP_CALLS: BucketOptions = { perSecond: 50, burst: 100 }

/** Lets a burst through, then so many per second. */
export class TokenBucket {
  readonly #perMs: number
  readonly #burst: number
  readonly #now: () => number
  #level: number
  #atMs: number

  constructor({ perSecond, burst, now = () => performance.now() }: BucketOptions) {
    this.#perMs = perSecond / 1000
    this.#burst = burst
    this.#now = now
    this.#level = burst
    this.#atMs = now()
  }

  /** Takes one; 0 when there was one, else the milliseconds until there will be. Then nothing was taken. */
  take(): number {
    const nowMs = this.#now()
    this.#level = Math.min(this.#burst, this.#level + (nowMs - this.#atMs) * this.#perMs)
    this.#atMs = nowMs
    if (this.#level < 1) return (1 - this.#level) / this.#perMs
    this.#level -= 1
    return 0
  }
}
