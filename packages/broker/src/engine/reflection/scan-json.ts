import { limits } from '@sandbox/protocol'
import { atOnce, inPieces, PIECE_BYTES, type Pieces } from '../call/in-pieces.ts'
import { unescaping } from './unescape.ts'

/** What looks for secrets in text. */
export interface TextMatcher {
  /** Whether there is nothing to look for; omitted = `false`. */
  readonly empty?: boolean
  matchesBytes(bytes: Uint8Array): boolean
  /** The same, for text that comes in pieces; omitted = large text is searched in one piece. */
  stream?(): { push(piece: Uint8Array): unknown; readonly hit: boolean }
}

/**
 * Most levels of escapes that are undone. JSON inside of JSON has two or three, and a run of backslashes, which
 * every level halves, has as many only from 32,768 of them on. Chains such as `\\u005cu005cu005c…` have one level
 * per five characters: without a bound the search would take time by the square of the text.
 */
export const MOST_LEVELS = 16

/**
 * True when a decoded JSON value carries a secret in a key, a string or a number, in any form that the matcher
 * knows. Strings that hold JSON themselves, such as the arguments of a tool call, are searched unescaped too.
 * Nesting deeper than 64, and escapes deeper than {@link MOST_LEVELS}, count as a hit, so that depth hides nothing;
 * nothing recurses.
 */
export function carriesSecret(value: unknown, matcher: TextMatcher): boolean {
  return atOnce(searchingValue(value, matcher))
}

/**
 * As {@link carriesSecret}, for a value that may be large: lets other work run in between. Rejects with the signal's
 * reason.
 */
export async function largeCarriesSecret(
  value: unknown,
  matcher: TextMatcher,
  signal: AbortSignal,
): Promise<boolean> {
  return await inPieces(searchingValue(value, matcher), signal)
}

function* searchingValue(value: unknown, matcher: TextMatcher): Pieces<boolean> {
  if (matcher.empty === true) return false
  const texts = yield* textsOf(value)
  return texts === undefined || (yield* searching(texts, matcher))
}

/** Texts that are gathered in one piece. */
const BATCH = 4096

/** All keys, strings and numbers of a decoded JSON value, in lines; `undefined` when it is nested too deep. */
function* textsOf(value: unknown): Pieces<Uint8Array | undefined> {
  const lines: Uint8Array[] = []
  let texts: string[] = []
  let left = BATCH
  let level: (readonly unknown[])[] = [[value]]
  for (let depth = 1; level.length > 0; depth += 1) {
    const below: (readonly unknown[])[] = []
    for (const nodes of level) {
      for (const node of nodes) {
        if (typeof node === 'string') texts.push(node)
        else if (typeof node === 'number') texts.push(String(node))
        else if (typeof node === 'object' && node !== null) {
          if (depth > limits.JSON_DEPTH) return undefined
          if (!Array.isArray(node)) for (const key of Object.keys(node)) texts.push(key)
          below.push(Array.isArray(node) ? node : Object.values(node))
        }
        left -= 1
        if (left > 0) continue
        lines.push(linesOf(texts))
        texts = []
        left = BATCH
        yield
      }
    }
    level = below
  }
  lines.push(linesOf(texts))
  return lines.length === 1 ? (lines[0] as Uint8Array) : Buffer.concat(lines)
}

/** No form of a secret has a line break: nothing is found that begins in one text and ends in the next. */
function linesOf(texts: readonly string[]): Uint8Array {
  return Buffer.from(`${texts.join('\n')}\n`)
}

/**
 * True when UTF-8 text carries a secret, as it stands or unescaped, as often as there is something to unescape, or
 * when that is more often than {@link MOST_LEVELS}.
 * JSON text may be given as a whole: that finds keys, values and JSON inside of strings, and a key that comes twice.
 */
export function bytesCarry(bytes: Uint8Array, matcher: TextMatcher): boolean {
  return atOnce(searching(bytes, matcher))
}

/** As {@link bytesCarry}, for text that may be large: lets other work run in between. Rejects with the signal's reason. */
export async function largeBytesCarry(
  bytes: Uint8Array,
  matcher: TextMatcher,
  signal: AbortSignal,
): Promise<boolean> {
  return await inPieces(searching(bytes, matcher), signal)
}

/** What {@link bytesCarry} does: the text as it stands, and unescaped once, twice, …, each in the memory of the last. */
export function* searching(bytes: Uint8Array, matcher: TextMatcher): Pieces<boolean> {
  if (matcher.empty === true) return false
  let level = bytes
  let memory: Uint8Array | undefined
  for (let count = 1; ; count += 1) {
    if (yield* holds(level, matcher)) return true
    const next = yield* unescaping(level, memory)
    if (next === undefined || next.length === level.length) return false
    if (count > MOST_LEVELS) return true
    memory = next
    level = next
  }
}

function* holds(text: Uint8Array, matcher: TextMatcher): Pieces<boolean> {
  const scan = text.length > PIECE_BYTES ? matcher.stream?.() : undefined
  if (scan === undefined) return matcher.matchesBytes(text)
  for (let from = 0; from < text.length && !scan.hit; from += PIECE_BYTES) {
    scan.push(text.subarray(from, from + PIECE_BYTES))
    yield
  }
  return scan.hit
}
