import type { PiThinkingLevel } from '@sandbox/protocol'

/** Efforts of the API, from the least on. */
const EFFORTS = ['low', 'medium', 'high', 'xhigh', 'max'] as const
/** An effort of the API. */
export type Effort = (typeof EFFORTS)[number]

/** What a host's level allows (PM-15). */
export interface ThinkingCeiling {
  readonly effort: Effort
  readonly budgetTokens: number
  /** Whether a request that leaves the effort to the model gets the ceiling: its own default may be above. */
  readonly setsEffort: boolean
}

/** The ceilings by level. */
export const CEILINGS: Readonly<Record<PiThinkingLevel, ThinkingCeiling>> = {
  low: { effort: 'low', budgetTokens: 2048, setsEffort: true },
  medium: { effort: 'medium', budgetTokens: 8192, setsEffort: true },
  high: { effort: 'high', budgetTokens: 16_384, setsEffort: false },
  xhigh: { effort: 'max', budgetTokens: 32_768, setsEffort: false },
}

/** The least budget that the API takes. */
export const LEAST_BUDGET = 1024
/** Output tokens of a request that names no limit (PM-18). */
const USUAL_TOKENS = 16_384

/** The asked effort, or the ceiling when that is lower; `undefined` for what is no effort (PM-16). */
export function cappedEffort(asked: unknown, ceiling: Effort): Effort | undefined {
  const at = EFFORTS.indexOf(asked as Effort)
  return at === -1 ? undefined : EFFORTS[Math.min(at, EFFORTS.indexOf(ceiling))]
}

/** PM-14: the budget of `enabled` thinking. `undefined` = the asked one is none. */
export function cappedBudget(
  asked: unknown,
  { ceiling, maxOutputTokens }: { readonly ceiling: number; readonly maxOutputTokens: number },
): number | undefined {
  if (!Number.isSafeInteger(asked) || Number(asked) < LEAST_BUDGET) return undefined
  return Math.min(Number(asked), ceiling, maxOutputTokens - 1)
}

/** PM-18: the output limit of a request, with room for its thinking. */
export function outputLimit(
  asked: unknown,
  { budget, maxOutputTokens }: { readonly budget: number; readonly maxOutputTokens: number },
): number {
  const wanted = Number.isSafeInteger(asked) && Number(asked) >= 1 ? Number(asked) : USUAL_TOKENS
  return Math.max(budget + 1, Math.min(wanted, maxOutputTokens))
}
