import { jsonBytes } from '../shared/json.ts'

/** Ends every text that was cut. */
export const CUT_MARKER = ' [cut]'

/**
 * The text, cut on a code point so that it takes at most `maxBytes` as JSON, with a visible marker at its end.
 * `measure` tells the size in bytes of the JSON that holds a candidate; it must not shrink as the text grows and
 * must be at least the text's length. Default: the size of the text as a JSON string, quotes included.
 */
export function truncate(
  text: string,
  maxBytes: number,
  measure: (candidate: string) => number = jsonBytes,
): string {
  if (text.length <= maxBytes && measure(text) <= maxBytes) return text
  let fits = 0
  let tooLong = Math.min(text.length, maxBytes) + 1
  while (tooLong - fits > 1) {
    const middle = (fits + tooLong) >> 1
    if (measure(cutAt(text, middle) + CUT_MARKER) <= maxBytes) fits = middle
    else tooLong = middle
  }
  return cutAt(text, fits) + CUT_MARKER
}

/** The first `length` code units, one less when that would split a surrogate pair. */
function cutAt(text: string, length: number): string {
  const splits = isLead(text.charCodeAt(length - 1)) && isTrail(text.charCodeAt(length))
  return text.slice(0, splits ? length - 1 : length)
}

function isLead(unit: number): boolean {
  return unit >= 0xd800 && unit < 0xdc00
}

function isTrail(unit: number): boolean {
  return unit >= 0xdc00 && unit < 0xe000
}
