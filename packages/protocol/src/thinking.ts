/** How hard the model may think in a turn, from the least on. */
export const THINKING_LEVELS = ['low', 'medium', 'high', 'xhigh'] as const
/** How hard the model may think in a turn: a ceiling that the host judges and a guest cannot raise. */
export type PiThinkingLevel = (typeof THINKING_LEVELS)[number]

/** Whether a value is one of {@link THINKING_LEVELS}. */
export function isPiThinkingLevel(value: unknown): value is PiThinkingLevel {
  return THINKING_LEVELS.some((level) => level === value)
}
