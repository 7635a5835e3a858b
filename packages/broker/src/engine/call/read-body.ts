import { limits } from '@sandbox/protocol'
import { raceSignal } from './call-signal.ts'
import { CallRefusal } from './refusal.ts'

/** How a body is read. */
export interface ReadBodyOptions {
  readonly body: AsyncIterable<Uint8Array>
  /** As announced, in bytes. */
  readonly contentLength: number | undefined
  readonly limitBytes: number
  /** Longest silence in milliseconds; omitted = as long as the signal allows. */
  readonly idleMs?: number
  readonly signal: AbortSignal
}

/**
 * Reads a body into memory, never more of it than the limit. An announced length over the limit is refused
 * before the first byte.
 * @throws CallRefusal `body_too_large`; `timeout` after too long a silence; `body_invalid` when the body broke off or has another length than
 * announced. Rejects with the signal's reason when that fires.
 */
export async function readBody(options: ReadBodyOptions): Promise<Uint8Array> {
  const { body, contentLength, limitBytes, idleMs, signal } = options
  const tooLarge = () => new CallRefusal('body_too_large', { limitBytes })
  if (contentLength !== undefined && contentLength > limitBytes) throw tooLarge()
  const room = roomFor(contentLength)
  const chunks: Uint8Array[] = []
  let size = 0
  const reader = body[Symbol.asyncIterator]()
  try {
    for (;;) {
      const next = await raceSignal(soon(readChunk(reader), idleMs), signal)
      if (next === undefined) break
      size += next.byteLength
      if (size > limitBytes) throw tooLarge()
      if (room === undefined) chunks.push(next)
      else if (size > room.length) throw new CallRefusal('body_invalid')
      else room.set(next, size - next.byteLength)
    }
  } finally {
    // Not awaited: a reader that waits for its next chunk answers only then.
    reader.return?.().catch(() => {})
  }
  if (contentLength !== undefined && contentLength !== size) throw new CallRefusal('body_invalid')
  if (room !== undefined) return room
  return chunks.length === 1 ? (chunks[0] as Uint8Array) : Buffer.concat(chunks, size)
}

/** From this size on, a body is read into one piece of memory: its chunks would be there beside it for a while. */
const LARGE_BYTES = 64 * 1024

/** Memory that is not written to is not taken, so an announced length alone costs nothing. */
function roomFor(contentLength: number | undefined): Uint8Array | undefined {
  return contentLength !== undefined && contentLength > LARGE_BYTES
    ? Buffer.allocUnsafeSlow(contentLength)
    : undefined
}

function soon<T>(chunk: Promise<T>, idleMs: number | undefined): Promise<T> {
  if (idleMs === undefined) return chunk
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => reject(new CallRefusal('timeout')), idleMs)
    chunk.then(resolve, reject).finally(() => clearTimeout(timer))
  })
}

async function readChunk(reader: AsyncIterator<Uint8Array>): Promise<Uint8Array | undefined> {
  try {
    const next = await reader.next()
    return next.done === true ? undefined : next.value
  } catch (cause) {
    throw new CallRefusal('body_invalid', { cause })
  }
}

const decoder = new TextDecoder('utf-8', { fatal: true })

/**
 * A JSON object from bytes: UTF-8, no array or other value at the top, nesting at most 64.
 * @throws CallRefusal `body_invalid`
 */
export function parseObject(bytes: Uint8Array): Record<string, unknown> {
  if (isDeep(bytes)) throw new CallRefusal('body_invalid')
  const value = parseJson(bytes)
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    throw new CallRefusal('body_invalid')
  }
  return value as Record<string, unknown>
}

function parseJson(bytes: Uint8Array): unknown {
  try {
    return JSON.parse(decoder.decode(bytes))
  } catch {
    // The parser's message quotes the body, so it is not kept.
    throw new CallRefusal('body_invalid')
  }
}

const QUOTE = 0x22
const BACKSLASH = 0x5c
/** `[` and `{`, `]` and `}` differ from each other in this bit only. */
const CURLY = 0x20

/** Whether JSON text nests deeper than {@link limits.JSON_DEPTH}. Of text that is no JSON it says anything. */
function isDeep(bytes: Uint8Array): boolean {
  let depth = 0
  let inString = false
  for (let at = 0; at < bytes.length; at++) {
    const byte = bytes[at] as number
    if (byte === QUOTE) inString = !inString
    else if (inString) {
      if (byte === BACKSLASH) at += 1
    } else if ((byte | CURLY) === 0x7b) {
      depth += 1
      if (depth > limits.JSON_DEPTH) return true
    } else if ((byte | CURLY) === 0x7d) depth -= 1
  }
  return false
}
