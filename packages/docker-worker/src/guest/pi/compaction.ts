import type {
  AgentSession,
  AgentSessionEvent,
  ExtensionFactory,
  SessionBeforeCompactEvent,
  SessionManager,
} from '@earendil-works/pi-coding-agent'
import {
  asksHostCompactor,
  type CompactionReport,
  type CompactionRequest,
  compactionTrigger,
  type LastCompaction,
  limits,
  PI_CALL_ROUTES,
} from '@sandbox/protocol'
import { isObject, type JsonObject } from '../shared/json.ts'
import { logEvent } from './log.ts'
import type { TurnSlot } from './turn-slot.ts'

/** Under this name a conversation remembers its last compaction. The model does not see it. */
const ENTRY = 'sandbox.compaction'
/** What Pi keeps free for an answer by itself. */
const RESERVE_TOKENS = 16_384
const REPORT_MS = 5_000

/** What the compactions of one session need. */
export interface CompactionParts {
  readonly slot: TurnSlot
  readonly conversation: SessionManager
  /** Name of the host's compactor; absent when it has none. */
  readonly engine: string | undefined
  /** Of the model, in tokens. */
  readonly contextWindow: number
}

/**
 * The compactions of one session: when they happen, whether the host's compactor is asked, and what is reported. Whatever
 * goes wrong with the host's, Pi makes its own summary: a compaction never fails a turn.
 */
export class Compactions {
  readonly #parts: CompactionParts
  readonly #last: LastCompaction | undefined
  readonly #reports = new Set<Promise<unknown>>()
  #by: LastCompaction['by'] = 'pi'

  constructor(parts: CompactionParts) {
    this.#parts = parts
    this.#last = lastOf(parts.conversation)
  }

  /** How many tokens Pi has to keep free so that it compacts when it should (CP-13). */
  reserveTokens(): number {
    const usable = this.#parts.contextWindow - RESERVE_TOKENS
    const trigger = compactionTrigger(this.#size(usable))
    return trigger === undefined
      ? RESERVE_TOKENS
      : Math.max(RESERVE_TOKENS, this.#parts.contextWindow - trigger)
  }

  /** Asks the host's compactor where there is one (CP-14). */
  readonly extension: ExtensionFactory = (pi) => {
    if (this.#parts.engine === undefined) return
    pi.on('session_before_compact', async (event) => {
      const compaction = await this.#askHost(event)
      this.#by = compaction === undefined ? 'pi' : 'host'
      return compaction === undefined ? undefined : { compaction }
    })
  }

  /** Remembers and reports what became of each. */
  watch(session: AgentSession): () => void {
    return session.subscribe((event) => {
      if (event.type === 'compaction_end') this.#ended(event)
    })
  }

  /** Resolves when the reports of the turn are with the host, or lost (CP-17). */
  async reported(): Promise<void> {
    await Promise.allSettled(this.#reports)
  }

  async #askHost(event: SessionBeforeCompactEvent) {
    const { preparation, signal } = event
    const { tokensBefore } = preparation
    if (!asksHostCompactor(tokensBefore, this.#size(this.#parts.contextWindow))) {
      this.#report({ kind: 'bypassed', reason: 'too large for the host’s compactor', tokensBefore })
      return undefined
    }
    try {
      const { calls } = this.#parts.slot.get()
      const request = requestOf(event, this.#parts.conversation)
      const answer = await calls.post(PI_CALL_ROUTES.compact, request, limits.PI_COMPACTION_BYTES, signal)
      return answer.ok === true ? resultOf(answer.result) : undefined
    } catch {
      return undefined
    }
  }

  #ended({ reason, result, errorMessage }: Extract<AgentSessionEvent, { type: 'compaction_end' }>): void {
    const by = this.#by
    this.#by = 'pi'
    logEvent('compaction', { reason, by, ok: result !== undefined })
    if (result === undefined) {
      const error = (errorMessage ?? 'called off').slice(0, limits.PI_ERROR_CHARS)
      this.#report({ kind: 'failed', reason, error })
      return
    }
    const { tokensBefore, estimatedTokensAfter } = result
    const size =
      estimatedTokensAfter === undefined ? {} : { tokensAfter: Math.max(0, Math.round(estimatedTokensAfter)) }
    const engine = by === 'host' ? (this.#parts.engine ?? 'pi') : 'pi'
    this.#report({ kind: 'compacted', reason, engine, tokensBefore, ...size })
    if (size.tokensAfter === undefined) return
    const last: LastCompaction = { by, tokensAfter: size.tokensAfter }
    this.#parts.conversation.appendCustomEntry(ENTRY, last)
  }

  #report(report: CompactionReport): void {
    if (this.#parts.engine === undefined) return
    try {
      const { calls } = this.#parts.slot.get()
      const stop = AbortSignal.timeout(REPORT_MS)
      const sent = calls.post(PI_CALL_ROUTES.compactionReport, report, limits.WORKER_MESSAGE_BYTES, stop)
      this.#reports.add(sent)
      sent.catch(() => {})
    } catch {
      // No turn, nobody to tell.
    }
  }

  #size(usable: number) {
    const hostCompacts = this.#parts.engine !== undefined
    return { usable, hostCompacts, ...(this.#last === undefined ? {} : { last: this.#last }) }
  }
}

function requestOf(event: SessionBeforeCompactEvent, conversation: SessionManager): CompactionRequest {
  const { preparation, reason, customInstructions } = event
  const { firstKeptEntryId, fileOps, previousSummary } = preparation
  const entries = conversation.buildContextEntries()
  const firstKept = entries.findIndex(({ id }) => id === firstKeptEntryId)
  const kept = firstKept === -1 ? [] : entries.slice(firstKept)
  return {
    reason,
    tokensBefore: Math.max(0, Math.round(preparation.tokensBefore)),
    firstKeptEntryId,
    isSplitTurn: preparation.isSplitTurn,
    messagesToSummarize: [...preparation.messagesToSummarize],
    turnPrefixMessages: [...preparation.turnPrefixMessages],
    keptMessages: kept.flatMap((entry) => (entry.type === 'message' ? [entry.message] : [])),
    ...(previousSummary === undefined ? {} : { previousSummary }),
    ...(customInstructions === undefined ? {} : { customInstructions }),
    readFiles: [...fileOps.read],
    modifiedFiles: [...new Set([...fileOps.written, ...fileOps.edited])],
  }
}

/** The host has checked it (CP-10); a shape that Pi cannot use is a fallback all the same. */
function resultOf(value: unknown) {
  const { summary, firstKeptEntryId, tokensBefore, details } = isObject(value) ? value : ({} as JsonObject)
  if (
    typeof summary !== 'string' ||
    typeof firstKeptEntryId !== 'string' ||
    typeof tokensBefore !== 'number'
  ) {
    return undefined
  }
  return { summary, firstKeptEntryId, tokensBefore, ...(isObject(details) ? { details } : {}) }
}

function lastOf(conversation: SessionManager): LastCompaction | undefined {
  const entries = conversation.getBranch()
  const found = entries.findLast((entry) => entry.type === 'custom' && entry.customType === ENTRY)
  const data: unknown = found?.type === 'custom' ? found.data : undefined
  if (!isObject(data) || typeof data.tokensAfter !== 'number') return undefined
  return { by: data.by === 'host' ? 'host' : 'pi', tokensAfter: data.tokensAfter }
}
