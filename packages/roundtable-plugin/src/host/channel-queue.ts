import { SandboxPluginError } from '../errors.ts'
import type { ChannelKey, ChannelQueuePort } from '../host-contract.ts'

/** One FIFO per channel; channels do not wait for each other. A task that fails blocks nothing. */
export class ChannelQueue implements ChannelQueuePort {
  readonly #tails = new Map<ChannelKey, Promise<unknown>>()
  readonly #sizes = new Map<ChannelKey, number>()
  #closed = false

  /**
   * Runs a task after those that were queued before it. Rejects with what the task threw, or with
   * {@link SandboxPluginError} `closed` when the queue closed before its turn came.
   */
  run<T>(channel: ChannelKey, task: () => Promise<T>): Promise<T> {
    const before = this.#tails.get(channel) ?? Promise.resolve()
    this.#sizes.set(channel, this.size(channel) + 1)
    const result = before.then(() => {
      if (this.#closed) throw new SandboxPluginError('closed', 'The host is stopping; nothing new is begun.')
      return task()
    })
    const tail = result.then(
      () => this.#done(channel),
      () => this.#done(channel),
    )
    this.#tails.set(channel, tail)
    return result
  }

  /** Running and waiting tasks of a channel. */
  size(channel: ChannelKey): number {
    return this.#sizes.get(channel) ?? 0
  }

  /** The channels that have tasks. */
  busy(): ChannelKey[] {
    return [...this.#sizes.keys()]
  }

  /** Refuses every task that has not begun. */
  close(): void {
    this.#closed = true
  }

  /** Resolves when no channel has a task. */
  async idle(): Promise<void> {
    while (this.#tails.size > 0) await Promise.all(this.#tails.values())
  }

  #done(channel: ChannelKey): void {
    const left = this.size(channel) - 1
    if (left > 0) {
      this.#sizes.set(channel, left)
      return
    }
    this.#sizes.delete(channel)
    this.#tails.delete(channel)
  }
}
