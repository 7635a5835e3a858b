import { type Static, Type } from 'typebox'
import { Compile } from 'typebox/compile'
import { PI_ERROR_CHARS, PI_SUMMARY_CHARS } from './limits.ts'

const Count = Type.Integer({ minimum: 0, maximum: Number.MAX_SAFE_INTEGER })
const Message = Type.Object({ role: Type.String() })
const EntryId = Type.String({ minLength: 1, maxLength: 256 })
const Reason = Type.Union([Type.Literal('manual'), Type.Literal('threshold'), Type.Literal('overflow')])

/** Why a conversation is compacted. */
export type CompactionReason = Static<typeof Reason>

/**
 * `POST /compaction/compact`: what the host's compactor is asked to sum up. Messages are the agent's own and pass
 * unchanged; they are guest text.
 */
export const CompactionRequest = Type.Object({
  reason: Reason,
  tokensBefore: Count,
  /** From this entry of the conversation on, everything stays. */
  firstKeptEntryId: EntryId,
  isSplitTurn: Type.Boolean(),
  messagesToSummarize: Type.Array(Message),
  turnPrefixMessages: Type.Array(Message),
  keptMessages: Type.Array(Message),
  previousSummary: Type.Optional(Type.String()),
  customInstructions: Type.Optional(Type.String()),
  readFiles: Type.Array(Type.String()),
  modifiedFiles: Type.Array(Type.String()),
})
/** What the host's compactor is asked to sum up. */
export type CompactionRequest = Static<typeof CompactionRequest>

/** What a compactor made of a conversation. */
export const CompactionResult = Type.Object({
  /** As it was asked: a compactor does not move the cut. */
  firstKeptEntryId: EntryId,
  /** 1 to 200,000 characters. */
  summary: Type.String({ minLength: 1 }),
  tokensBefore: Count,
  tokensAfter: Type.Optional(Count),
  details: Type.Optional(Type.Record(Type.String(), Type.Unknown())),
})
/** What a compactor made of a conversation. */
export type CompactionResult = Static<typeof CompactionResult>

/**
 * The answer of `POST /compaction/compact`, status 200 either way. With `ok: false` the worker's agent makes its own
 * summary: a compaction never fails a turn.
 */
export type CompactionAnswer =
  | { readonly ok: true; readonly result: CompactionResult }
  | { readonly ok: false; readonly fallback: string }

/** `POST /compaction/report`: what became of a compaction in the worker. */
export const CompactionReport = Type.Union([
  Type.Object({
    kind: Type.Literal('compacted'),
    reason: Reason,
    /** The name of what made the summary: the host's engine, or `pi`. */
    engine: Type.String({ minLength: 1, maxLength: 100 }),
    tokensBefore: Count,
    tokensAfter: Type.Optional(Count),
    /** The whole context afterwards, system prompt and tools included. */
    contextAfter: Type.Optional(Count),
  }),
  Type.Object({ kind: Type.Literal('failed'), reason: Reason, error: Type.String() }),
  /** The worker did not ask the host's compactor. */
  Type.Object({ kind: Type.Literal('bypassed'), reason: Type.String(), tokensBefore: Count }),
])
/** What became of a compaction in the worker. */
export type CompactionReport = Static<typeof CompactionReport>

const BYPASS_CHARS = 1000

const request = Compile(CompactionRequest)
const result = Compile(CompactionResult)
const report = Compile(CompactionReport)

/** A copy with only the known fields, or `undefined` when `value` is no request for a compaction. */
export function readCompactionRequest(value: unknown): CompactionRequest | undefined {
  if (!request.Check(value)) return undefined
  const { previousSummary, customInstructions } = value
  return {
    reason: value.reason,
    tokensBefore: value.tokensBefore,
    firstKeptEntryId: value.firstKeptEntryId,
    isSplitTurn: value.isSplitTurn,
    messagesToSummarize: value.messagesToSummarize,
    turnPrefixMessages: value.turnPrefixMessages,
    keptMessages: value.keptMessages,
    ...(previousSummary === undefined ? {} : { previousSummary }),
    ...(customInstructions === undefined ? {} : { customInstructions }),
    readFiles: value.readFiles,
    modifiedFiles: value.modifiedFiles,
  }
}

/** A copy with only the known fields, or `undefined` when `value` is no result of a compactor. */
export function readCompactionResult(value: unknown): CompactionResult | undefined {
  if (!result.Check(value) || value.summary.length > PI_SUMMARY_CHARS) return undefined
  const { firstKeptEntryId, summary, tokensBefore, tokensAfter, details } = value
  return {
    firstKeptEntryId,
    summary,
    tokensBefore,
    ...(tokensAfter === undefined ? {} : { tokensAfter }),
    ...(details === undefined ? {} : { details }),
  }
}

/** The report, or `undefined` when `value` is none. */
export function readCompactionReport(value: unknown): CompactionReport | undefined {
  if (!report.Check(value)) return undefined
  switch (value.kind) {
    case 'failed':
      if (value.error.length > PI_ERROR_CHARS) return undefined
      return { kind: 'failed', reason: value.reason, error: value.error }
    case 'bypassed':
      if (value.reason.length > BYPASS_CHARS) return undefined
      return { kind: 'bypassed', reason: value.reason, tokensBefore: value.tokensBefore }
    default: {
      const { reason, engine, tokensBefore, tokensAfter, contextAfter } = value
      return {
        kind: 'compacted',
        reason,
        engine,
        tokensBefore,
        ...(tokensAfter === undefined ? {} : { tokensAfter }),
        ...(contextAfter === undefined ? {} : { contextAfter }),
      }
    }
  }
}
