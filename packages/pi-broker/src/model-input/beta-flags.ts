/**
 * Beta flags that pass unless the host says otherwise: those that Pi and the official client send for what the request
 * table admits. None of them costs more or reaches outside.
 */
const DEFAULT_FLAGS: readonly string[] = [
  'claude-code-20250219',
  'oauth-2025-04-20',
  'effort-2025-11-24',
  'extended-cache-ttl-2025-04-11',
  'fine-grained-tool-streaming-2025-05-14',
  'inline-tools-2026-09-15',
  'interleaved-thinking-2025-05-14',
  'mid-conversation-output-config-2026-07-01',
  'prompt-caching-2024-07-31',
  'structured-outputs-2025-11-13',
  'thinking-binding-controls-2026-08-01',
  'token-counting-2024-11-01',
]

/**
 * Fields that mean something with their flag only (decision 13): where the flag does not travel, the field does not
 * either.
 */
export const FLAG_OF = {
  midConversationEffort: 'mid-conversation-output-config-2026-07-01',
  blockBinding: 'thinking-binding-controls-2026-08-01',
  deferLoading: 'inline-tools-2026-09-15',
  contextManagement: 'context-management-2025-06-27',
} as const

/** A field that is tied to a flag. */
export type FlaggedField = keyof typeof FLAG_OF

/** The flags of a request: what travels, and what does not. */
export interface SortedFlags {
  readonly passed: readonly string[]
  readonly dropped: readonly string[]
}

const FLAG = /^[a-z0-9][a-z0-9.-]{0,63}$/
/** Longest header that is looked at, and most flags. */
const HEADER_CHARS = 4096
const MOST_FLAGS = 64

/** The flags that a host lets pass: the usual ones, and those that it adds. */
export function allowedFlags(added: readonly string[]): ReadonlySet<string> {
  return new Set([...DEFAULT_FLAGS, ...added])
}

/** Whether a text can be a flag. */
export function isFlag(text: unknown): text is string {
  return typeof text === 'string' && FLAG.test(text)
}

/**
 * Sorts the `anthropic-beta` header of a guest (W-37). Unknown flags are dropped, not refused: new ones come every
 * month, and a client that asks for one works without it.
 */
export function sortFlags(header: string | undefined, allowed: ReadonlySet<string>): SortedFlags {
  if (header === undefined || header.length > HEADER_CHARS) return { passed: [], dropped: [] }
  const flags = [...new Set(header.split(',').map((flag) => flag.trim()))].filter(isFlag).slice(0, MOST_FLAGS)
  return {
    passed: flags.filter((flag) => allowed.has(flag)),
    dropped: flags.filter((flag) => !allowed.has(flag)),
  }
}
