/** Names in one object up to which a comparison with each is cheaper than a set. */
const FEW = 16
/** Most names of objects that are open at a time: what a hostile body can make us remember. */
const MAX_OPEN_NAMES = 65_536

/** The names that were read in each open object, so that none comes twice. */
export class OpenNames {
  /** Those of open objects, the innermost last; what is beyond `#count` is over. */
  readonly #names: string[] = []
  #count = 0
  /** Per depth: where its names start, and the set that takes over when there are many. */
  readonly #starts: number[] = []
  readonly #sets: (Set<string> | undefined)[] = []
  #start = 0
  #set: Set<string> | undefined

  open(): void {
    this.#starts.push(this.#start)
    this.#sets.push(this.#set)
    this.#start = this.#count
    this.#set = undefined
  }

  close(): void {
    this.#count = this.#start
    this.#start = this.#starts.pop() ?? 0
    this.#set = this.#sets.pop()
  }

  /** Notes a name of the innermost object, or says why it may not be there. */
  add(name: string): string | undefined {
    const names = this.#names
    const count = this.#count
    const start = this.#start
    if (count >= MAX_OPEN_NAMES) return 'there are too many fields'
    const set = this.#set
    if (set !== undefined) {
      if (set.has(name)) return 'a field is there twice'
      set.add(name)
    } else {
      for (let i = start; i < count; i++) if (names[i] === name) return 'a field is there twice'
      if (count - start >= FEW) this.#set = new Set(names.slice(start, count)).add(name)
    }
    names[count] = name
    this.#count = count + 1
    return undefined
  }
}
