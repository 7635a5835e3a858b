import type { CallReason } from './call-event.ts'

/** What a refusal can carry besides its reason. */
export interface RefusalDetail extends ErrorOptions {
  /** Whether the same call may work later. Omitted = as the reason says. */
  readonly retry?: boolean
  /** The worker's protocol version, for `protocol_mismatch`. */
  readonly protocol?: number
  /** What is wrong with the input, in our words and without a value of it, for `input_refused`. */
  readonly problem?: string
  /**
   * The whole text for the guest, in place of ours: where clients of a family look for words of their API. It holds
   * nothing but our words, places in the input and short names from it.
   */
  readonly wording?: string
  /** The limit in bytes, for `body_too_large`. */
  readonly limitBytes?: number
  /** How long to wait before the same call may work, in milliseconds. */
  readonly retryAfterMs?: number
}

/** Ends a call with a reason. Thrown inside the broker only; its `cause` stays on the host. */
export class CallRefusal extends Error {
  override readonly name = 'CallRefusal'
  readonly reason: Exclude<CallReason, 'ok'>
  readonly retry: boolean | undefined
  readonly protocol: number | undefined
  readonly problem: string | undefined
  readonly wording: string | undefined
  readonly limitBytes: number | undefined
  readonly retryAfterMs: number | undefined

  constructor(reason: Exclude<CallReason, 'ok'>, detail: RefusalDetail = {}) {
    super(reason, detail)
    this.reason = reason
    this.retry = detail.retry
    this.protocol = detail.protocol
    this.problem = detail.problem
    this.wording = detail.wording
    this.limitBytes = detail.limitBytes
    this.retryAfterMs = detail.retryAfterMs
  }
}
