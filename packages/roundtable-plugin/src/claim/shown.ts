import { errorText } from '../error-text.ts'
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
  const report = (error: unknown) => {
    const cause = parts.scrub(errorText(error))
    parts.logger.error({ channel, category: 'delivery', cause }, 'a sign of a running turn failed')
  }
  // A surface may have made either of both asynchronous: what that rejects with would end the process.
  const attempt = (act: () => unknown) => {
    try {
      const done = act()
      if (done instanceof Promise) done.catch(report)
    } catch (error) {
      report(error)
    }
  }
  for (const sign of signs) {
    attempt(() => {
      const hide: unknown = sign()
      if (typeof hide === 'function') hides.unshift(hide as () => void)
      return hide
    })
  }
  return () => hides.forEach(attempt)
}
