import { decodeString } from './decode-string.ts'

const SLOTS = 64
const BYTES = 32

/** Decodes strings of one text; short ones that come again, such as names and roles, are made once. */
export class ShortStrings {
  readonly #bytes: Buffer
  readonly #slots: string[] = new Array<string>(SLOTS).fill('')

  constructor(bytes: Buffer) {
    this.#bytes = bytes
  }

  /** The text between two quotes. */
  decode(start: number, end: number, escaped: boolean): string {
    const bytes = this.#bytes
    const length = end - start
    if (escaped || length > BYTES) return decodeString(bytes, start, end, escaped)
    let hash = length
    for (let i = start; i < end; i++) hash = (hash * 31 + (bytes[i] as number)) & 0xffffff
    const slot = (hash ^ (hash >> 8)) & (SLOTS - 1)
    const kept = this.#slots[slot] as string
    if (kept.length === length && this.#isSame(kept, start)) return kept
    const text = decodeString(bytes, start, end, false)
    this.#slots[slot] = text
    return text
  }

  /** Characters beyond ASCII are never the same: their bytes are others. */
  #isSame(text: string, start: number): boolean {
    for (let i = 0; i < text.length; i++) {
      const code = text.charCodeAt(i)
      if (code !== this.#bytes[start + i] || code > 0x7f) return false
    }
    return true
  }
}
