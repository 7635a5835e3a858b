import { PIECE_BYTES, type Pieces } from '../call/in-pieces.ts'

const BACKSLASH = 0x5c
const U = 0x75

/** What stands for an escaped byte: itself, but for five letters (RFC 8259 section 7). */
const SHORT = Uint8Array.from({ length: 256 }, (_, byte) => byte)
for (const [letter, text] of Object.entries({ b: '\b', f: '\f', n: '\n', r: '\r', t: '\t' })) {
  SHORT[letter.charCodeAt(0)] = text.charCodeAt(0)
}

/** The value of a hexadecimal digit, or -1. */
const HEX = new Int8Array(256).fill(-1)
for (const digit of '0123456789abcdefABCDEF') HEX[digit.charCodeAt(0)] = Number.parseInt(digit, 16)

/**
 * Replaces the escapes of JSON text, one level of them; `undefined` when there is none. `memory`, where the answer
 * goes, may be the text's own; omitted = new memory. Yields after every piece.
 */
export function* unescaping(bytes: Uint8Array, memory?: Uint8Array): Pieces<Uint8Array | undefined> {
  let from = bytes.indexOf(BACKSLASH)
  if (from === -1) return undefined
  const out = memory ?? new Uint8Array(bytes.length)
  out.set(bytes.subarray(0, from))
  let to = from
  for (let end = from; end < bytes.length; ) {
    end = Math.min(bytes.length, from + PIECE_BYTES)
    const { read, written } = unescapeInto(out, { bytes: bytes.subarray(from, end), to })
    from += read
    to = written
    yield
  }
  // An escape that the end cut off.
  out.set(bytes.subarray(from), to)
  return out.subarray(0, to + bytes.length - from)
}

/** As {@link unescaping}, for JSON text that comes in pieces, cut anywhere. What is between strings stays as it is. */
export class Unescape {
  #open: Uint8Array = new Uint8Array(0)

  /** The next piece, unescaped; the beginning of an escape at its end waits for the rest. */
  push(piece: Uint8Array): Uint8Array {
    const bytes = this.#open.length === 0 ? piece : Buffer.concat([this.#open, piece])
    if (!bytes.includes(BACKSLASH)) {
      this.#open = bytes.subarray(0, 0)
      return bytes
    }
    const out = new Uint8Array(bytes.length)
    const { read, written } = unescapeInto(out, { bytes, to: 0 })
    this.#open = Uint8Array.from(bytes.subarray(read))
    return out.subarray(0, written)
  }
}

/**
 * Unescapes a piece into `out`, from `to` on. Stops before an escape that is not complete. The output is never longer
 * than the input, so that they may share memory.
 */
function unescapeInto(
  out: Uint8Array,
  { bytes, to: start }: { readonly bytes: Uint8Array; readonly to: number },
): { read: number; written: number } {
  const last = bytes.lastIndexOf(BACKSLASH)
  let to = start
  let at = 0
  while (at <= last) {
    while (bytes[at] !== BACKSLASH) out[to++] = bytes[at++] as number
    const sign = bytes[at + 1]
    if (sign === undefined) return { read: at, written: to }
    const code = sign === U ? codeAt(bytes, at + 2) : undefined
    if (code === 'open') return { read: at, written: to }
    if (code === undefined) {
      out[to++] = SHORT[sign] as number
      at += 2
    } else {
      to = writeCode(out, to, code)
      at += 6
    }
  }
  out.set(bytes.subarray(at), to)
  return { read: bytes.length, written: to + bytes.length - at }
}

/** Four hexadecimal digits; `open` when the end comes before they are complete, `undefined` when they are none. */
function codeAt(bytes: Uint8Array, from: number): number | 'open' | undefined {
  let code = 0
  for (let at = from; at < from + 4; at++) {
    if (at >= bytes.length) return 'open'
    const digit = HEX[bytes[at] as number] as number
    if (digit < 0) return undefined
    code = code * 16 + digit
  }
  return code
}

/** As UTF-8; half of a pair alone is no character, but no secret has one either. */
function writeCode(out: Uint8Array, to: number, code: number): number {
  if (code < 0x80) {
    out[to] = code
    return to + 1
  }
  if (code < 0x800) {
    out[to] = 0xc0 | (code >> 6)
    out[to + 1] = 0x80 | (code & 0x3f)
    return to + 2
  }
  out[to] = 0xe0 | (code >> 12)
  out[to + 1] = 0x80 | ((code >> 6) & 0x3f)
  out[to + 2] = 0x80 | (code & 0x3f)
  return to + 3
}
