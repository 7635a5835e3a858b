import { JsonProblem } from './json-problem.ts'

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
  while ((bytes[at] as number) >= 0x30 && (bytes[at] as number) <= 0x39) at++
  if (at === from) throw new JsonProblem('a number is not written as JSON', from)
  return at
}
