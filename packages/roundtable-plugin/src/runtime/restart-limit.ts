import { SandboxPluginError } from '../errors.ts'
import type { RuntimeClock } from './clock.ts'
import { untilAborted } from './turn-ending.ts'

/** So many workers may end unasked, one after the other, before none is started for a while. */
const TRIES = 3

/** None is started for so long; after that, one is tried again. */
const REST_MS = 60_000

/** The first wait between two tries; each further one is twice as long. */
const FIRST_PAUSE_MS = 200

/** Counts workers that end by themselves, and keeps a channel from starting one after the other for ever. */
export class RestartLimit {
  readonly #clock: RuntimeClock
  #failures = 0
  #restUntil: number | undefined

  constructor(clock: RuntimeClock) {
    this.#clock = clock
  }

  /** True while no worker may be started. */
  get paused(): boolean {
    return this.#restUntil !== undefined && this.#clock.now() < this.#restUntil
  }

  /** A worker ended by itself. Returns how many did, one after the other. */
  failed(): number {
    this.#failures += 1
    if (this.#failures >= TRIES) this.#restUntil = this.#clock.now() + REST_MS
    return this.#failures
  }

  /** A worker did its work, or somebody wants to try again. */
  forgive(): void {
    this.#failures = 0
    this.#restUntil = undefined
  }

  /** @throws SandboxPluginError `worker_looping` while no worker may be started */
  check(cause?: unknown): void {
    if (!this.paused) return
    throw new SandboxPluginError(
      'worker_looping',
      `The workers of this channel ended ${this.#failures} times, one after the other; the next is tried in a minute. Look at what they said.`,
      cause === undefined ? {} : { cause },
    )
  }

  /** Waits before the next try: twice as long each time, never twice the same. */
  async pause(signal: AbortSignal): Promise<void> {
    const ms = FIRST_PAUSE_MS * 2 ** (this.#failures - 1) * (0.75 + Math.random() / 2)
    const { promise, resolve } = Promise.withResolvers<void>()
    const cancel = this.#clock.after(ms, resolve)
    try {
      await untilAborted(promise, signal)
    } finally {
      cancel()
    }
  }
}
