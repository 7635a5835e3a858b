import type { SecretMatcher } from '@sandbox/credential-scope'

const MOST_CHARS = 256
const NAMES =
  /^(retry-after|retry-after-ms|x-should-retry|request-id|x-request-id|(x|anthropic)-ratelimit-[a-z0-9-]{1,64})$/
const VALUE = /^[\x20-\x7e]*$/

/**
 * The headers of an upstream's answer that a guest gets: when to try again, what is left of a limit, and an id to
 * quote. Each only when it came once, is short, and carries no secret.
 */
export function passedHeaders(
  headers: Readonly<Record<string, string | string[] | undefined>>,
  matcher: SecretMatcher,
): Record<string, string> {
  const passed: Record<string, string> = {}
  for (const name in headers) {
    if (!Object.hasOwn(headers, name) || !NAMES.test(name)) continue
    const value = headers[name]
    if (typeof value !== 'string') continue
    if (value.length > MOST_CHARS || !VALUE.test(value) || matcher.matches(value)) continue
    if (!matcher.matches(name)) passed[name] = value
  }
  return passed
}
