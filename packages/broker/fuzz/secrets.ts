import { createSecretMatcher, Secret, type SecretMatcher } from '@sandbox/credential-scope'
import { encodingsOf } from '@sandbox/testing'
import type { Random } from './random.ts'

/** Secrets of several shapes. */
export const TOKENS: readonly string[] = [
  'sk-proj-0123456789abcdefABCDEF',
  'sk-ant-api03-aaaaaaaaaaaaaaaaaaaaaaaaaaab',
  'abababababababababababab',
  `eyJhbGciOiJub25lIn0.eyJzdWIiOiJ4In0.${'q1W2e3R4'.repeat(4)}`,
]

const MATCHERS = new Map(
  TOKENS.map((token) => [token, createSecretMatcher([new Secret({ token, origin: 'https://api.example' })])]),
)

/** What looks for one of {@link TOKENS}. */
export function matcherOf(token: string): SecretMatcher {
  return MATCHERS.get(token) as SecretMatcher
}

/** Right before a secret, beginnings of it: where a scanner that gives up too early goes wrong. */
export function spelled(random: Random, token: string): string {
  const starts = random.list(3, () => token.slice(0, random.below(token.length)))
  return starts.join('') + token
}

/** A secret in one of its forms. */
export function encoded(random: Random, token: string): Buffer {
  if (random.once(3)) return inBase64(random, token)
  const forms = [...encodingsOf(token)].filter(([name]) => !name.startsWith('base64'))
  return random.pick(forms)[1]
}

/** Base64 of a text with the secret in it. */
function inBase64(random: Random, token: string): Buffer {
  const text = Buffer.from(`${random.text(5)}${token}${random.text(5)}`)
  return Buffer.from(text.toString(random.pick(['base64', 'base64url'])))
}
