import { SandboxPluginError } from '../errors.ts'
import type { ChannelKey } from '../host-contract.ts'

/** One turn at a time in a channel; any number of channels at once. */
export class ChannelSlots<T> {
  readonly #held = new Map<ChannelKey, T>()
  #idle: (() => void)[] = []

  /** Takes the channel. Throws {@link SandboxPluginError} `busy` when it is taken. */
  take(channel: ChannelKey, turn: T): void {
    if (this.#held.has(channel)) {
      throw new SandboxPluginError(
        'busy',
        `The channel ${channel} already has a turn; wait until it is over.`,
      )
    }
    this.#held.set(channel, turn)
  }

  /** Gives the channel back. */
  release(channel: ChannelKey): void {
    this.#held.delete(channel)
    if (this.#held.size > 0) return
    for (const done of this.#idle.splice(0)) done()
  }

  /** The turn of a channel. */
  of(channel: ChannelKey): T | undefined {
    return this.#held.get(channel)
  }

  /** Every turn that runs. */
  all(): T[] {
    return [...this.#held.values()]
  }

  /** The channels that have a turn. */
  busy(): ChannelKey[] {
    return [...this.#held.keys()]
  }

  /** Resolves when no channel has a turn. */
  async idle(): Promise<void> {
    if (this.#held.size === 0) return
    await new Promise<void>((done) => this.#idle.push(done))
  }
}
