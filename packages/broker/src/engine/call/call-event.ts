import type { CredentialReceipt, SandboxCredentialScope } from '@sandbox/credential-scope'

/** Why a call ended as it did. For the host only: the guest sees a shorter list of codes. */
export type CallReason =
  | 'ok'
  | 'request_invalid'
  | 'not_found'
  | 'header_refused'
  | 'credential_refused'
  | 'host_refused'
  | 'turn_over'
  | 'nonce_refused'
  | 'busy'
  | 'too_fast'
  | 'budget_spent'
  | 'body_too_large'
  | 'body_invalid'
  | 'input_refused'
  | 'mcp_refused'
  | 'credit_spent'
  | 'credit_error'
  | 'credential_missing'
  | 'credential_error'
  | 'credential_invalid'
  | 'upstream_network'
  | 'upstream_redirect'
  | 'upstream_status'
  | 'upstream_error'
  | 'upstream_invalid'
  | 'reflection'
  | 'route_closed'
  | 'revoked'
  | 'endpoint_invalid'
  | 'tool_failed'
  | 'timeout'
  | 'aborted'
  | 'internal'
  | WorkerReason

/** Reasons that only a worker route has. */
export type WorkerReason =
  | 'worker_refused'
  | 'hello_invalid'
  | 'protocol_mismatch'
  | 'second_hello'
  | 'worker_over'
  | 'no_turn'
  | 'turn_taken'
  | 'turn_unknown'
  | 'result_refused'

/** Tokens of one call as the upstream counted them. What it did not tell is absent. */
export interface CallUsage {
  readonly inputTokens?: number
  readonly outputTokens?: number
  /** Part of the input that came from the provider's cache, as the family counts it. */
  readonly cachedTokens?: number
  /** Part of the input that was written to the provider's cache. */
  readonly cacheWriteTokens?: number
  /** Part of the output that was reasoning. */
  readonly reasoningTokens?: number
}

/** What kind of route a call went to. */
export type CallRoute = 'model' | 'tool' | 'mcp' | 'worker' | 'unknown'

/**
 * What the host learns about one call: names, sizes and reasons, never a body, a header value or a key. Sizes
 * are in bytes, times in milliseconds.
 */
export interface CallEvent {
  /** Unique within the process. */
  readonly callId: string
  /** The turn that the call was admitted under; absent when it was refused before. */
  readonly turnId?: string
  /** The channel and speaker of that turn. */
  readonly scope?: SandboxCredentialScope
  readonly route: CallRoute
  /** The name of a tool or worker route, or `<server>` or `<server>/<tool>` of MCP. */
  readonly name?: string
  /** What the guest got; 0 when its connection was closed without an answer. */
  readonly status: number
  readonly reason: CallReason
  /** What the upstream answered, when it did. */
  readonly upstreamStatus?: number
  readonly requestBytes: number
  readonly answerBytes: number
  readonly durationMs: number
  /** The model that was called. */
  readonly model?: string
  /** True when the answer came as a stream. */
  readonly streamed?: boolean
  /** From the call's start to the first byte of its answer's body; absent when there was none. */
  readonly firstByteMs?: number
  /** Names of request fields that were dropped. */
  readonly droppedFields: readonly string[]
  /** What was wrong with a refused input: a place in it and a keyword, in our words. Place names may be the guest's. */
  readonly problem?: string
  /** Which credential was used, as a fingerprint that means nothing outside this process. */
  readonly fingerprint?: string
  /** Of the receipt of the last credential that was asked for; see {@link ReceiptSink}. */
  readonly receiptId?: string
  readonly usage?: CallUsage
  /** How long the upstream asked to wait before the next call, when it refused this one: 0 to a day. */
  readonly retryAfterMs?: number
  /** Of `credit_spent`: when there will be credit again, in milliseconds since 1970. */
  readonly resetsAtMs?: number
}

/** Which call asked for a credential. */
export interface ReceiptCall {
  /** Unique within the process. The call's event names the last of its receipts. */
  readonly receiptId: string
  /** As in the call's event. */
  readonly callId: string
}

/** Gets one receipt per credential that was asked for, given or not: by which rule, and from where. */
export type ReceiptSink = (receipt: CredentialReceipt, call: ReceiptCall) => void
