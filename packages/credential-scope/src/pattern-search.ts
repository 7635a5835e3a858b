/**
 * Searches many long byte patterns at once (S. Wu, U. Manber, "A fast algorithm for multi-pattern searching",
 * 1994): a window as long as the shortest pattern is moved over the text, and the three bytes at its end say
 * how far it may jump without missing anything. Nothing is allocated while searching.
 */
export class PatternSearch {
  /** Length of the shortest pattern in bytes; 0 without patterns. */
  readonly shortest: number
  /** Length of the longest pattern in bytes; 0 without patterns. */
  readonly longest: number
  readonly #patterns: readonly Uint8Array[]
  /** All patterns, one after another; pattern `i` is `blob[start[i]..start[i + 1]]`. */
  readonly #blob: Uint8Array
  readonly #start: Int32Array
  readonly #downBits: number
  /** Per block hash: how far the window may move; 0 = a pattern's window may end here. */
  readonly #shift: Uint8Array
  /** Per block hash: 1 + first pattern whose window ends in such a block; `#next` chains the others. */
  readonly #first: Uint16Array | Uint32Array
  readonly #next: Uint32Array
  #openings: Openings | undefined

  constructor(patterns: readonly Uint8Array[]) {
    const lengths = patterns.map((pattern) => pattern.length)
    this.#patterns = patterns
    this.shortest = patterns.length === 0 ? 0 : lengths.reduce((a, b) => Math.min(a, b))
    this.longest = lengths.reduce((a, b) => Math.max(a, b), 0)
    if (patterns.length > 0 && this.shortest < BLOCK) throw new TypeError('A pattern has at least 3 bytes')
    this.#start = new Int32Array(patterns.length + 1)
    for (const [index, length] of lengths.entries()) this.#start[index + 1] = this.#at(index) + length
    this.#blob = new Uint8Array(this.#at(patterns.length))
    for (const [index, pattern] of patterns.entries()) this.#blob.set(pattern, this.#at(index))

    const jump = Math.min(this.shortest - BLOCK + 1, 255)
    const bits = tableBits(patterns.length * (this.shortest - BLOCK + 1))
    this.#downBits = 32 - bits
    this.#shift = new Uint8Array(1 << bits).fill(Math.max(jump, 1))
    this.#first = patterns.length < 0xffff ? new Uint16Array(1 << bits) : new Uint32Array(1 << bits)
    this.#next = new Uint32Array(patterns.length)
    for (let index = 0; index < patterns.length; index++) this.#enter(index)
  }

  /** Whether `data` holds a pattern. */
  found(data: Uint8Array): boolean {
    const window = this.shortest
    if (window === 0) return false
    const shift = this.#shift
    const down = this.#downBits
    const end = data.length
    let last = window - 1
    while (last < end) {
      const hash = Math.imul(
        byte(data, last - 2) | (byte(data, last - 1) << 8) | (byte(data, last) << 16),
        MIX,
      )
      const step = byte(shift, hash >>> down)
      if (step !== 0) last += step
      else if (this.#candidate(data, last - window + 1, hash >>> down)) return true
      else last += 1
    }
    return false
  }

  /** Length of the longest ending of `data` that is the beginning of a pattern, but no whole pattern. */
  openEnding(data: Uint8Array): number {
    if (this.shortest === 0) return 0
    this.#openings ??= new Openings(this.#patterns)
    return this.#openings.longest(data, Math.max(0, data.length - this.longest + 1))
  }

  #at(index: number): number {
    return this.#start[index] as number
  }

  #enter(index: number): void {
    const from = this.#at(index)
    const shift = this.#shift
    for (let last = BLOCK - 1; last < this.shortest; last++) {
      const at = from + last
      const blob = this.#blob
      const hash =
        Math.imul(byte(blob, at - 2) | (byte(blob, at - 1) << 8) | (byte(blob, at) << 16), MIX) >>>
        this.#downBits
      shift[hash] = Math.min(byte(shift, hash), this.shortest - 1 - last)
      if (last === this.shortest - 1) {
        this.#next[index] = this.#first[hash] as number
        this.#first[hash] = index + 1
      }
    }
  }

  #candidate(data: Uint8Array, from: number, hash: number): boolean {
    for (let entry = this.#first[hash] as number; entry !== 0; entry = this.#next[entry - 1] as number) {
      if (this.#equals(data, from, this.#at(entry - 1), this.#at(entry))) return true
    }
    return false
  }

  #equals(data: Uint8Array, from: number, start: number, end: number): boolean {
    if (from + (end - start) > data.length) return false
    for (let at = start, seen = from; at < end; at++, seen++) {
      if (this.#blob[at] !== data[seen]) return false
    }
    return true
  }
}

/** Bytes that decide about a jump. */
const BLOCK = 3

/** Multiplicative hashing by the golden ratio; the upper bits of the product are used. */
const MIX = 0x9e3779b1

/** At least eight places per block, between 4 KiB and 1 MiB. */
function tableBits(blocks: number): number {
  return Math.min(Math.max(12, Math.ceil(Math.log2(Math.max(blocks, 1) * 8))), 20)
}

/** An element that is known to be there. */
function byte(data: Uint8Array, index: number): number {
  return data[index] as number
}

/** How patterns begin: finds the longest ending of some data that may still become a pattern. */
class Openings {
  /** One bit per pair of first two bytes. */
  readonly #pairs = new Uint8Array(65_536 / 8)
  readonly #byFirst: (Uint8Array[] | undefined)[] = []

  constructor(patterns: readonly Uint8Array[]) {
    for (const pattern of patterns) {
      const first = byte(pattern, 0)
      const pair = (first << 8) | byte(pattern, 1)
      this.#pairs[pair >> 3] = byte(this.#pairs, pair >> 3) | (1 << (pair & 7))
      const list = this.#byFirst[first] ?? []
      list.push(pattern)
      this.#byFirst[first] = list
    }
  }

  longest(data: Uint8Array, from: number): number {
    const final = data.length - 1
    for (let at = from; at < final; at++) {
      const pair = (byte(data, at) << 8) | byte(data, at + 1)
      if ((byte(this.#pairs, pair >> 3) & (1 << (pair & 7))) === 0) continue
      if (this.#opens(data, at)) return data.length - at
    }
    return final >= from && this.#byFirst[byte(data, final)] !== undefined ? 1 : 0
  }

  #opens(data: Uint8Array, at: number): boolean {
    const size = data.length - at
    for (const pattern of this.#byFirst[byte(data, at)] ?? []) {
      if (pattern.length <= size) continue
      let index = 2
      while (index < size && pattern[index] === data[at + index]) index++
      if (index === size && pattern[1] === data[at + 1]) return true
    }
    return false
  }
}
