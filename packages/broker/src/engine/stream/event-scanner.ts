import type { SecretMatcher } from '@sandbox/credential-scope'
import type { CallUsage } from '../call/call-event.ts'
import { CallRefusal } from '../call/refusal.ts'
import { bytesCarry } from '../reflection/scan-json.ts'
import type { FamilyStream, Reading } from '../wire/family.ts'
import { isObject } from '../wire/reading.ts'
import { BlockWindows } from './block-windows.ts'
import type { ServerEvent } from './event-reader.ts'

/** Most bytes that wait behind what may become a secret. */
const HELD_BYTES = 4 * 1024 * 1024

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
    const { matcher, family, usageAsked } = this.#options
    const { type, data, bytes } = event
    if (bytesCarry(bytes, matcher)) throw new CallRefusal('reflection')
    const reading = family.read({ type, data, value: objectOf(data) })
    for (const delta of reading.deltas ?? []) {
      if (this.#windows.push(delta)) throw new CallRefusal('reflection')
    }
    for (const prefix of reading.closes ?? []) this.#windows.close(prefix)
    this.#note(reading)
    if (reading.usageOnly !== true || usageAsked) {
      this.#waiting.push(bytes)
      this.#waitingBytes += bytes.byteLength
    }
    if (this.#end === 'ended' || !this.#windows.holding) return this.release()
    if (this.#waitingBytes > HELD_BYTES) throw new CallRefusal('upstream_invalid', { retry: false })
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

/** With the white space of JSON before it: clients parse that as well. */
const OBJECT = /^[ \t\n\r]*\{/

function objectOf(data: string): Readonly<Record<string, unknown>> | undefined {
  if (!OBJECT.test(data)) return undefined
  try {
    const value: unknown = JSON.parse(data)
    return isObject(value) ? value : undefined
  } catch {
    return undefined
  }
}
