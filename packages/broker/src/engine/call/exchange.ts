/**
 * One request of a guest, as it came off the wire. Nothing in it is checked. Listeners make these; the call
 * pipeline reads them, so that it depends on no HTTP library.
 */
export interface BrokerRequest {
  readonly method: string
  /** The request-target, undecoded. */
  readonly target: string
  /** Names and values in turn, duplicates kept. */
  readonly rawHeaders: readonly string[]
  /** Read at most once. Leaving the loop early must not close the connection. */
  readonly body: AsyncIterable<Uint8Array>
  /** Fires when the guest left. */
  readonly signal: AbortSignal
}

/** A body that is not there yet as a whole; read once. Leaving its loop early ends what makes it. */
export type AnswerStream = AsyncIterable<Uint8Array>

/** What the guest gets. */
export interface BrokerAnswer {
  readonly status: number
  /** Without framing headers: those are the listener's. */
  readonly headers: Readonly<Record<string, string>>
  readonly body: Uint8Array | AnswerStream
  /** When it fires before the body went out, the connection is closed instead. */
  readonly signal?: AbortSignal
  /**
   * To be called when the body went out (`sent`) or never will. It frees the call's slot and reports the
   * call. Idempotent; never throws.
   */
  ended(sent: boolean): void
}

/** Answers one request. Never rejects. */
export type BrokerHandler = (request: BrokerRequest) => Promise<BrokerAnswer>
