import type { RoomEntry } from './room.ts'

/** Most entries kept, over all channels. */
const KEPT_ENTRIES = 400
/** Most characters kept of what was said, so that a fresh view can be told all of it at once. */
const KEPT_CHARS = 1_000_000

/** What was said in a room, as far as it is kept. */
export class RoomHistory {
  readonly #entries: RoomEntry[] = []
  #chars = 0
  #lastId = 0

  /** What was said, oldest first. */
  all(): readonly RoomEntry[] {
    return [...this.#entries]
  }

  /** Adds an entry under the next number, now; the oldest ones may go. */
  add(entry: Omit<RoomEntry, 'id' | 'at'>): RoomEntry {
    this.#lastId += 1
    const added = { id: this.#lastId, at: new Date().toISOString(), ...entry }
    this.#entries.push(added)
    this.#chars += added.text.length
    while (this.#entries.length > KEPT_ENTRIES || (this.#chars > KEPT_CHARS && this.#entries.length > 1)) {
      this.#chars -= this.#entries.shift()?.text.length ?? 0
    }
    return added
  }
}
