import { limits } from '@sandbox/protocol'

/** An answer as it grows. Guest text, like the answer itself. */
export interface PiProgressUpdate {
  readonly turnId: string
  /** All of the answer that is known by now. */
  readonly text: string
  /** True when a piece before the last one was lost: `text` has a hole. */
  readonly hole: boolean
}

/** Puts the pieces of a growing answer together. Pieces may be lost; the result is the truth. */
export class GrowingText {
  #text = ''
  #hole = false

  /** Adds a piece that begins at `at`, in UTF-16 code units; at 0 the text starts anew. */
  add(at: number, piece: string): { readonly text: string; readonly hole: boolean } {
    this.#hole = at > this.#text.length || (this.#hole && at !== 0)
    this.#text = (this.#text.slice(0, at) + piece).slice(0, limits.REPLY_TEXT_CHARS)
    return { text: this.#text, hole: this.#hole }
  }
}
