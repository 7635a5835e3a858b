import { JsonProblem } from './json-problem.ts'

const QUOTE = 0x22
const BACKSLASH = 0x5c
const SPACE = 0x20
/** Shorter runs are read byte by byte. */
const SHORT_BYTES = 16
/** After so many plain bytes in one string, native search takes over: a call of it costs about as much. */
const NATIVE_AFTER_BYTES = 256

/** 1 for what ends a plain run: a quote, a backslash, a control character. */
const SPECIAL = new Uint8Array(256).fill(1, 0, SPACE)
SPECIAL[QUOTE] = 1
SPECIAL[BACKSLASH] = 1

/** 1 for what may follow a backslash, `u` aside. */
const ESCAPED = new Uint8Array(256)
for (const sign of '"\\/bfnrt') ESCAPED[sign.charCodeAt(0)] = 1

/**
 * Finds the ends of JSON strings in one buffer. Short runs are read byte by byte, longer ones in words of four; in
 * long ones the next quote and backslash are found by native search, whose hits are remembered, so that every byte
 * is searched once.
 */
export class StringRuns {
  readonly #bytes: Buffer
  /** The same memory in words, from the aligned address at or before the first byte. */
  readonly #words: Int32Array
  /** Of the first byte within `#words`, in bytes. */
  readonly #shift: number
  #quote = -1
  #backslash = -1
  /** Whether the string that was read last has escapes. */
  escaped = false

  constructor(bytes: Buffer) {
    this.#bytes = bytes
    this.#shift = bytes.byteOffset & 3
    this.#words = new Int32Array(
      bytes.buffer,
      bytes.byteOffset - this.#shift,
      (this.#shift + bytes.byteLength) >> 2,
    )
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
      const near = Math.min(until, at + SHORT_BYTES)
      while (at < near && SPECIAL[bytes[at] as number] === 0) at++
      if (at === near) at = this.#plain(at, until)
      if (at === until) return at
      const byte = bytes[at] as number
      if (byte === QUOTE) return at
      if (byte !== BACKSLASH) throw new JsonProblem('a string has a control character', at)
      at = ESCAPED[bytes[at + 1] as number] === 1 ? at + 2 : this.#unicode(at)
      this.escaped = true
    }
    return at
  }

  /** The offset of the next special byte, at most `until`. */
  #plain(from: number, until: number): number {
    const near = this.#byWords(from, Math.min(until, from + NATIVE_AFTER_BYTES))
    if (near < from + NATIVE_AFTER_BYTES || near >= until) return near
    return this.#control(near, Math.min(this.#next(near), until))
  }

  #byWords(from: number, until: number): number {
    const bytes = this.#bytes
    const words = this.#words
    const shift = this.#shift
    let at = from
    for (; at < until && ((at + shift) & 3) !== 0; at++) if (SPECIAL[bytes[at] as number] === 1) return at
    const end = (until + shift) >> 2
    let word = (at + shift) >> 2
    for (; word < end; word++) {
      const four = words[word] as number
      const quote = four ^ 0x22222222
      const slash = four ^ 0x5c5c5c5c
      // The usual test for a zero byte, three times: exact about whether there is one, which is all that is asked.
      const hits =
        ((quote - 0x01010101) & ~quote) | ((slash - 0x01010101) & ~slash) | ((four - 0x20202020) & ~four)
      if ((hits & 0x80808080) !== 0) break
    }
    at = Math.max(at, (word << 2) - shift)
    for (; at < until; at++) if (SPECIAL[bytes[at] as number] === 1) return at
    return until
  }

  /** The nearer of the next quote and the next backslash; the length when there is neither. */
  #next(from: number): number {
    if (this.#quote < from) this.#quote = this.#find(QUOTE, from)
    if (this.#backslash < from) this.#backslash = this.#find(BACKSLASH, from)
    return Math.min(this.#quote, this.#backslash)
  }

  #find(byte: number, from: number): number {
    const found = this.#bytes.indexOf(byte, from)
    return found === -1 ? this.#bytes.length : found
  }

  /** The offset of the first control character, or `until`. */
  #control(from: number, until: number): number {
    const bytes = this.#bytes
    const words = this.#words
    const shift = this.#shift
    let at = from
    for (; at < until && ((at + shift) & 3) !== 0; at++) if ((bytes[at] as number) < SPACE) return at
    const end = ((until + shift) >> 2) - 3
    let word = (at + shift) >> 2
    for (; word < end; word += 4) {
      const a = words[word] as number
      const b = words[word + 1] as number
      const c = words[word + 2] as number
      const d = words[word + 3] as number
      const hits =
        ((a - 0x20202020) & ~a) | ((b - 0x20202020) & ~b) | ((c - 0x20202020) & ~c) | ((d - 0x20202020) & ~d)
      if ((hits & 0x80808080) !== 0) break
    }
    at = Math.max(at, (word << 2) - shift)
    for (; at < until; at++) if ((bytes[at] as number) < SPACE) return at
    return until
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

function isHexDigit(byte: number | undefined): boolean {
  if (byte === undefined) return false
  const lower = byte | 0x20
  return (byte >= 0x30 && byte <= 0x39) || (lower >= 0x61 && lower <= 0x66)
}
