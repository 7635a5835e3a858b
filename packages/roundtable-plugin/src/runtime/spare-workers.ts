import type { ChannelKey } from '../host-contract.ts'

/** The part of a pool that keeps workers waiting. */
interface Spares {
  warm(channel: string): void
  cool(channel: string): Promise<void>
  waiting(): readonly string[]
}

/** The workers that wait for a channel's next turn. The last word on a channel counts, however long its start takes. */
export class SpareWorkers {
  readonly #pool: Spares
  /** Channels whose worker is to start once something else is done; each with what asked for it last. */
  readonly #wanted = new Map<ChannelKey, symbol>()

  constructor(pool: Spares) {
    this.#pool = pool
  }

  /** Starts one after `before`, unless that rejects or the channel is cooled by then. */
  warm(channel: ChannelKey, before: Promise<unknown>): void {
    const asked = Symbol(channel)
    this.#wanted.set(channel, asked)
    const last = () => this.#wanted.get(channel) === asked && this.#wanted.delete(channel)
    // Who waits for what rejects here is told by that.
    before.then(() => last() && this.#pool.warm(channel), last)
  }

  /** Removes the one that waits, or will. Resolves when it is gone; never rejects. */
  cool(channel: ChannelKey): Promise<void> {
    this.#wanted.delete(channel)
    return this.#pool.cool(channel)
  }

  /** The channels for which one waits. */
  waiting(): ChannelKey[] {
    return [...this.#pool.waiting()] as ChannelKey[]
  }
}
