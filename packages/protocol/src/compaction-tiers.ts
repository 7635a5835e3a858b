import { COMPACTION_HARD_TOKENS, COMPACTION_HEADROOM_TOKENS, COMPACTION_SOFT_TOKENS } from './limits.ts'

/** What the last compaction of a conversation left, in tokens, and whose it was. */
export interface LastCompaction {
  readonly by: 'host' | 'pi'
  readonly tokensAfter: number
}

/** A conversation that may have to be compacted. Sizes in tokens. */
export interface ConversationSize {
  /** The model's context window, less what is kept free for an answer. */
  readonly usable: number
  /** Whether the host has a compactor. */
  readonly hostCompacts: boolean
  /** The conversation's last compaction; absent = none. */
  readonly last?: LastCompaction
}

/**
 * From how many tokens on a conversation is compacted (CP-13); `undefined` = as Pi itself decides. One that was
 * compacted and is still large waits for the next tier, so that not every request compacts it again.
 */
export function compactionTrigger({ usable, last }: ConversationSize): number | undefined {
  if (usable <= COMPACTION_SOFT_TOKENS) return undefined
  if (last === undefined || last.tokensAfter <= COMPACTION_SOFT_TOKENS - COMPACTION_HEADROOM_TOKENS) {
    return COMPACTION_SOFT_TOKENS
  }
  if (last.by === 'pi' && last.tokensAfter > COMPACTION_HARD_TOKENS - COMPACTION_HEADROOM_TOKENS)
    return undefined
  return usable <= COMPACTION_HARD_TOKENS ? undefined : COMPACTION_HARD_TOKENS
}

/** Whether the host's compactor is asked for a conversation of so many tokens; otherwise Pi makes the summary. */
export function asksHostCompactor(tokensBefore: number, { hostCompacts, last }: ConversationSize): boolean {
  if (!hostCompacts || tokensBefore > COMPACTION_HARD_TOKENS) return false
  return !(last?.by === 'host' && last.tokensAfter > COMPACTION_HARD_TOKENS)
}
