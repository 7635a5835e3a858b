import type { SandboxCredentialScope } from '@sandbox/credential-scope'
import type { CallEvent } from './call-event.ts'

/** A call that is about to cost something. */
export interface CreditCall {
  /** Who pays. A frozen copy. */
  readonly scope: SandboxCredentialScope
  readonly callId: string
  readonly route: 'model' | 'tool' | 'mcp'
  /** As in the call's event. */
  readonly name?: string
  readonly model?: string
  /** Most tokens that the answer may have. */
  readonly outputTokens?: number
  /** Of the request, as the guest sent it. */
  readonly requestBytes: number
}

/** Whether a call may be made. */
export type CreditAnswer =
  | {
      readonly granted: true
      /**
       * Called once, when the call has ended, with what it came to; also when it was aborted, and when this answer
       * came too late. Without `usage`, the model service told no token counts: what was reserved may be spent.
       */
      settle?(event: CallEvent): void
    }
  | {
      readonly granted: false
      /** When there will be credit again. */
      readonly resetsAt?: Date
    }

/** The host's accounts: they say whether a channel and speaker may still spend, and learn what was spent. */
export interface CallCredit {
  /**
   * Asked once per call, after every check and right before the credential; it must answer within 10 s. So that calls
   * at the same time cannot overdraw together, it takes what the call may cost at most, and gives the rest back in
   * `settle`. A throw fails the call, and its text never reaches the guest.
   */
  reserve(call: CreditCall, options: { readonly signal: AbortSignal }): CreditAnswer | Promise<CreditAnswer>
}
