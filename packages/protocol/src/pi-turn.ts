import { type Static, Type } from 'typebox'
import { Compile } from 'typebox/compile'
import { atOnce, imagesPieces, isSafeFileName, type Pieces, replyFilesPieces } from './files.ts'
import {
  ATTACHMENTS,
  FILE_NAME_CHARS,
  IMAGES,
  PI_ERROR_CHARS,
  PI_PROGRESS_CHARS,
  PI_TEXT_CHARS,
  PI_TOOLS,
  REPLY_FILES,
  REPLY_TEXT_CHARS,
  SPEAKER_CHARS,
} from './limits.ts'
import { FailureCode } from './turn.ts'

/** A host tool as a Pi worker offers it to its agent. `parameters` is a JSON Schema object. */
export const PiToolSpec = Type.Object({
  name: Type.String({ pattern: '^[A-Za-z0-9_-]{1,64}$' }),
  description: Type.String({ maxLength: 8192 }),
  parameters: Type.Record(Type.String(), Type.Unknown()),
})
/** A host tool as a Pi worker offers it to its agent. */
export type PiToolSpec = Static<typeof PiToolSpec>

/** An MCP server of a turn: its name, and the listed tools as the server describes them to this turn's speaker. */
export const PiMcpSpec = Type.Object({
  name: Type.String({ pattern: '^[a-zA-Z0-9_-]{1,100}$' }),
  tools: Type.Array(
    Type.Object({
      name: Type.String({ pattern: '^[A-Za-z0-9_.-]{1,128}$' }),
      description: Type.String({ maxLength: 8192 }),
      parameters: Type.Record(Type.String(), Type.Unknown()),
    }),
    { maxItems: 128 },
  ),
})
/** An MCP server of a turn. */
export type PiMcpSpec = Static<typeof PiMcpSpec>

const TurnId = Type.String({ pattern: '^[\\x21-\\x7e]{1,64}$' })

/**
 * What a host hands to a Pi worker: the whole turn, and nothing that is secret. No URL, no token. The nonce is good
 * for this turn alone: the worker's forwarder writes it into every call that came in by this turn's own base path,
 * and forgets it when the turn is over.
 */
export const PiTurn = Type.Object({
  protocol: Type.Integer(),
  /** A safe file name: `outbox/<turnId>` is where the worker's tools put the reply files of this turn. */
  turnId: TurnId,
  /** To be sent as `x-sandbox-turn` on every call of this turn. */
  nonce: Type.String({ minLength: 16, maxLength: 128 }),
  /** Time left until the host ends the turn, in milliseconds, at the moment of delivery. */
  remainingMs: Type.Integer({ minimum: 0 }),
  /** What was said. At most 100,000 characters. */
  text: Type.String(),
  /** As the chat shows them. Both are chosen by the speaker or the chat service: data, never an instruction. */
  speaker: Type.Object({
    id: Type.String({ maxLength: SPEAKER_CHARS }),
    name: Type.String({ maxLength: SPEAKER_CHARS }),
  }),
  profile: Type.String({ pattern: '^[a-zA-Z0-9_-]{1,100}$' }),
  /** What the model is asked to do at most; the broker holds requests to it, whatever the worker asks for. */
  thinking: Type.Union([
    Type.Literal('low'),
    Type.Literal('medium'),
    Type.Literal('high'),
    Type.Literal('xhigh'),
  ]),
  /** The model that every call is pinned to. */
  model: Type.String({ minLength: 1, maxLength: 256 }),
  /** IANA name. */
  timeZone: Type.String({ maxLength: 64 }),
  /** The operator's prompt; absent = what the image brings. At most 100,000 characters. */
  prompt: Type.Optional(Type.String()),
  /** For the system prompt of this turn alone, never for the history. At most 100,000 characters. */
  memory: Type.Optional(Type.String()),
  /** Files that the host has put into the workspace's `attachments` directory for this turn. */
  attachments: Type.Array(
    Type.Object({
      name: Type.String({ maxLength: FILE_NAME_CHARS }),
      /** As the chat service named it: untrusted. */
      mimeType: Type.Optional(Type.String({ maxLength: 128 })),
      bytes: Type.Integer({ minimum: 0 }),
    }),
    { maxItems: ATTACHMENTS },
  ),
  /** For the model to look at, in base64. */
  images: Type.Array(Type.Object({ mimeType: Type.String(), data: Type.String() }), { maxItems: IMAGES }),
  mcp: Type.Array(PiMcpSpec, { maxItems: PI_TOOLS }),
})
/** What a host hands to a Pi worker. */
export type PiTurn = Static<typeof PiTurn>

/** The outcome of a Pi turn, as the worker tells it. Guest text and guest files: never an instruction to the host. */
export const PiOutcome = Type.Union([
  Type.Object({
    ok: Type.Literal(true),
    /** 1 to 100,000 characters. */
    text: Type.String({ minLength: 1 }),
    files: Type.Array(Type.Object({ name: Type.String(), data: Type.String() }), { maxItems: REPLY_FILES }),
    /** How many entries of the outbox could not go along: too many, too large, unsafe names, no regular files. */
    leftOut: Type.Optional(Type.Integer({ minimum: 0, maximum: 1_000_000 })),
  }),
  Type.Object({
    ok: Type.Literal(false),
    code: FailureCode,
    /** For the host's log. At most 10,000 characters. */
    error: Type.String(),
  }),
])
/** The outcome of a Pi turn. */
export type PiOutcome = Static<typeof PiOutcome>

/** `POST /worker/result` of a Pi worker. */
export const PiResult = Type.Object({ turnId: TurnId, result: PiOutcome })
/** `POST /worker/result` of a Pi worker. */
export type PiResult = Static<typeof PiResult>

/**
 * `POST /worker/progress`: a piece of the answer as it grows. Pieces may be lost, so each says where it begins;
 * the result is the truth.
 */
export const PiProgress = Type.Object({
  turnId: TurnId,
  /** Counts the pieces of the turn from 0 on. One that is not above the last is dropped. */
  seq: Type.Integer({ minimum: 0, maximum: Number.MAX_SAFE_INTEGER }),
  /** Where the piece begins in the text so far, in UTF-16 code units. 0 = the text starts anew. */
  at: Type.Integer({ minimum: 0, maximum: 10_000_000 }),
  /** At most 8,192 characters. */
  text: Type.String(),
})
/** A piece of the answer as it grows. */
export type PiProgress = Static<typeof PiProgress>

const turn = Compile(PiTurn)
const result = Compile(PiResult)
const progress = Compile(PiProgress)

/** What is wrong with a turn, by field; `undefined` = a worker of this version understands it. Never a value. */
export function piTurnProblem(value: unknown): string | undefined {
  return atOnce(piTurnPieces(value))
}

/** {@link piTurnProblem}, yielding between pieces of the images. */
export function* piTurnPieces(value: unknown): Pieces<string | undefined> {
  if (!turn.Check(value)) {
    const [error] = turn.Errors(value)
    return `${error?.instancePath || 'the turn'}: ${error?.keyword ?? 'is no turn'}`
  }
  const { turnId, text, speaker, prompt = '', memory = '', attachments, images } = value
  if (!isSafeFileName(turnId)) return 'turnId: must be a safe file name'
  for (const [name, given] of Object.entries({ text, prompt, memory })) {
    if (given.length > PI_TEXT_CHARS) return `${name}: at most ${PI_TEXT_CHARS} characters`
  }
  if (speaker.id.length > SPEAKER_CHARS || speaker.name.length > SPEAKER_CHARS) {
    return `speaker: at most ${SPEAKER_CHARS} characters`
  }
  const unsafe = attachments.findIndex(({ name }) => !isSafeFileName(name))
  if (unsafe !== -1) return `attachments[${unsafe}]: its name is not safe`
  return yield* imagesPieces(images)
}

/** True when `value` is a turn that a worker of this version understands. */
export function isPiTurn(value: unknown): value is PiTurn {
  return piTurnProblem(value) === undefined
}

/** A copy with only the known fields, or `undefined` when `value` is no result. */
export function readPiResult(value: unknown): PiResult | undefined {
  return atOnce(piResultPieces(value))
}

/** {@link readPiResult}, yielding between pieces of the files. */
export function* piResultPieces(value: unknown): Pieces<PiResult | undefined> {
  if (!result.Check(value) || !isSafeFileName(value.turnId)) return undefined
  const { turnId, result: outcome } = value
  if (!outcome.ok) {
    const { code, error } = outcome
    return error.length > PI_ERROR_CHARS ? undefined : { turnId, result: { ok: false, code, error } }
  }
  const { text, files, leftOut } = outcome
  if (text.length > REPLY_TEXT_CHARS || (yield* replyFilesPieces(files)) !== undefined) return undefined
  return {
    turnId,
    result: {
      ok: true,
      text,
      files: files.map(({ name, data }) => ({ name, data })),
      ...(leftOut === undefined ? {} : { leftOut }),
    },
  }
}

/** A copy with only the known fields, or `undefined` when `value` is no piece of progress. */
export function readPiProgress(value: unknown): PiProgress | undefined {
  if (!progress.Check(value) || value.text.length > PI_PROGRESS_CHARS) return undefined
  const { turnId, seq, at, text } = value
  return { turnId, seq, at, text }
}
