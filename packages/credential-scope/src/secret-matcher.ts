import { PatternSearch } from './pattern-search.ts'
import { revealSecret, type Secret } from './secret.ts'
import { secretPatterns } from './secret-patterns.ts'
import { PatternStream, type SecretStream } from './secret-stream.ts'

/** Looks for a set of secrets in all their encodings. */
export interface SecretMatcher {
  /** Whether there are no secrets to look for: then nothing matches. */
  readonly empty: boolean
  /** Whether `text` holds a secret in any encoding. */
  matches(text: string): boolean
  /** Whether `bytes` hold a secret in any encoding. */
  matchesBytes(bytes: Uint8Array): boolean
  /**
   * A scanner for one stream of bytes.
   *
   * `holdFromBytes`: endings shorter than this many bytes of a secret are passed on at once, though a secret that
   * goes on after them is still found; omitted = 1, nothing of a secret ever passes.
   */
  stream(options?: { holdFromBytes?: number }): SecretStream
}

/** Text up to this length is encoded into a buffer that is used again and again. */
const SCRATCH_CHARS = 64 * 1024

/** How many compiled sets are kept, so that a credential that is used for every call is compiled once. */
const KEPT_SEARCHES = 16

let scratch: Uint8Array | undefined
const encoder = new TextEncoder()
const searches = new Map<string, PatternSearch>()

/**
 * Builds a matcher for the secrets that there are now: one for which the iterable grows later does not know the
 * new ones. Without secrets it never matches. Building it again for the same credentials is cheap.
 */
export function createSecretMatcher(secrets: Iterable<Secret>): SecretMatcher {
  const search = searchFor([...new Set([...secrets].map(revealSecret))].sort())
  return {
    empty: search.shortest === 0,
    matches: (text) => text.length >= search.shortest && search.found(encode(text)),
    matchesBytes: (bytes) => search.found(bytes),
    stream: (options = {}) => {
      const { holdFromBytes = 1 } = options
      if (!Number.isSafeInteger(holdFromBytes) || holdFromBytes < 1) {
        throw new TypeError('holdFromBytes must be a whole number of at least 1')
      }
      return new PatternStream(search, holdFromBytes)
    },
  }
}

function searchFor(tokens: readonly string[]): PatternSearch {
  // A token has no line break.
  const key = tokens.join('\n')
  const known = searches.get(key)
  searches.delete(key)
  const search =
    known ?? new PatternSearch(tokens.flatMap((token) => secretPatterns(token).map(({ bytes }) => bytes)))
  searches.set(key, search)
  for (const oldest of searches.keys()) {
    if (searches.size <= KEPT_SEARCHES) break
    searches.delete(oldest)
  }
  return search
}

function encode(text: string): Uint8Array {
  if (text.length > SCRATCH_CHARS) return encoder.encode(text)
  scratch ??= new Uint8Array(SCRATCH_CHARS * 3)
  return scratch.subarray(0, encoder.encodeInto(text, scratch).written)
}
