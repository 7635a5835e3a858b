import { decodeString } from './decode-string.ts'

/** Names in one object up to which a comparison with each is cheaper than a set. */
const FEW = 16
/** Names kept for reuse: requests repeat a few short ones. */
const CACHE_SLOTS = 256
const CACHED_BYTES = 32
/** Most names of objects that are open at a time: what a hostile body can make us remember. */
const MAX_OPEN_NAMES = 65_536

/** The names that were read in each open object, so that none comes twice. */
export class OpenNames {
  readonly #bytes: Buffer
  readonly #cache: (string | undefined)[] = new Array(CACHE_SLOTS)
  readonly #names: string[] = []
  /** Per depth: where its names start, and the set that takes over when there are many. */
  readonly #starts: number[] = []
  readonly #sets: (Set<string> | undefined)[] = []

  constructor(bytes: Buffer) {
    this.#bytes = bytes
  }

  open(): void {
    this.#starts.push(this.#names.length)
    this.#sets.push(undefined)
  }

  close(): void {
    this.#names.length = this.#starts.pop() ?? 0
    this.#sets.pop()
  }

  /** Notes a name of the innermost object, or says why it may not be there. */
  add(name: string): string | undefined {
    const names = this.#names
    const top = this.#starts.length - 1
    const start = this.#starts[top] as number
    if (names.length >= MAX_OPEN_NAMES) return 'there are too many fields'
    let set = this.#sets[top]
    if (set === undefined) {
      for (let i = start; i < names.length; i++) if (names[i] === name) return 'a field is there twice'
      if (names.length - start >= FEW) {
        set = new Set(names.slice(start))
        set.add(name)
        this.#sets[top] = set
      }
    } else if (set.has(name)) return 'a field is there twice'
    else set.add(name)
    names.push(name)
    return undefined
  }

  /** The decoded name between two quotes. */
  decode(start: number, end: number, escaped: boolean): string {
    const bytes = this.#bytes
    const length = end - start
    if (escaped || length > CACHED_BYTES) return decodeString(bytes, start, end, escaped)
    let hash = length
    for (let i = start; i < end; i++) hash = (hash * 31 + (bytes[i] as number)) & 0xffffff
    const slot = (hash ^ (hash >> 8)) & (CACHE_SLOTS - 1)
    const cached = this.#cache[slot]
    if (cached !== undefined && this.#isSame(cached, start, length)) return cached
    const name = decodeString(bytes, start, end, false)
    this.#cache[slot] = name
    return name
  }

  #isSame(text: string, start: number, length: number): boolean {
    if (text.length !== length) return false
    for (let i = 0; i < length; i++) {
      const code = text.charCodeAt(i)
      if (code !== this.#bytes[start + i] || code > 0x7f) return false
    }
    return true
  }
}
