/**
 * Containers whose removal failed, by channel. They may still run and write, so nothing else of their channel starts
 * before they are gone: a sweep once a minute would be too late.
 */
export class Leftovers {
  readonly #left = new Map<string, Map<string, () => Promise<void>>>()

  /** Keeps a container, with what removes it. */
  keep(channelHash: string, id: string, remove: () => Promise<void>): void {
    const left = this.#left.get(channelHash) ?? new Map()
    this.#left.set(channelHash, left.set(id, remove))
  }

  /** Removes what is left of one channel. Rejects with the first failure, after every one was tried. */
  async clear(channelHash: string): Promise<void> {
    const left = this.#left.get(channelHash)
    if (left === undefined) return
    const tries = [...left].map(async ([id, remove]) => {
      await remove()
      left.delete(id)
      if (left.size === 0 && this.#left.get(channelHash) === left) this.#left.delete(channelHash)
    })
    const failed = (await Promise.allSettled(tries)).find(({ status }) => status === 'rejected')
    if (failed?.status === 'rejected') throw failed.reason
  }

  /** The same for every channel. */
  async clearAll(): Promise<void> {
    await Promise.all([...this.#left.keys()].map((channelHash) => this.clear(channelHash)))
  }
}
