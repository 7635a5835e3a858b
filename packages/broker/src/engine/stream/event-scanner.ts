import type { SecretMatcher } from '@sandbox/credential-scope'
import type { CallUsage } from '../call/call-event.ts'
import { atOnce, PIECE_BYTES, type Pieces } from '../call/in-pieces.ts'
import { CallRefusal } from '../call/refusal.ts'
import { searching } from '../reflection/scan-json.ts'
import type { FamilyStream, Reading } from '../wire/family.ts'
import { isObject } from '../wire/reading.ts'
import { BlockWindows } from './block-windows.ts'
import type { ServerEvent } from './event-reader.ts'
import { largeValue } from './large-value.ts'

/** Most that waits behind what may become a secret: small events take far more memory than they have bytes. */
const HELD_BYTES = 4 * 1024 * 1024
const HELD_EVENTS = 16_384

/** What a scanner works with. */
export interface EventScannerOptions {
  readonly matcher: SecretMatcher
  readonly family: FamilyStream
  /** Whether the guest asked for token counts; when not, an event that tells nothing else is kept back. */
  readonly usageAsked: boolean
  /** Called with the latest token counts. */
  onUsage(usage: CallUsage): void
  /** Called with the id of a thing that the provider keeps. */
  onCreated(id: string): void
  /** Called with the data of the event in which the provider says that it failed. */
  onFailed?(data: Uint8Array): void
}

/** Looks at each event of a stream before it is passed on, and at what the events spell together. */
export class EventScanner {
  readonly #options: EventScannerOptions
  readonly #windows: BlockWindows
  #waiting: Uint8Array[] = []
  #waitingBytes = 0
  #end: 'open' | 'finished' | 'ended' = 'open'
  #failed = false
  #usage: CallUsage | undefined

  constructor(options: EventScannerOptions) {
    this.#options = options
    this.#windows = new BlockWindows(options.matcher)
  }

  /** `finished`: the stream may end here. `ended`: nothing comes any more. */
  get end(): 'open' | 'finished' | 'ended' {
    return this.#end
  }

  /** Whether the provider said that it failed. */
  get failed(): boolean {
    return this.#failed
  }

  /**
   * Takes an event and answers what may be passed on now: normally this event, nothing while a block ends in
   * what may become a secret, then all that waited.
   * @throws CallRefusal `reflection`: this event carries or completes a secret, and nothing that waited may go
   * out; `upstream_invalid`.
   */
  push(event: ServerEvent): readonly Uint8Array[] {
    return atOnce(this.taking(event))
  }

  /** As {@link EventScanner.push}, for an event that may be large. */
  *taking({ type, data, bytes }: ServerEvent): Pieces<readonly Uint8Array[]> {
    const { matcher, family, usageAsked } = this.#options
    if (yield* searching(bytes, matcher)) throw new CallRefusal('reflection')
    const reading = family.read({ type, data: wordOf(data), value: yield* objectOf(data) })
    for (const { block, text, deeper } of reading.deltas ?? []) {
      for (let from = 0; from < text.length; from += PIECE_BYTES) {
        const piece = text.length <= PIECE_BYTES ? text : text.slice(from, from + PIECE_BYTES)
        if (this.#windows.push({ block, text: piece, deeper })) throw new CallRefusal('reflection')
        if (text !== piece) yield
      }
    }
    for (const prefix of reading.closes ?? []) this.#windows.close(prefix)
    this.#note(reading)
    if (reading.failed === true) this.#options.onFailed?.(data)
    if (reading.usageOnly !== true || usageAsked) {
      this.#waiting.push(bytes)
      this.#waitingBytes += bytes.byteLength
    }
    if (this.#end === 'ended' || !this.#windows.holding) return this.release()
    if (this.#waitingBytes > HELD_BYTES || this.#waiting.length > HELD_EVENTS) {
      throw new CallRefusal('upstream_invalid', { retry: false })
    }
    return []
  }

  #note(reading: Reading): void {
    if (reading.failed === true) this.#failed = true
    if (reading.end !== undefined) this.#end = reading.end
    for (const id of reading.created ?? []) this.#options.onCreated(id)
    if (reading.usage === undefined) return
    this.#usage = { ...this.#usage, ...reading.usage }
    this.#options.onUsage(this.#usage)
  }

  /** All that waits; for a stream that has ended. */
  release(): readonly Uint8Array[] {
    const released = this.#waiting
    this.#waiting = []
    this.#waitingBytes = 0
    return released
  }
}

/** Longest data that is a word, such as `[DONE]`. */
const WORD_BYTES = 64
const SPACE: ReadonlySet<number | undefined> = new Set([0x20, 0x09, 0x0a, 0x0d])
const MOST_SPACE = 1024
const CURLY = 0x7b

function wordOf(data: Uint8Array): string {
  return data.length > WORD_BYTES ? '' : textOf(data)
}

function textOf(data: Uint8Array): string {
  return Buffer.from(data.buffer, data.byteOffset, data.byteLength).toString('utf8')
}

/** Clients parse it with white space before it as well. */
function* objectOf(data: Uint8Array): Pieces<Readonly<Record<string, unknown>> | undefined> {
  let first = 0
  while (first < MOST_SPACE && SPACE.has(data[first])) first += 1
  if (first < MOST_SPACE && data[first] !== CURLY) return undefined
  if (data.length > PIECE_BYTES) {
    const value = yield* largeValue(data)
    return isObject(value) ? value : undefined
  }
  try {
    const value: unknown = JSON.parse(textOf(data))
    return isObject(value) ? value : undefined
  } catch {
    return undefined
  }
}
