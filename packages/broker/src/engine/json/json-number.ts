import { JsonProblem } from './json-problem.ts'

/** Most digits in a row. Numbers that mean something have some twenty. */
const MOST_DIGITS = 64 * 1024

/** The offset after the JSON number at `from`. Its bytes are all that is kept: no precision is lost. */
export function numberEnd(bytes: Uint8Array, from: number): number {
  let at = from
  if (bytes[at] === 0x2d) at++
  at = bytes[at] === 0x30 ? at + 1 : digitsEnd(bytes, at)
  if (bytes[at] === 0x2e) at = digitsEnd(bytes, at + 1)
  if (((bytes[at] as number) | 0x20) === 0x65) {
    at++
    if (bytes[at] === 0x2b || bytes[at] === 0x2d) at++
    at = digitsEnd(bytes, at)
  }
  return at
}

/** The offset after one or more digits. */
function digitsEnd(bytes: Uint8Array, from: number): number {
  let at = from
  while ((bytes[at] as number) >= 0x30 && (bytes[at] as number) <= 0x39 && at - from <= MOST_DIGITS) at++
  if (at === from) throw new JsonProblem('a number is not written as JSON', from)
  if (at - from > MOST_DIGITS) throw new JsonProblem('a number is too long', from)
  return at
}
