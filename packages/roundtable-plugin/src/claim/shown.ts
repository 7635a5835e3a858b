import type { ChannelKey, HostLogger } from '../host-contract.ts'

/** What is needed to show that a turn runs. */
export interface ShownParts {
  readonly logger: HostLogger
  /** Takes secrets out of a text for the log. */
  scrub(text: string): string
}

/**
 * Shows signs of a running turn (typing, a stop button) and returns what hides them, last first. They are an extra: a
 * surface that fails at one is reported, and the turn goes on without it. Never throws.
 */
export function showAll(
  parts: ShownParts,
  channel: ChannelKey,
  signs: readonly (() => () => void)[],
): () => void {
  const hides: (() => void)[] = []
  const attempt = (act: () => void) => {
    try {
      act()
    } catch (error) {
      const cause = parts.scrub(error instanceof Error ? error.message : String(error))
      parts.logger.error({ channel, category: 'delivery', cause }, 'a sign of a running turn failed')
    }
  }
  for (const sign of signs) attempt(() => hides.unshift(sign()))
  return () => hides.forEach(attempt)
}
