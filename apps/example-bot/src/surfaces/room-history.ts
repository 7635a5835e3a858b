/** Most entries kept, over all channels. */
const KEPT_ENTRIES = 400
/** Most characters kept of what was said, so that a fresh view can be told all of it at once. */
const KEPT_CHARS = 1_000_000

/** What was said in a room, as far as it is kept. */
export class RoomHistory<Entry extends { readonly text: string }> {
  readonly #entries: Entry[] = []
  #chars = 0

  /** What was said, oldest first. */
  all(): readonly Entry[] {
    return [...this.#entries]
  }

  /** Adds an entry; the oldest ones may go. */
  add(entry: Entry): void {
    this.#entries.push(entry)
    this.#chars += entry.text.length
    while (this.#entries.length > KEPT_ENTRIES || (this.#chars > KEPT_CHARS && this.#entries.length > 1)) {
      this.#chars -= this.#entries.shift()?.text.length ?? 0
    }
  }
}
