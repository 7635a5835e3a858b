import type { CallReason } from './call-event.ts'
import type { AnswerStream } from './exchange.ts'

/** A stream that knows how it ended. */
export interface PassedStream extends AnswerStream {
  /** `aborted` until its end. */
  readonly reason: CallReason
}

/** An answer in an upstream's own bytes, which whoever made it has searched for secrets, or is searching. */
export class PassedAnswer {
  readonly status: number
  /** Without framing headers. */
  readonly headers: Readonly<Record<string, string>>
  readonly body: Uint8Array | PassedStream
  readonly #reason: CallReason

  constructor(answer: {
    readonly status: number
    readonly headers: Readonly<Record<string, string>>
    readonly body: Uint8Array | PassedStream
    /** How the call ended; omitted = as the stream says, or `ok`. */
    readonly reason?: CallReason
  }) {
    this.status = answer.status
    this.headers = answer.headers
    this.body = answer.body
    this.#reason = answer.reason ?? 'ok'
  }

  /** How the call ended, as far as it is known now. */
  get reason(): CallReason {
    return this.body instanceof Uint8Array ? this.#reason : this.body.reason
  }
}
