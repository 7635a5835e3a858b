import { untilAborted } from './turn-ending.ts'

/** What is known of one directory. */
interface Place {
  readonly users: Set<Promise<void>>
  /** The last piece of housekeeping that was asked for; never rejects. */
  chore: Promise<void> | undefined
}

/** Keeps those who work in a directory apart from those who rearrange it: users side by side, housekeeping alone. */
export class WorkspaceUse {
  readonly #places = new Map<string, Place>()

  /** Waits for the housekeeping that was asked for by now; returns what ends the use. Rejects with the signal's reason. */
  async enter(directory: string, signal: AbortSignal): Promise<() => void> {
    const place = this.#place(directory)
    while (place.chore !== undefined) await untilAborted(place.chore, signal)
    signal.throwIfAborted()
    const { promise, resolve } = Promise.withResolvers<void>()
    place.users.add(promise)
    return () => {
      place.users.delete(promise)
      resolve()
      this.#forget(directory, place)
    }
  }

  /**
   * Runs `work` alone, after the housekeeping that was asked for before. Who comes from now on waits; `hurry` is called
   * then, to end those who are there.
   */
  alone<T>(directory: string, work: () => Promise<T>, hurry?: () => void): Promise<T> {
    const place = this.#place(directory)
    const before = place.chore ?? Promise.resolve()
    const done = before.then(async () => {
      hurry?.()
      await Promise.all(place.users)
      return await work()
    })
    const chore = settled(done).then(() => {
      if (place.chore !== chore) return
      place.chore = undefined
      this.#forget(directory, place)
    })
    place.chore = chore
    return done
  }

  /** Resolves when no housekeeping is under way. */
  async idle(): Promise<void> {
    await Promise.all([...this.#places.values()].map(({ chore }) => chore))
  }

  #place(directory: string): Place {
    const place = this.#places.get(directory) ?? { users: new Set(), chore: undefined }
    this.#places.set(directory, place)
    return place
  }

  #forget(directory: string, { users, chore }: Place): void {
    if (users.size === 0 && chore === undefined) this.#places.delete(directory)
  }
}

function settled(work: Promise<unknown>): Promise<void> {
  return work.then(
    () => {},
    () => {},
  )
}
