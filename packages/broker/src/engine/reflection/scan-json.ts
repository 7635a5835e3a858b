import { limits } from '@sandbox/protocol'

/** What looks for secrets in text. */
export interface TextMatcher {
  matches(text: string): boolean
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

/**
 * True when text carries a secret, as it stands or unescaped, as often as there is something to unescape. JSON
 * text may be given as a whole: that finds keys, values and JSON inside of strings, and a key that comes twice.
 */
export function textCarries(text: string, matcher: TextMatcher): boolean {
  let current = text
  for (;;) {
    if (matcher.matches(current)) return true
    // Every level halves a run of backslashes at least, so this ends soon.
    const next = current.includes('\\') ? unescaped(current) : current
    if (next === current) return false
    current = next
  }
}

const ESCAPE = /\\(?:u([0-9a-fA-F]{4})|(.))/gs
const SHORT: ReadonlyMap<string, string> = new Map([
  ['b', '\b'],
  ['f', '\f'],
  ['n', '\n'],
  ['r', '\r'],
  ['t', '\t'],
])

/** Replaces the escapes of JSON text, one level of them. */
export function unescaped(text: string): string {
  return text.replace(ESCAPE, (_, code: string | undefined, char: string | undefined) =>
    code === undefined
      ? (SHORT.get(char ?? '') ?? char ?? '')
      : String.fromCharCode(Number.parseInt(code, 16)),
  )
}
