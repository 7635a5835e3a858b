import type { CallReason } from '../call/call-event.ts'
import { wireError } from '../call/guest-answer.ts'
import { inPieces, PIECE_BYTES } from '../call/in-pieces.ts'
import { CallRefusal } from '../call/refusal.ts'
import type { UpstreamAnswer } from '../upstream/open-upstream.ts'
import { EventReader } from './event-reader.ts'
import { EventScanner, type EventScannerOptions } from './event-scanner.ts'
import { PatientReader } from './patient-reader.ts'

/** Bounds of one stream. */
export interface StreamLimits {
  /** Longest event. */
  readonly eventBytes: number
  /** The whole stream, decoded. */
  readonly totalBytes: number
  /** Silence, or nothing but comments, after which a comment of ours keeps the guest's side alive, in milliseconds. */
  readonly keepAliveMs: number
}

/** What streams of models need at most: an event may hold a whole answer, or an image. */
export const STREAM_LIMITS: StreamLimits = {
  eventBytes: 16 * 1024 * 1024,
  totalBytes: 256 * 1024 * 1024,
  keepAliveMs: 15_000,
}

/** What a stream is made of. */
export interface EventAnswerOptions extends EventScannerOptions {
  readonly upstream: UpstreamAnswer
  /** The call's. When it fires, the stream breaks off. */
  readonly signal: AbortSignal
  readonly limits: StreamLimits
  /** Called when the upstream sends a secret back, before the guest hears of it. */
  onReflection(): void
}

const KEEP_ALIVE = new TextEncoder().encode(': keep-alive\n\n')

/**
 * A stream of events on its way from an upstream to a guest; to be read once. It ends with what the provider said
 * at the end, or with an error event of its family, and never as if all were well when it is not.
 */
export class EventAnswer implements AsyncIterable<Uint8Array> {
  readonly #options: EventAnswerOptions
  readonly #scanner: EventScanner
  #reason: CallReason = 'aborted'

  constructor(options: EventAnswerOptions) {
    this.#options = options
    this.#scanner = new EventScanner(options)
  }

  /** How the stream ended; `aborted` until then. */
  get reason(): CallReason {
    return this.#reason
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<Uint8Array, void> {
    const { upstream, family, signal, limits } = this.#options
    const chunks = upstream.body[Symbol.asyncIterator]()
    const reader = new PatientReader(chunks, limits.keepAliveMs)
    try {
      yield* this.#events(reader)
      this.#reason = this.#scanner.failed ? 'upstream_error' : 'ok'
      upstream.finish(chunks)
    } catch (error) {
      upstream.cancel()
      signal.throwIfAborted()
      const refusal =
        error instanceof CallRefusal ? error : new CallRefusal('upstream_network', { cause: error })
      this.#reason = refusal.reason
      yield family.failure(wireError(refusal))
    } finally {
      reader.stop()
      if (this.#reason === 'aborted') upstream.cancel()
    }
  }

  /** Everything up to an end that the provider declared. Throws a refusal in place of any other end. */
  async *#events(reader: PatientReader): AsyncGenerator<Uint8Array, void> {
    const { limits } = this.#options
    const events = new EventReader(limits)
    let left = limits.totalBytes
    for (;;) {
      const next = await reader.next()
      if (next === undefined) {
        yield KEEP_ALIVE
        continue
      }
      if (next.done === true) break
      left -= next.value.byteLength
      if (left < 0) throw new CallRefusal('upstream_invalid', { retry: false })
      const { out, refusal } = await this.#scan(events, next.value)
      if (out.length > 0) {
        yield out.length === 1 ? (out[0] as Uint8Array) : Buffer.concat(out)
        reader.heard()
      }
      if (refusal !== undefined) throw refusal
      if (this.#scanner.end === 'ended') return
    }
    if (this.#scanner.end !== 'finished') throw new CallRefusal('upstream_network')
    yield* this.#scanner.release()
  }

  /** Events before one that is refused may go out. A large one lets others run while it is searched. */
  async #scan(events: EventReader, chunk: Uint8Array): Promise<{ out: Uint8Array[]; refusal?: CallRefusal }> {
    const out: Uint8Array[] = []
    try {
      for (const event of events.push(chunk)) {
        const large = event.bytes.length > PIECE_BYTES
        out.push(
          ...(large
            ? await inPieces(this.#scanner.taking(event), this.#options.signal)
            : this.#scanner.push(event)),
        )
        if (this.#scanner.end === 'ended') break
      }
      return { out }
    } catch (error) {
      if (!(error instanceof CallRefusal)) throw error
      if (error.reason === 'reflection') this.#options.onReflection()
      return { out, refusal: error }
    }
  }
}
