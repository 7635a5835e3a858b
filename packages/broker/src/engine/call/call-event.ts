import { randomUUID } from 'node:crypto'
import type { SandboxCredentialScope } from '@sandbox/credential-scope'

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
  | 'budget_spent'
  | 'body_too_large'
  | 'body_invalid'
  | 'input_refused'
  | 'credential_missing'
  | 'credential_error'
  | 'credential_invalid'
  | 'upstream_network'
  | 'upstream_redirect'
  | 'upstream_status'
  | 'upstream_invalid'
  | 'reflection'
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
  /** The tool's or worker route's name. */
  readonly name?: string
  /** What the guest got; 0 when its connection was closed without an answer. */
  readonly status: number
  readonly reason: CallReason
  /** What the upstream answered, when it did. */
  readonly upstreamStatus?: number
  readonly requestBytes: number
  readonly answerBytes: number
  readonly durationMs: number
  /** Names of request fields that were dropped. */
  readonly droppedFields: readonly string[]
  /** Which credential was used, as a fingerprint that means nothing outside this process. */
  readonly fingerprint?: string
  /** Tokens as the upstream counted them. */
  readonly usage?: { readonly inputTokens?: number; readonly outputTokens?: number }
}

/** The turn of a call, as far as its event needs it. */
export interface EventTurn {
  readonly turnId: string
  readonly scope: SandboxCredentialScope
}

/** What is known about a call while it runs; routes fill in what they learn. */
export class CallRecord {
  readonly callId = randomUUID()
  readonly #startedMs = performance.now()
  route: CallRoute = 'unknown'
  name: string | undefined
  turn: EventTurn | undefined
  requestBytes = 0
  upstreamStatus: number | undefined
  droppedFields: readonly string[] = []
  fingerprint: string | undefined
  usage: CallEvent['usage'] | undefined

  /** The event of the ended call. */
  toEvent(end: { status: number; reason: CallReason; answerBytes: number }): CallEvent {
    const { callId, route, name, turn, requestBytes, upstreamStatus, droppedFields, fingerprint, usage } =
      this
    return {
      callId,
      ...(turn === undefined ? {} : { turnId: turn.turnId, scope: turn.scope }),
      route,
      ...(name === undefined ? {} : { name }),
      ...end,
      ...(upstreamStatus === undefined ? {} : { upstreamStatus }),
      requestBytes,
      durationMs: performance.now() - this.#startedMs,
      droppedFields,
      ...(fingerprint === undefined ? {} : { fingerprint }),
      ...(usage === undefined ? {} : { usage }),
    }
  }
}
