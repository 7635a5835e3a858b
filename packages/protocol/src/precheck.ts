import { type Static, Type } from 'typebox'
import { Compile } from 'typebox/compile'
import { PRECHECK_ERROR_CHARS, PRECHECK_SCRIPT_CHARS, PRECHECK_TEXT_CHARS } from './limits.ts'

/**
 * What a host hands to the worker of a precheck: a script, when and for which schedule it runs, and the names of what
 * it may call. No URL, no key (PC-10).
 */
export const PrecheckJob = Type.Object({
  protocol: Type.Integer(),
  /** Names this run. */
  turnId: Type.String({ minLength: 1, maxLength: 64 }),
  /** Time left until the host ends the run, in milliseconds, at the moment of delivery. */
  remainingMs: Type.Integer({ minimum: 0 }),
  /** A module whose default export is a function. */
  script: Type.String({ minLength: 1, maxLength: PRECHECK_SCRIPT_CHARS }),
  /** In UTC, as `Date.prototype.toISOString` writes it. */
  firedAt: Type.String({ pattern: '^\\d{4}-\\d{2}-\\d{2}T\\d{2}:\\d{2}:\\d{2}\\.\\d{3}Z$' }),
  /** IANA name. */
  timeZone: Type.String({ minLength: 1, maxLength: 64 }),
  /** `YYYY-MM-DD`, in that time zone. */
  today: Type.String({ pattern: '^\\d{4}-\\d{2}-\\d{2}$' }),
  schedule: Type.Object({
    id: Type.String({ maxLength: 256 }),
    title: Type.String({ maxLength: 1024 }),
  }),
  /** What it may call. */
  servers: Type.Array(
    Type.Object({
      server: Type.String({ pattern: '^[a-zA-Z0-9_-]{1,100}$' }),
      tools: Type.Array(Type.String({ pattern: '^[\\w.-]{1,128}$' }), { maxItems: 128 }),
    }),
    { maxItems: 32 },
  ),
})
/** What a host hands to the worker of a precheck. */
export type PrecheckJob = Static<typeof PrecheckJob>

/** What a script decided, or why it failed. Guest text: never an instruction to the host. */
export const PrecheckOutcome = Type.Union([
  Type.Object({
    ok: Type.Literal(true),
    wake: Type.Literal(false),
    /** For whoever reads the log of the schedule. */
    note: Type.Optional(Type.String({ maxLength: PRECHECK_TEXT_CHARS })),
  }),
  Type.Object({
    ok: Type.Literal(true),
    wake: Type.Literal(true),
    /** What the agent that is woken is told. */
    context: Type.String({ maxLength: PRECHECK_TEXT_CHARS }),
  }),
  Type.Object({ ok: Type.Literal(false), error: Type.String({ maxLength: PRECHECK_ERROR_CHARS }) }),
])
/** What a script decided, or why it failed. */
export type PrecheckOutcome = Static<typeof PrecheckOutcome>

/** `POST /worker/result` of a precheck. */
export const PrecheckResult = Type.Object({
  turnId: Type.String({ minLength: 1, maxLength: 64 }),
  result: PrecheckOutcome,
})
/** `POST /worker/result` of a precheck. */
export type PrecheckResult = Static<typeof PrecheckResult>

const job = Compile(PrecheckJob)
const result = Compile(PrecheckResult)

/** True when `value` is a run that a worker of this version understands. */
export function isPrecheckJob(value: unknown): value is PrecheckJob {
  return job.Check(value) && value.script.length <= PRECHECK_SCRIPT_CHARS
}

/** A copy with only the known fields, or `undefined` when `value` is no result. */
export function readPrecheckResult(value: unknown): PrecheckResult | undefined {
  if (!result.Check(value)) return undefined
  const outcome = knownFields(value.result)
  // `maxLength` of JSON Schema counts what a reader sees as one character, which may be any number of code units.
  return outcome === undefined ? undefined : { turnId: value.turnId, result: outcome }
}

function knownFields(outcome: PrecheckOutcome): PrecheckOutcome | undefined {
  if (!outcome.ok) {
    const { error } = outcome
    return error.length > PRECHECK_ERROR_CHARS ? undefined : { ok: false, error }
  }
  const text = outcome.wake ? outcome.context : (outcome.note ?? '')
  if (text.length > PRECHECK_TEXT_CHARS) return undefined
  if (outcome.wake) return { ok: true, wake: true, context: outcome.context }
  return { ok: true, wake: false, ...(outcome.note === undefined ? {} : { note: outcome.note }) }
}
