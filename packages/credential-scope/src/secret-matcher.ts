import { revealSecret, type Secret } from './secret.ts'
import { secretPatterns } from './secret-patterns.ts'

/** Finds secrets in a stream of bytes and never passes on a part of one. */
export interface SecretStream {
  /**
   * Takes the next bytes and answers the bytes that are safe to pass on now: all that came so far, but for the
   * longest ending that may still become a secret. Once there was a hit, always empty.
   */
  push(chunk: Uint8Array): Uint8Array
  /** Whether a secret was seen. Never goes back to `false`. */
  readonly hit: boolean
  /** Ends the stream and answers what was still held; empty after a hit. */
  end(): Uint8Array
}

/** Looks for a set of secrets in all their encodings. */
export interface SecretMatcher {
  /** Whether `text` holds a secret in any encoding. */
  matches(text: string): boolean
  /** Whether `bytes` hold a secret in any encoding. */
  matchesBytes(bytes: Uint8Array): boolean
  /** A scanner for one stream of bytes. */
  stream(): SecretStream
}

const NOTHING = new Uint8Array(0)

/** Builds a matcher. Later changes of `secrets` do not reach it; without secrets it never matches. */
export function createSecretMatcher(secrets: Iterable<Secret>): SecretMatcher {
  const patterns = [...secrets].flatMap((secret) => secretPatterns(revealSecret(secret)).map((p) => p.bytes))
  const contains = (bytes: Uint8Array) => {
    const view = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
    return patterns.some((pattern) => view.includes(pattern))
  }
  return {
    matches: (text) => contains(Buffer.from(text)),
    matchesBytes: contains,
    stream: () => new PatternStream(patterns, contains),
  }
}

class PatternStream implements SecretStream {
  readonly #patterns: readonly Buffer[]
  readonly #contains: (bytes: Uint8Array) => boolean
  #held: Uint8Array = NOTHING
  #hit = false

  constructor(patterns: readonly Buffer[], contains: (bytes: Uint8Array) => boolean) {
    this.#patterns = patterns
    this.#contains = contains
  }

  get hit(): boolean {
    return this.#hit
  }

  push(chunk: Uint8Array): Uint8Array {
    if (this.#hit) return NOTHING
    const data = Buffer.concat([this.#held, chunk])
    this.#held = NOTHING
    if (this.#contains(data)) {
      this.#hit = true
      return NOTHING
    }
    const keep = this.#openEnding(data)
    this.#held = data.subarray(data.length - keep)
    return data.subarray(0, data.length - keep)
  }

  end(): Uint8Array {
    const held = this.#held
    this.#held = NOTHING
    return held
  }

  #openEnding(data: Buffer): number {
    let longest = 0
    for (const pattern of this.#patterns) {
      const most = Math.min(pattern.length - 1, data.length)
      for (let size = most; size > longest; size--) {
        if (pattern.subarray(0, size).equals(data.subarray(data.length - size))) longest = size
      }
    }
    return longest
  }
}
