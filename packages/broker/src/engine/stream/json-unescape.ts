import { unescaped } from '../reflection/scan-json.ts'

/** The beginning of an escape at the end of a text. */
const OPEN = /\\(?:u[0-9a-fA-F]{0,3})?$/

/** Replaces the escapes of JSON text that comes in pieces, cut anywhere. What is between strings stays as it is. */
export class JsonUnescape {
  #open = ''

  /** The next piece, unescaped; the beginning of an escape at its end waits for the rest. */
  push(piece: string): string {
    const text = this.#open + piece
    const whole = text.length - openEscape(text)
    this.#open = text.slice(whole)
    return text.includes('\\') ? unescaped(text.slice(0, whole)) : text
  }
}

/** Length of an escape at the end that is not complete. A backslash that is escaped itself opens none. */
function openEscape(text: string): number {
  const found = OPEN.exec(text)
  if (found === null) return 0
  let slashes = 1
  while (text[found.index - slashes] === '\\') slashes += 1
  return slashes % 2 === 1 ? text.length - found.index : 0
}
