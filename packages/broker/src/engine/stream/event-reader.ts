import { CallRefusal } from '../call/refusal.ts'

/** One server-sent event. */
export interface ServerEvent {
  /** The `event` field; empty when there was none. */
  readonly type: string
  /** The `data` lines, joined by LF. */
  readonly data: string
  /** The event as it is passed on: its `event` and `data` lines, byte for byte, each ended by LF. */
  readonly bytes: Uint8Array
}

const LF = 0x0a
const CR = 0x0d
const COLON = 0x3a
const SPACE = 0x20

/**
 * Cuts a stream of bytes into server-sent events, in whatever pieces it comes (WHATWG HTML, section 9.2.6: CR, LF
 * and CRLF, a BOM, comments, several data lines). Comments and fields that no model family uses (`id`, `retry`,
 * unknown ones) are left out of what is passed on, and so is an event that was not complete at the end.
 */
export class EventReader {
  readonly #limitBytes: number
  /** The beginning of a line whose end has not come yet. */
  #rest: Uint8Array[] = []
  /** Lines of the event at work, and their size with that of `#rest`. */
  #kept: Buffer[] = []
  #data: string[] = []
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
   * @throws CallRefusal `upstream_invalid` for an event over the limit.
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
      const event = this.#line(this.#take(bytes.subarray(from, end)))
      if (event !== undefined) events.push(event)
      from = end + 1
      if (end === cr) {
        if (from === bytes.length) this.#afterCr = true
        else if (bytes[from] === LF) from += 1
      }
    }
    // A copy: whoever owns the chunk may use its memory again.
    if (from < bytes.length) this.#keep(Uint8Array.from(bytes.subarray(from)))
    return events
  }

  #keep(part: Uint8Array): void {
    this.#grow(part.length)
    this.#rest.push(part)
  }

  #grow(bytes: number): void {
    this.#size += bytes
    if (this.#size > this.#limitBytes) throw new CallRefusal('upstream_invalid', { retry: false })
  }

  #take(end: Buffer): Buffer {
    this.#grow(end.length)
    const line = this.#rest.length === 0 ? end : Buffer.concat([...this.#rest, end])
    this.#rest = []
    if (!this.#first) return line
    this.#first = false
    const marked = line[0] === 0xef && line[1] === 0xbb && line[2] === 0xbf
    return marked ? line.subarray(3) : line
  }

  #line(line: Buffer): ServerEvent | undefined {
    if (line.length === 0) return this.#dispatch()
    const colon = line.indexOf(COLON)
    const name = line.toString('latin1', 0, colon === -1 ? line.length : colon)
    if (name !== 'data' && name !== 'event') return undefined
    const from = colon === -1 ? line.length : colon + (line[colon + 1] === SPACE ? 2 : 1)
    const value = line.toString('utf8', from)
    if (name === 'data') this.#data.push(value)
    else this.#type = value
    this.#kept.push(Buffer.from(line))
    return undefined
  }

  #dispatch(): ServerEvent | undefined {
    const event =
      this.#data.length === 0
        ? undefined
        : { type: this.#type, data: this.#data.join('\n'), bytes: blockOf(this.#kept) }
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

function blockOf(lines: readonly Buffer[]): Uint8Array {
  const size = lines.reduce((sum, line) => sum + line.length + 1, 1)
  const block = new Uint8Array(size)
  let at = 0
  for (const line of lines) {
    block.set(line, at)
    at += line.length
    block[at++] = LF
  }
  block[at] = LF
  return block
}
