import { randomUUID } from 'node:crypto'
import type { SandboxCredentialScope, Secret } from '@sandbox/credential-scope'
import type { CallEvent, CallReason, CallRoute, CallUsage, ReceiptSink } from './call-event.ts'
import type { CallCredit, CreditAnswer } from './credit.ts'

/** The turn of a call, as far as its event needs it. */
export interface EventTurn {
  readonly turnId: string
  readonly scope: SandboxCredentialScope
  /** What it has spent so far. */
  readonly secrets?: Iterable<Secret>
}

/** What is known about a call while it runs; routes fill in what they learn. */
export class CallRecord {
  readonly callId = randomUUID()
  readonly #startedMs = performance.now()
  route: CallRoute = 'unknown'
  name: string | undefined
  turn: EventTurn | undefined
  requestBytes = 0
  answerBytes = 0
  upstreamStatus: number | undefined
  droppedFields: readonly string[] = []
  problem: string | undefined
  fingerprint: string | undefined
  /** Where receipts go, and the id of the last one. */
  onReceipt: ReceiptSink | undefined
  receiptId: string | undefined
  usage: CallUsage | undefined
  /** The host's accounts, and what they said about this call. */
  credit: CallCredit | undefined
  reserved: Promise<CreditAnswer> | undefined
  resetsAtMs: number | undefined
  /** What the upstream asked for when it refused the call. */
  retryAfterMs: number | undefined
  /** Most tokens that the answer may have. */
  outputTokens: number | undefined
  model: string | undefined
  streamed = false
  /** What others said about a failure, as they said it: kept only when the host asks for it. */
  words: string | undefined
  keepsWords = false
  #firstByteMs: number | undefined

  /** Notes that the first byte of the answer's body is there. Later calls change nothing. */
  started(): void {
    this.#firstByteMs ??= performance.now() - this.#startedMs
  }

  /** The event of the ended call. */
  toEvent(end: { status: number; reason: CallReason }): CallEvent {
    const { callId, route, name, turn, upstreamStatus, droppedFields, problem, fingerprint, usage } = this
    return {
      callId,
      ...(turn === undefined ? {} : { turnId: turn.turnId, scope: turn.scope }),
      route,
      ...(name === undefined ? {} : { name }),
      ...end,
      ...(upstreamStatus === undefined ? {} : { upstreamStatus }),
      requestBytes: this.requestBytes,
      answerBytes: this.answerBytes,
      durationMs: performance.now() - this.#startedMs,
      ...(this.model === undefined ? {} : { model: this.model }),
      ...(this.streamed && { streamed: true }),
      ...(this.#firstByteMs === undefined ? {} : { firstByteMs: this.#firstByteMs }),
      droppedFields,
      ...(problem === undefined ? {} : { problem }),
      ...(fingerprint === undefined ? {} : { fingerprint }),
      ...(this.receiptId === undefined ? {} : { receiptId: this.receiptId }),
      ...(usage === undefined ? {} : { usage }),
      ...(this.retryAfterMs === undefined ? {} : { retryAfterMs: this.retryAfterMs }),
      ...(this.resetsAtMs === undefined ? {} : { resetsAtMs: this.resetsAtMs }),
    }
  }
}
