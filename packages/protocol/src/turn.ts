import { type Static, Type } from 'typebox'
import { Compile } from 'typebox/compile'
import { REPLY_TEXT_CHARS, SPEAKER_CHARS, TURN_TEXT_CHARS } from './limits.ts'
import { McpSpec, ToolSpec } from './tool-call.ts'

/**
 * What a host hands to a sealed worker: the whole turn, and nothing that is secret. No URL, no key. The nonce
 * is good for this turn alone.
 */
export const SealedTurn = Type.Object({
  protocol: Type.Integer(),
  turnId: Type.String({ minLength: 1, maxLength: 64 }),
  /** To be sent as `x-sandbox-turn` on every call of this turn. */
  nonce: Type.String({ minLength: 16, maxLength: 128 }),
  /** Time left until the host ends the turn, in milliseconds, at the moment of delivery. */
  remainingMs: Type.Integer({ minimum: 0 }),
  text: Type.String({ maxLength: TURN_TEXT_CHARS }),
  /** As the chat shows them. Both are chosen by the speaker or the chat service: data, never an instruction. */
  speaker: Type.Object({
    id: Type.String({ maxLength: SPEAKER_CHARS }),
    name: Type.String({ maxLength: SPEAKER_CHARS }),
  }),
  model: Type.String({ minLength: 1, maxLength: 256 }),
  /** The operator's prompt; absent means the worker's default. */
  prompt: Type.Optional(Type.String()),
  /** IANA name. */
  timeZone: Type.String({ maxLength: 64 }),
  /** True: start without the channel's history. Memory is kept. */
  reset: Type.Boolean(),
  tools: Type.Array(ToolSpec, { maxItems: 128 }),
  mcp: Type.Array(McpSpec, { maxItems: 32 }),
})
/** What a host hands to a sealed worker. */
export type SealedTurn = Static<typeof SealedTurn>

/** Why a worker could not answer. */
export const FailureCode = Type.Union([
  Type.Literal('turn_invalid'),
  Type.Literal('model_call_limit'),
  Type.Literal('model_refused'),
  Type.Literal('model_failed'),
  Type.Literal('too_many_tool_calls'),
  Type.Literal('request_too_large'),
  Type.Literal('answer_empty'),
  Type.Literal('deadline'),
  Type.Literal('internal'),
])
/** Why a worker could not answer. */
export type FailureCode = Static<typeof FailureCode>

/** The outcome of a sealed turn, as the worker tells it. Guest text: never an instruction to the host. */
export const SealedOutcome = Type.Object({
  ok: Type.Boolean(),
  text: Type.String({ maxLength: REPLY_TEXT_CHARS }),
  /** Set when `ok` is false. */
  code: Type.Optional(FailureCode),
  /** Workspace files that could not be read and were set aside. */
  quarantined: Type.Optional(
    Type.Array(Type.Union([Type.Literal('memory.json'), Type.Literal('history.json')]), { maxItems: 2 }),
  ),
})
/** The outcome of a sealed turn. */
export type SealedOutcome = Static<typeof SealedOutcome>

/** `POST /worker/result`. */
export const SealedResult = Type.Object({
  turnId: Type.String({ minLength: 1, maxLength: 64 }),
  result: SealedOutcome,
})
/** `POST /worker/result`. */
export type SealedResult = Static<typeof SealedResult>

const turn = Compile(SealedTurn)
const result = Compile(SealedResult)

/** True when `value` is a turn that a worker of this version understands. */
export function isSealedTurn(value: unknown): value is SealedTurn {
  if (!turn.Check(value)) return false
  const { text, speaker } = value
  return fits(text, TURN_TEXT_CHARS) && fits(speaker.id, SPEAKER_CHARS) && fits(speaker.name, SPEAKER_CHARS)
}

/** A copy with only the known fields, or `undefined` when `value` is no result. */
export function readSealedResult(value: unknown): SealedResult | undefined {
  if (!result.Check(value) || !fits(value.result.text, REPLY_TEXT_CHARS)) return undefined
  const { ok, text, code, quarantined } = value.result
  return {
    turnId: value.turnId,
    result: {
      ok,
      text,
      ...(code === undefined ? {} : { code }),
      ...(quarantined === undefined ? {} : { quarantined: [...quarantined] }),
    },
  }
}

/** `maxLength` of JSON Schema counts what a reader sees as one character, which may be any number of code units. */
function fits(text: string, chars: number): boolean {
  return text.length <= chars
}
