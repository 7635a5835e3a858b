import { JsonProblem } from './json-problem.ts'

const QUOTE = 0x22
const BACKSLASH = 0x5c
const SPACE = 0x20

/** 1 for what may follow a backslash, `u` aside. */
const ESCAPED = new Uint8Array(256)
for (const sign of '"\\/bfnrt') ESCAPED[sign.charCodeAt(0)] = 1

/** Finds the ends of JSON strings in one buffer, four bytes at a time. */
export class StringRuns {
  readonly #bytes: Buffer
  readonly #words: DataView
  /** Where the last word begins. */
  readonly #last: number
  /** Whether the string that was read last has escapes. */
  escaped = false

  constructor(bytes: Buffer) {
    this.#bytes = bytes
    this.#words = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength)
    this.#last = bytes.byteLength - 8
  }

  /**
   * Reads on from inside a string and returns the offset of its closing quote, or of where it stopped, at or a
   * few bytes after `until`, when it has no quote before that.
   */
  read(from: number, until: number): number {
    const bytes = this.#bytes
    let at = from
    // An escape may reach beyond `until`.
    while (at < until) {
      at = this.#plain(at, until)
      if (at >= until) return until
      const byte = bytes[at] as number
      if (byte === QUOTE) return at
      if (byte !== BACKSLASH) throw new JsonProblem('a string has a control character', at)
      at = ESCAPED[bytes[at + 1] as number] === 1 ? at + 2 : this.#unicode(at)
      this.escaped = true
    }
    return at
  }

  /** The offset of the next quote, backslash or control character, or one at or beyond `until`. */
  #plain(from: number, until: number): number {
    const words = this.#words
    const end = Math.min(until, this.#last)
    let at = from
    while (at < end) {
      const hits = hitsIn(words.getInt32(at, true))
      if (hits !== 0) return at + ((31 - Math.clz32(hits & -hits)) >> 3)
      const next = hitsIn(words.getInt32(at + 4, true))
      if (next !== 0) return at + 4 + ((31 - Math.clz32(next & -next)) >> 3)
      at += 8
    }
    const bytes = this.#bytes
    for (; at < until; at++) {
      const byte = bytes[at] as number
      if (byte < SPACE || byte === QUOTE || byte === BACKSLASH) return at
    }
    return at
  }

  /** Checks an escape such as `\\u00e9` and returns the offset after it. */
  #unicode(at: number): number {
    const bytes = this.#bytes
    let isValid = bytes[at + 1] === 0x75
    for (let i = at + 2; i < at + 6; i++) isValid &&= isHexDigit(bytes[i])
    if (!isValid) throw new JsonProblem('a string has an invalid escape', at)
    return at + 6
  }
}

/**
 * The highest bit of each byte of a word that ends a plain run, as far as the lowest of them: the usual test for a
 * zero byte may hit again above a hit. With one bit flipped, quotes stand right behind the control characters, and
 * one comparison finds both.
 */
function hitsIn(word: number): number {
  const below = (word ^ 0x02020202) - 0x21212121
  const slash = (word ^ 0x5c5c5c5c) - 0x01010101
  return (below | slash) & ~word & 0x80808080
}

function isHexDigit(byte: number | undefined): boolean {
  if (byte === undefined) return false
  const lower = byte | 0x20
  return (byte >= 0x30 && byte <= 0x39) || (lower >= 0x61 && lower <= 0x66)
}
