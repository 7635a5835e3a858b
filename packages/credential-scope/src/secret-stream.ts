import type { PatternSearch } from './pattern-search.ts'

/** Finds secrets in a stream of bytes, in whatever pieces they come. */
export interface SecretStream {
  /**
   * Takes the next bytes and answers those that may be passed on now: all that came so far, but for the longest
   * ending that may still become a secret, normally none. The answer may be a view of `chunk`. From the push that
   * completes a secret on, always empty.
   */
  push(chunk: Uint8Array): Uint8Array
  /** Whether a secret was seen. Never goes back to `false`. */
  readonly hit: boolean
  /** How many bytes wait for what comes next. */
  readonly held: number
  /** Ends the stream and answers what still waited; empty after a hit. */
  end(): Uint8Array
}

const NOTHING = new Uint8Array(0)

/** The scanner behind {@link SecretStream}. */
export class PatternStream implements SecretStream {
  readonly #search: PatternSearch
  readonly #holdFrom: number
  /** The longest ending of all that came that may still become a pattern. */
  #open: Uint8Array = NOTHING
  /** How many bytes at the front of `#open` were passed on already. */
  #passed = 0
  #hit = false

  constructor(search: PatternSearch, holdFrom: number) {
    this.#search = search
    this.#holdFrom = holdFrom
  }

  get hit(): boolean {
    return this.#hit
  }

  get held(): number {
    return this.#open.length - this.#passed
  }

  push(chunk: Uint8Array): Uint8Array {
    if (this.#hit || chunk.length === 0) return NOTHING
    const data = this.#open.length === 0 ? chunk : joined(this.#open, chunk)
    if (this.#search.found(data)) {
      this.#hit = true
      this.#open = NOTHING
      this.#passed = 0
      return NOTHING
    }
    const open = this.#search.openEnding(data)
    const openFrom = data.length - open
    const passTo = open < this.#holdFrom ? data.length : Math.max(openFrom, this.#passed)
    const safe = data.subarray(this.#passed, passTo)
    // A copy: the caller may use the chunk's memory again.
    this.#open = open === 0 ? NOTHING : new Uint8Array(data.subarray(openFrom))
    this.#passed = Math.max(0, passTo - openFrom)
    return safe
  }

  end(): Uint8Array {
    const rest = this.#open.subarray(this.#passed)
    this.#open = NOTHING
    this.#passed = 0
    return rest
  }
}

function joined(head: Uint8Array, tail: Uint8Array): Uint8Array {
  const data = new Uint8Array(head.length + tail.length)
  data.set(head)
  data.set(tail, head.length)
  return data
}
