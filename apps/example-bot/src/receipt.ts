import type { CallEvent, CallReason } from '@sandbox/broker'
import type { TurnEvent } from '@sandbox/roundtable-plugin'
import type { PostureFact } from './posture-facts.ts'

/** One key that paid for calls of a turn. */
export interface Payment {
  /** Means nothing outside this process. */
  readonly fingerprint: string
  /** The rule that chose it; absent when the key file had changed by the time we looked. */
  readonly rule?: string
  /** Where the key is kept, such as `file:./ann.key`. */
  readonly source?: string
  readonly calls: number
}

/** A key that was asked for: chosen, or the reason why there was none. */
export interface KeyChoice {
  readonly outcome: string
  readonly rule?: string
  readonly source?: string
  readonly fingerprint?: string
}

/** When a turn entered a state, in milliseconds since it was admitted. */
export interface TurnStep {
  readonly state: TurnEvent['state']
  readonly afterMs: number
}

/** One call of a worker that the host let through or turned down. */
export interface CallLine {
  readonly callId: string
  readonly route: Exclude<CallEvent['route'], 'worker'>
  /** Of a tool. May be a worker's word. */
  readonly name?: string
  readonly status: number
  readonly reason: CallReason
  readonly upstreamStatus?: number
  readonly durationMs: number
  readonly model?: string
  readonly fingerprint?: string
  readonly tokens?: number
}

/** What became of one turn, and who paid. Names, sizes and reasons; never content and never a key. */
export interface Receipt {
  readonly turnId: string
  readonly channel: string
  readonly speaker: { readonly id: string; readonly name: string }
  /** When it was admitted, ISO 8601. */
  readonly at: string
  readonly driver: TurnEvent['driver']
  readonly state: TurnEvent['state']
  readonly steps: readonly TurnStep[]
  readonly durationMs: number
  readonly ok?: boolean
  readonly category?: string
  /** What went wrong, scrubbed, for the operator. */
  readonly cause?: string
  /** From `bound` on: the worker that serves it, and whether it had been waiting. */
  readonly workerId?: string
  readonly warm?: boolean
  /** From `bound` on: what the worker showed of its walls. */
  readonly posture?: readonly PostureFact[]
  /** The last key that was asked for, told before the provider answers. */
  readonly key?: KeyChoice
  readonly payments: readonly Payment[]
  /** The last calls. */
  readonly calls: readonly CallLine[]
  readonly modelCalls: number
  readonly toolCalls: readonly string[]
  /** Calls that the host turned down, by reason. */
  readonly refusals: Readonly<Partial<Record<CallReason, number>>>
  readonly tokens: { readonly input: number; readonly output: number }
  /** An estimate, in the currency of the price list; `null` when a model that answered has no price. */
  readonly cost: number | null
}

/** A worker may ask for a tool by any name. */
const NAME_CHARS = 80

/** The receipt of a turn of which nothing is known but its first event. */
export function blankReceipt(event: TurnEvent, now: Date): Receipt {
  return {
    turnId: event.turnId,
    channel: event.channel,
    speaker: event.speaker,
    at: new Date(now.getTime() - event.durationMs).toISOString(),
    driver: event.driver,
    state: event.state,
    steps: [],
    durationMs: event.durationMs,
    payments: [],
    calls: [],
    modelCalls: 0,
    toolCalls: [],
    refusals: {},
    tokens: { input: 0, output: 0 },
    cost: 0,
  }
}

/** What is kept of a call. */
export function callLine(event: CallEvent & { route: CallLine['route'] }): CallLine {
  const { usage } = event
  const tokens = (usage?.inputTokens ?? 0) + (usage?.outputTokens ?? 0)
  return {
    callId: event.callId,
    route: event.route,
    status: event.status,
    reason: event.reason,
    durationMs: event.durationMs,
    ...(event.name === undefined ? {} : { name: event.name.slice(0, NAME_CHARS) }),
    ...(event.upstreamStatus === undefined ? {} : { upstreamStatus: event.upstreamStatus }),
    ...(event.model === undefined ? {} : { model: event.model }),
    ...(event.fingerprint === undefined ? {} : { fingerprint: event.fingerprint }),
    ...(usage === undefined ? {} : { tokens }),
  }
}
