import { isUtf8 } from 'node:buffer'
import { limits } from '@sandbox/protocol'
import { numberEnd } from './json-number.ts'
import { JsonProblem } from './json-problem.ts'
import { OpenNames } from './open-names.ts'
import { ShortStrings } from './short-strings.ts'
import { StringRuns } from './string-run.ts'

/** What {@link JsonReader.next} found. */
export const token = {
  /** The allowance is spent; nothing was read. */
  more: 0,
  /** The text ended, and it was one JSON value. */
  done: 1,
  objectStart: 2,
  objectEnd: 3,
  arrayStart: 4,
  arrayEnd: 5,
  /** A field's name; its value is next. */
  key: 6,
  string: 7,
  number: 8,
  true: 9,
  false: 10,
  null: 11,
} as const

/** One of {@link token}. */
export type Token = (typeof token)[keyof typeof token]

/** Longest name, in bytes: each is decoded in one go. */
const NAME_BYTES = 64 * 1024

/** What may come next. */
const expect = {
  value: 0,
  valueOrEnd: 1,
  key: 2,
  keyOrEnd: 3,
  colon: 4,
  commaOrEnd: 5,
  /** The rest of a string. */
  string: 6,
  end: 7,
} as const
type Expect = (typeof expect)[keyof typeof expect]

/**
 * Reads one JSON text (RFC 8259) piece by piece, by offsets: nothing is built but the names of fields. Stricter
 * than `JSON.parse` in five points: a name may stand once per object and has at most 64 KiB, a number has at most
 * 192 KiB, nesting ends at 64 levels, and at most 65,536 names are open at a time. Invalid UTF-8 and a byte order mark
 * are refused. Every refusal is a {@link JsonProblem}, thrown.
 */
export class JsonReader {
  readonly bytes: Buffer
  /** Of the last token: its first byte and the byte after it, quotes included. */
  start = 0
  end = 0
  /** Whether the last string or name has escapes. */
  escaped = false
  /** The last name, decoded. */
  name = ''
  readonly #runs: StringRuns
  readonly #names = new OpenNames()
  readonly #strings: ShortStrings
  /** Per open container: whether what it stands in is an object. */
  readonly #objects: boolean[] = []
  #inObject = false
  #expect: Expect = expect.value
  /** Of the string that is being read. */
  #isName = false
  #at = 0
  #until = 0

  /** `bytes` must not change while it is read. */
  constructor(bytes: Uint8Array) {
    this.bytes = Buffer.isBuffer(bytes)
      ? bytes
      : Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
    this.#runs = new StringRuns(this.bytes)
    this.#strings = new ShortStrings(this.bytes)
  }

  /** Lets the reader go on for about so many bytes, which are checked to be UTF-8. */
  allow(bytes: number): void {
    const { length } = this.bytes
    const from = this.#until
    let until = Math.min(length, Math.max(from, this.#at) + bytes)
    // Not within a character: at most three bytes of one follow its first.
    for (let i = 0; i < 3 && until < length && ((this.bytes[until] as number) & 0xc0) === 0x80; i++) until++
    if (!isUtf8(this.bytes.subarray(from, until))) throw new JsonProblem('the text is not UTF-8', from)
    this.#until = until
  }

  /** Reads the next token. After `more`, {@link allow} more and call again. */
  next(): Token {
    if (this.#expect === expect.string) return this.#string()
    for (;;) {
      const byte = this.#skipSpace()
      if (byte === -1) return this.#until < this.bytes.length ? token.more : this.#done()
      switch (this.#expect) {
        case expect.value:
          return this.#value(byte)
        case expect.commaOrEnd:
          if (byte !== 0x2c) return this.#closeAs(byte)
          this.#skip(this.#inObject ? expect.key : expect.value)
          break
        case expect.key:
          return this.#key(byte)
        case expect.colon:
          if (byte !== 0x3a) throw this.#problem('a field has no colon')
          this.#skip(expect.value)
          break
        case expect.keyOrEnd:
          return byte === 0x7d ? this.#close(token.objectEnd) : this.#key(byte)
        case expect.valueOrEnd:
          return byte === 0x5d ? this.#close(token.arrayEnd) : this.#value(byte)
        default:
          throw this.#problem('something follows the JSON text')
      }
    }
  }

  /** The decoded text of a string that was read: the offsets are those of the token. */
  text(start: number, end: number, escaped: boolean): string {
    return this.#strings.decode(start + 1, end - 1, escaped)
  }

  /** The next byte that is no white space, or -1 where the allowance ends. */
  #skipSpace(): number {
    const { bytes } = this
    const until = this.#until
    let at = this.#at
    let byte = -1
    for (; at < until; at++) {
      byte = bytes[at] as number
      if (byte > 0x20 || (byte !== 0x20 && byte !== 0x0a && byte !== 0x0d && byte !== 0x09)) break
    }
    this.#at = at
    return at < until ? byte : -1
  }

  #done(): Token {
    if (this.#expect !== expect.end) throw this.#problem('the JSON text ends too early')
    return token.done
  }

  /** Goes over a comma or colon. */
  #skip(then: Expect): void {
    this.#at++
    this.#expect = then
  }

  #closeAs(byte: number): Token {
    if (byte !== (this.#inObject ? 0x7d : 0x5d))
      throw this.#problem('a comma or a closing bracket is missing')
    return this.#close(this.#inObject ? token.objectEnd : token.arrayEnd)
  }

  #value(byte: number): Token {
    const start = this.#at
    this.start = start
    if (byte === 0x22) return this.#openString(false)
    if (byte === 0x7b || byte === 0x5b) return this.#open(byte === 0x7b)
    const found = this.#scalar(byte, start)
    this.#at = this.end
    this.#afterValue()
    return found
  }

  #scalar(byte: number, start: number): Token {
    if (byte === 0x2d || (byte >= 0x30 && byte <= 0x39)) {
      this.end = numberEnd(this.bytes, start)
      return token.number
    }
    if (byte === 0x74 && this.#is('true', start)) return token.true
    if (byte === 0x66 && this.#is('false', start)) return token.false
    if (byte === 0x6e && this.#is('null', start)) return token.null
    throw this.#problem('a value is not JSON')
  }

  #is(literal: string, start: number): boolean {
    for (let i = 1; i < literal.length; i++) if (this.bytes[start + i] !== literal.charCodeAt(i)) return false
    this.end = start + literal.length
    return true
  }

  #key(byte: number): Token {
    if (byte !== 0x22) throw this.#problem('a field has no name in quotes')
    this.start = this.#at
    return this.#openString(true)
  }

  #openString(isName: boolean): Token {
    this.#isName = isName
    this.#runs.escaped = false
    this.#at++
    this.#expect = expect.string
    return this.#string()
  }

  #string(): Token {
    const at = this.#runs.read(this.#at, this.#until)
    this.#at = at
    if (this.#isName && at - this.start > NAME_BYTES) throw this.#problem('a name is too long')
    if (at >= this.#until) {
      if (this.#until < this.bytes.length) return token.more
      throw this.#problem('a string has no end')
    }
    this.#at = this.end = at + 1
    this.escaped = this.#runs.escaped
    if (!this.#isName) {
      this.#afterValue()
      return token.string
    }
    this.name = this.#strings.decode(this.start + 1, at, this.escaped)
    const problem = this.#names.add(this.name)
    if (problem !== undefined) throw new JsonProblem(problem, this.start)
    this.#expect = expect.colon
    return token.key
  }

  #open(isObject: boolean): Token {
    if (this.#objects.length >= limits.JSON_DEPTH)
      throw this.#problem(`the JSON is nested deeper than ${limits.JSON_DEPTH} levels`)
    this.#objects.push(this.#inObject)
    this.#inObject = isObject
    if (isObject) this.#names.open()
    this.end = ++this.#at
    this.#expect = isObject ? expect.keyOrEnd : expect.valueOrEnd
    return isObject ? token.objectStart : token.arrayStart
  }

  #close(found: Token): Token {
    this.#inObject = this.#objects.pop() as boolean
    if (found === token.objectEnd) this.#names.close()
    this.start = this.#at
    this.end = ++this.#at
    this.#afterValue()
    return found
  }

  #afterValue(): void {
    this.#expect = this.#objects.length === 0 ? expect.end : expect.commaOrEnd
  }

  #problem(problem: string): JsonProblem {
    return new JsonProblem(problem, this.#at)
  }
}
