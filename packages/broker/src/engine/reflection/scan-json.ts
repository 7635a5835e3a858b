import { setImmediate as letOthersRun } from 'node:timers/promises'
import { limits } from '@sandbox/protocol'
import { unescaped } from './unescape.ts'

/** What looks for secrets in text. */
export interface TextMatcher {
  matches(text: string): boolean
  matchesBytes(bytes: Uint8Array): boolean
}

/**
 * True when a decoded JSON value carries a secret in a key or in a string, in any form that the matcher knows.
 * Strings that hold JSON themselves, such as the arguments of a tool call, are searched unescaped too. Nesting
 * deeper than 64 counts as a hit, so that depth hides nothing; nothing recurses.
 */
export function carriesSecret(value: unknown, matcher: TextMatcher): boolean {
  const open: (readonly [unknown, number])[] = [[value, 1]]
  for (let next = open.pop(); next !== undefined; next = open.pop()) {
    const [node, depth] = next
    if (typeof node === 'string') {
      if (textCarries(node, matcher)) return true
    } else if (typeof node === 'object' && node !== null) {
      if (depth > limits.JSON_DEPTH) return true
      if (Array.isArray(node)) {
        for (const item of node) open.push([item, depth + 1])
      } else {
        for (const [key, item] of Object.entries(node)) open.push([key, depth], [item, depth + 1])
      }
    }
  }
  return false
}

function textCarries(text: string, matcher: TextMatcher): boolean {
  return text.includes('\\') ? bytesCarry(Buffer.from(text), matcher) : matcher.matches(text)
}

/**
 * True when UTF-8 text carries a secret, as it stands or unescaped, as often as there is something to unescape.
 * JSON text may be given as a whole: that finds keys, values and JSON inside of strings, and a key that comes twice.
 */
export function bytesCarry(bytes: Uint8Array, matcher: TextMatcher): boolean {
  for (const level of levelsOf(bytes)) if (matcher.matchesBytes(level)) return true
  return false
}

/** As {@link bytesCarry}, for large text: lets other work run in between. Rejects with the signal's reason. */
export async function largeBytesCarry(
  bytes: Uint8Array,
  matcher: TextMatcher,
  signal: AbortSignal,
): Promise<boolean> {
  for (const level of levelsOf(bytes)) {
    await letOthersRun()
    signal.throwIfAborted()
    if (matcher.matchesBytes(level)) return true
    await letOthersRun()
  }
  return false
}

/** The text as it stands, and unescaped once, twice, … Every level halves a run of backslashes at least. */
function* levelsOf(bytes: Uint8Array): Generator<Uint8Array, void> {
  for (let level: Uint8Array | undefined = bytes; level !== undefined; ) {
    yield level
    const next = unescaped(level)
    level = next !== undefined && next.length < level.length ? next : undefined
  }
}
