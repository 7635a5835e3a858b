import { GrowingBytes } from '../call/growing-bytes.ts'
import { CallRefusal } from '../call/refusal.ts'

/** One server-sent event. */
export interface ServerEvent {
  /** The `event` field; empty when there was none. */
  readonly type: string
  /** The `data` lines, joined by LF; may share memory with `bytes`. */
  readonly data: Uint8Array
  /** The event as it is passed on: its `event` and `data` lines, byte for byte, each ended by LF. */
  readonly bytes: Uint8Array
}

/** Most lines of an event: each is kept by itself until the event is complete. */
const MOST_LINES = 16_384

/** Room for what is yet to come of a line. */
const REST_BYTES = 256

const LF = 0x0a
const CR = 0x0d
const COLON = 0x3a
const SPACE = 0x20
const LONGEST_NAME = 'event'.length
const NOTHING = Buffer.alloc(0)
const ENDS = Buffer.from([LF, LF])

/**
 * Cuts a stream of bytes into server-sent events, in whatever pieces it comes (WHATWG HTML, section 9.2.6: CR, LF
 * and CRLF, a BOM, comments, several data lines). Comments and fields that no model family uses (`id`, `retry`,
 * unknown ones) are left out of what is passed on, and so is an event that was not complete at the end.
 */
export class EventReader {
  readonly #limitBytes: number
  /** The beginning of a line whose end has not come yet. */
  #rest: GrowingBytes | undefined
  /** Lines of the event at work, and their size with that of `#rest`. */
  #kept: Buffer[] = []
  #data: Buffer[] = []
  #type = ''
  #size = 0
  #first = true
  /** The last byte was a CR: an LF right after it belongs to it. */
  #afterCr = false

  /** `eventBytes`: longest event, comments included. */
  constructor(options: { readonly eventBytes: number }) {
    this.#limitBytes = options.eventBytes
  }

  /**
   * The events that these bytes complete.
   * @throws CallRefusal `upstream_invalid` for an event over the limit, or one of more than 16,384 lines.
   */
  push(chunk: Uint8Array): ServerEvent[] {
    const bytes = Buffer.from(chunk.buffer, chunk.byteOffset, chunk.byteLength)
    const events: ServerEvent[] = []
    let from = this.#afterCr && bytes[0] === LF ? 1 : 0
    if (bytes.length > 0) this.#afterCr = false
    let lf = -1
    let cr = -1
    while (from < bytes.length) {
      if (lf < from) lf = indexOf(bytes, LF, from)
      if (cr < from) cr = indexOf(bytes, CR, from)
      const end = Math.min(lf, cr)
      if (end === bytes.length) break
      const whole = this.#rest === undefined
      const event = this.#line(this.#take(bytes.subarray(from, end)), whole)
      if (event !== undefined) events.push(event)
      from = end + 1
      if (end === cr) {
        if (from === bytes.length) this.#afterCr = true
        else if (bytes[from] === LF) from += 1
      }
    }
    if (from < bytes.length) this.#keep(bytes.subarray(from))
    return events
  }

  #keep(part: Buffer): void {
    this.#grow(part.length)
    this.#rest ??= new GrowingBytes(2 * part.length + REST_BYTES, this.#limitBytes + REST_BYTES)
    this.#rest.add(part)
  }

  #grow(bytes: number): void {
    this.#size += bytes
    if (this.#size > this.#limitBytes) throw new CallRefusal('upstream_invalid', { retry: false })
  }

  #take(end: Buffer): Buffer {
    this.#grow(end.length)
    const rest = this.#rest
    this.#rest = undefined
    rest?.add(end)
    rest?.add(ENDS)
    const line = rest?.bytes.subarray(0, -ENDS.length) ?? end
    if (!this.#first) return line
    this.#first = false
    const marked = line[0] === 0xef && line[1] === 0xbb && line[2] === 0xbf
    return marked ? line.subarray(3) : line
  }

  /** `inChunk`: the line is in the chunk's memory, which whoever owns it may use again. */
  #line(line: Buffer, inChunk: boolean): ServerEvent | undefined {
    if (line.length === 0) return this.#dispatch()
    const colon = line.indexOf(COLON)
    const nameEnd = colon === -1 ? line.length : colon
    const name = nameEnd > LONGEST_NAME ? '' : line.toString('latin1', 0, nameEnd)
    if (name !== 'data' && name !== 'event') return undefined
    if (this.#kept.length === MOST_LINES) throw new CallRefusal('upstream_invalid', { retry: false })
    const kept = inChunk ? ended(line) : line
    const from = kept[nameEnd + 1] === SPACE ? nameEnd + 2 : nameEnd + 1
    const value = kept.subarray(Math.min(from, kept.length))
    if (name === 'data') this.#data.push(value)
    else this.#type = value.toString('utf8')
    this.#kept.push(kept)
    return undefined
  }

  #dispatch(): ServerEvent | undefined {
    const event =
      this.#data.length === 0
        ? undefined
        : { type: this.#type, data: joined(this.#data), bytes: blockOf(this.#kept) }
    this.#kept = []
    this.#data = []
    this.#type = ''
    this.#size = 0
    return event
  }
}

/** Where `byte` is, or the length when it is nowhere. */
function indexOf(bytes: Buffer, byte: number, from: number): number {
  const at = bytes.indexOf(byte, from)
  return at === -1 ? bytes.length : at
}

/** A line in memory of its own, with two LF right after it. */
function ended(line: Buffer): Buffer {
  return Buffer.concat([line, ENDS]).subarray(0, -ENDS.length)
}

/** Lines with two LF right after them, each ended by LF, and one LF more. One line, as most events have, is not copied. */
function blockOf(lines: readonly Buffer[]): Uint8Array {
  const [first] = lines
  if (first !== undefined && lines.length === 1) {
    return new Uint8Array(first.buffer, first.byteOffset, first.length + ENDS.length)
  }
  return joined([...lines, NOTHING, NOTHING])
}

/** The lines with an LF between each two. */
function joined(lines: readonly Buffer[]): Uint8Array {
  if (lines.length === 1) return lines[0] as Buffer
  const size = lines.reduce((sum, line) => sum + line.length + 1, -1)
  const block = new Uint8Array(size)
  let at = 0
  for (const line of lines) {
    block.set(line, at)
    at += line.length
    if (at < size) block[at++] = LF
  }
  return block
}
