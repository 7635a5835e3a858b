import { Readable } from 'node:stream'
import { limits } from '@sandbox/protocol'
import { GrowingBytes } from './growing-bytes.ts'
import { CallRefusal } from './refusal.ts'

/** How a body is read. */
export interface ReadBodyOptions {
  /** A stream is read by its events, which costs less; on the way out it is paused, not destroyed. */
  readonly body: AsyncIterable<Uint8Array> | StreamBody
  /** As announced, in bytes. */
  readonly contentLength: number | undefined
  readonly limitBytes: number
  /** Longest silence in milliseconds; omitted = as long as the signal allows. */
  readonly idleMs?: number
  /** Longest time for all of it in milliseconds; omitted = as long as the signal allows. */
  readonly wholeMs?: number
  readonly signal: AbortSignal
}

/** A body that comes as a stream. */
export interface StreamBody {
  readonly stream: Readable
}

/**
 * Reads a body into memory, never more of it than the limit. An announced length over the limit is refused
 * before the first byte.
 * @throws CallRefusal `body_too_large`; `timeout` after too long a silence or time; `body_invalid` when the body broke off,
 * has another length than announced, or comes in too many small pieces. Rejects with the signal's reason when that fires.
 */
export async function readBody(options: ReadBodyOptions): Promise<Uint8Array> {
  const { body, contentLength, limitBytes, signal } = options
  if (contentLength !== undefined && contentLength > limitBytes) {
    throw new CallRefusal('body_too_large', { limitBytes })
  }
  signal.throwIfAborted()
  return await new Promise<Uint8Array>((resolve, reject) => {
    const reading = new Reading(options, { resolve, reject })
    reading.follow(body instanceof Readable ? fromStream(body, reading) : fromBody(body, reading))
  })
}

/** A chunk beyond this is copied, as several are: so a large body has its memory to itself. */
const LARGE_BYTES = 64 * 1024

/** Room behind a body for what a table adds to it, so that a large one can be written within its own memory. */
const SPARE_BYTES = 4096

/** Whether a body that {@link readBody} made has its `ArrayBuffer` to itself: large ones have. */
export function ownsMemory(body: Uint8Array): boolean {
  return body.byteLength > LARGE_BYTES
}

/** Pieces that a body may come in, however small they are. */
const FREE_PIECES = 16_384
/** What more of them must have on average, in bytes: a piece costs about the work of so many. */
export const CRUMB_BYTES = 64

const NOTHING = Buffer.alloc(0)

/** Who waits for a body. */
interface Waiting {
  resolve(bytes: Uint8Array): void
  reject(reason: unknown): void
}

/** A body on its way into memory. Ends once, with all of it or with a refusal, and then keeps nothing of it. */
class Reading {
  readonly #options: ReadBodyOptions
  readonly #onAbort = () => this.fail(this.#options.signal.reason)
  readonly #onTime = () => this.#watch()
  readonly #startedMs = performance.now()
  #lastMs = this.#startedMs
  #timer: NodeJS.Timeout | undefined
  /** Nobody once it is over. */
  #waiting: Waiting | undefined
  /** The first chunk, as long as there is no other: many bodies have one. */
  #only: Uint8Array | undefined
  #gathered: GrowingBytes | undefined
  #size = 0
  #pieces = 0
  #stop: (() => void) | undefined

  constructor(options: ReadBodyOptions, waiting: Waiting) {
    this.#options = options
    this.#waiting = waiting
    options.signal.addEventListener('abort', this.#onAbort)
    this.#watch()
  }

  /** One timer for both times, and none of it per chunk: bodies are quick. */
  #watch(): void {
    const { idleMs = Number.POSITIVE_INFINITY, wholeMs = Number.POSITIVE_INFINITY } = this.#options
    const untilMs = Math.min(this.#lastMs + idleMs, this.#startedMs + wholeMs)
    if (untilMs === Number.POSITIVE_INFINITY) return
    const leftMs = Math.ceil(untilMs - performance.now())
    if (leftMs > 0) this.#timer = setTimeout(this.#onTime, leftMs)
    else this.fail(new CallRefusal('timeout'))
  }

  /** What lets go of the source when the reading fails before the source ends; it may be over already. */
  follow(stop: () => void): void {
    if (this.#waiting === undefined) stop()
    else this.#stop = stop
  }

  take(chunk: Uint8Array): void {
    if (this.#waiting === undefined) return
    this.#size += chunk.byteLength
    this.#pieces += 1
    const { limitBytes, contentLength = limitBytes } = this.#options
    if (this.#size > limitBytes) this.fail(new CallRefusal('body_too_large', { limitBytes }))
    else if (this.#size > contentLength || this.#isCrumbled()) this.fail(new CallRefusal('body_invalid'))
    else this.#keep(chunk)
  }

  /** Bytes one by one take thousands of times the work: no client sends them so, and others would wait. */
  #isCrumbled(): boolean {
    return this.#pieces > FREE_PIECES + this.#size / CRUMB_BYTES
  }

  #keep(chunk: Uint8Array): void {
    this.#lastMs = performance.now()
    const isFirst = this.#size === chunk.byteLength
    if (isFirst && chunk.byteLength <= LARGE_BYTES) {
      this.#only = chunk
      return
    }
    const { contentLength = this.#size, limitBytes } = this.#options
    this.#gathered ??= new GrowingBytes(contentLength + SPARE_BYTES, limitBytes + SPARE_BYTES)
    if (this.#only !== undefined) this.#gathered.add(this.#only)
    this.#only = undefined
    this.#gathered.add(chunk)
  }

  end(): void {
    const { contentLength } = this.#options
    if (contentLength !== undefined && contentLength !== this.#size) {
      this.fail(new CallRefusal('body_invalid'))
      return
    }
    const bytes = this.#gathered?.bytes ?? this.#only ?? NOTHING
    this.#settle()?.resolve(bytes)
  }

  /** The body broke off. */
  break(cause?: unknown): void {
    if (this.#waiting !== undefined) this.fail(new CallRefusal('body_invalid', { cause }))
  }

  fail(reason: unknown): void {
    const waiting = this.#settle()
    if (waiting === undefined) return
    waiting.reject(reason)
    this.#stop?.()
  }

  /** Its source may live on, and its listeners with it: what was read does not. */
  #settle(): Waiting | undefined {
    const waiting = this.#waiting
    this.#waiting = undefined
    this.#only = undefined
    this.#gathered = undefined
    clearTimeout(this.#timer)
    this.#options.signal.removeEventListener('abort', this.#onAbort)
    return waiting
  }
}

function fromStream(stream: Readable, reading: Reading): () => void {
  const onData = (chunk: Uint8Array) => reading.take(chunk)
  const onEnd = () => reading.end()
  const onError = (error: unknown) => reading.break(error)
  const onClose = () => reading.break()
  stream.on('error', onError)
  stream.on('end', onEnd)
  stream.on('close', onClose)
  stream.on('data', onData)
  if (stream.readableEnded) reading.end()
  else if (stream.destroyed) reading.break()
  return () => {
    stream.off('data', onData)
    stream.off('end', onEnd)
    stream.off('close', onClose)
    // A stream that nobody reads any more may fail too, and must not keep what was read.
    stream.on('error', ignored)
    stream.off('error', onError)
    stream.pause()
  }
}

function ignored(): void {}

function fromBody(body: AsyncIterable<Uint8Array> | StreamBody, reading: Reading): () => void {
  if ('stream' in body) return fromStream(body.stream, reading)
  const reader = body[Symbol.asyncIterator]()
  let open = true
  const pull = async () => {
    try {
      for (;;) {
        const next = await reader.next()
        if (!open) return
        if (next.done === true) return reading.end()
        reading.take(next.value)
      }
    } catch (error) {
      reading.break(error)
    }
  }
  void pull()
  return () => {
    open = false
    // Not awaited: a reader that waits for its next chunk answers only then.
    reader.return?.().catch(() => {})
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
