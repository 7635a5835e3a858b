import type { Worker } from '@sandbox/docker-worker'
import type { ChannelKey } from '../host-contract.ts'

/** Workers that could not be removed: their channel waits until they are gone. */
export class LeftoverWorkers {
  readonly #held = new Map<ChannelKey, Set<Worker>>()

  /** Keeps a worker for the next try. */
  hold(channel: ChannelKey, worker: Worker | undefined): void {
    if (worker === undefined) return
    const held = this.#held.get(channel) ?? new Set()
    this.#held.set(channel, held.add(worker))
  }

  /** The channels that wait. */
  channels(): ChannelKey[] {
    return [...this.#held.keys()]
  }

  /** Tries again. Rejects with the reason of the first that cannot be removed still. */
  async remove(channel: ChannelKey): Promise<void> {
    const held = this.#held.get(channel)
    for (const worker of held ?? []) {
      await worker.remove()
      held?.delete(worker)
    }
    if (held?.size === 0) this.#held.delete(channel)
  }

  /** Tries again with all of them. Never rejects. */
  async removeAll(): Promise<void> {
    for (const channel of this.#held.keys()) await this.remove(channel).catch(() => {})
  }
}
