import type { RefreshOutcome, TokenPair } from '../refreshing.ts'
import { tokenProblem } from '../secret.ts'

/** A token endpoint as data. */
export interface OAuthEndpoint {
  readonly url: string
  /** The public client that the login was made with. */
  readonly clientId: string
  /** How the request is written: RFC 6749 forms, or the same fields as JSON. */
  readonly body: 'form' | 'json'
  /** More fields of the request. */
  readonly fields?: Readonly<Record<string, string>>
  /** Error codes, beside `invalid_grant`, that mean that this refresh token will never be accepted. */
  readonly refusals?: readonly string[]
}

/** The logins of two services, as their own command line programs make them. */
export const oauthEndpoints: Readonly<Record<'anthropic' | 'codex', OAuthEndpoint>> = {
  anthropic: {
    url: 'https://platform.claude.com/v1/oauth/token',
    clientId: '9d1c250a-e61b-44d9-88ed-5944d1962f5e',
    body: 'json',
  },
  codex: {
    url: 'https://auth.openai.com/oauth/token',
    clientId: 'app_EMoamEEZ73f0CkXaXp7hrann',
    body: 'json',
    fields: { scope: 'openid profile email' },
    refusals: ['refresh_token_expired', 'refresh_token_reused', 'refresh_token_invalidated'],
  },
}

const TIMEOUT_MS = 15_000
const ANSWER_BYTES = 1024 * 1024
/** When an answer says nothing about its end: short, so that a wrong guess mends itself. */
const UNKNOWN_LIFE_MS = 3_600_000

/**
 * Refreshes at a token endpoint by RFC 6749 section 6: fields `grant_type`, `refresh_token` and `client_id` out,
 * `access_token`, `refresh_token` and `expires_in` back. Without a new refresh token the old one stays; without
 * `expires_in` the `exp` of an access token that is a JWT counts, else an hour. Redirects are not followed. An
 * answer that is not understood is a failure, never a pair.
 *
 * `timeoutMs`: longest wait; omitted = 15,000. `allowHttp`: for endpoints on loopback, such as in tests.
 *
 * @throws TypeError for a URL that is not https, or http on loopback where that is allowed.
 */
export function refreshAt(
  endpoint: OAuthEndpoint,
  options: { timeoutMs?: number; allowHttp?: boolean } = {},
): (pair: TokenPair) => Promise<RefreshOutcome> {
  const { timeoutMs = TIMEOUT_MS, allowHttp = false } = options
  checkUrl(endpoint.url, allowHttp)
  return async (pair) => {
    try {
      const signal = AbortSignal.timeout(timeoutMs)
      const response = await fetch(endpoint.url, { ...requestFor(endpoint, pair), signal })
      return judge(endpoint, pair, response.status, await boundedJson(response))
    } catch (cause) {
      return { kind: 'failed', reason: 'the token endpoint did not answer', cause }
    }
  }
}

function checkUrl(url: string, allowHttp: boolean): void {
  const { protocol, hostname, username } = new URL(url)
  const loopback = ['localhost', '127.0.0.1', '[::1]'].includes(hostname)
  if ((protocol === 'https:' || (allowHttp && protocol === 'http:' && loopback)) && username === '') return
  throw new TypeError('A token endpoint must be an https URL without user info')
}

function requestFor({ clientId, body, fields }: OAuthEndpoint, pair: TokenPair): RequestInit {
  const sent = {
    grant_type: 'refresh_token',
    refresh_token: pair.refreshToken,
    client_id: clientId,
    ...fields,
  }
  const json = body === 'json'
  return {
    method: 'POST',
    redirect: 'error',
    headers: {
      accept: 'application/json',
      'content-type': json ? 'application/json' : 'application/x-www-form-urlencoded',
    },
    body: json ? JSON.stringify(sent) : new URLSearchParams(sent).toString(),
  }
}

async function boundedJson(response: Response): Promise<Record<string, unknown>> {
  const chunks: Uint8Array[] = []
  let size = 0
  for await (const chunk of response.body ?? []) {
    size += chunk.length
    if (size > ANSWER_BYTES) throw new TypeError('the answer is too long')
    chunks.push(chunk)
  }
  try {
    const parsed: unknown = JSON.parse(Buffer.concat(chunks).toString('utf8'))
    return typeof parsed === 'object' && parsed !== null ? { ...parsed } : {}
  } catch {
    return {}
  }
}

function judge(
  endpoint: OAuthEndpoint,
  old: TokenPair,
  status: number,
  body: Record<string, unknown>,
): RefreshOutcome {
  if (status === 200) return readPair(old, body)
  const code = errorCode(body)
  const refusals = ['invalid_grant', ...(endpoint.refusals ?? [])]
  if ((status === 400 || status === 401 || status === 403) && code !== undefined && refusals.includes(code)) {
    return { kind: 'refused', reason: code }
  }
  return { kind: 'failed', reason: `the token endpoint answered ${status}` }
}

/** RFC 6749 section 5.2 has `error` as text; some services nest an object with `code` or `type`. */
function errorCode(body: Record<string, unknown>): string | undefined {
  const { error } = body
  if (typeof error === 'string') return error
  if (typeof error !== 'object' || error === null) return undefined
  const { code, type } = error as { code?: unknown; type?: unknown }
  return [code, type].find((one) => typeof one === 'string')
}

function readPair(old: TokenPair, body: Record<string, unknown>): RefreshOutcome {
  const odd: RefreshOutcome = { kind: 'failed', reason: 'the token endpoint’s answer was not understood' }
  const { access_token: accessToken, refresh_token: refreshToken = old.refreshToken, expires_in: life } = body
  if (tokenProblem(accessToken) !== undefined || tokenProblem(refreshToken) !== undefined) return odd
  if (life !== undefined && !(typeof life === 'number' && life > 0 && Number.isFinite(life))) return odd
  const expiresAt = life === undefined ? jwtEnd(accessToken as string) : Date.now() + life * 1000
  return {
    kind: 'pair',
    pair: {
      accessToken: accessToken as string,
      refreshToken: refreshToken as string,
      expiresAt: Math.round(expiresAt ?? Date.now() + UNKNOWN_LIFE_MS),
    },
  }
}

/** RFC 7519 section 4.1.4. The token is not checked: its end is only a hint when to ask again. */
function jwtEnd(token: string): number | undefined {
  try {
    const { exp } = JSON.parse(Buffer.from(token.split('.')[1] ?? '', 'base64url').toString('utf8'))
    return typeof exp === 'number' && Number.isFinite(exp) ? exp * 1000 : undefined
  } catch {
    return undefined
  }
}
