import { createHash, timingSafeEqual } from 'node:crypto'
import type { MiddlewareHandler } from 'hono'

/** Carries the token of this start on every request to `/api/`. */
const TOKEN_HEADER = 'x-demo-token'

const LOOPBACK_NAMES: ReadonlySet<string> = new Set(['127.0.0.1', 'localhost', '[::1]'])

const PAGE_HEADERS: Readonly<Record<string, string>> = {
  'content-security-policy': [
    "default-src 'none'",
    "script-src 'self'",
    "style-src 'self'",
    "img-src 'self'",
    "connect-src 'self'",
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'",
    "require-trusted-types-for 'script'",
    "trusted-types 'none'",
  ].join('; '),
  'x-content-type-options': 'nosniff',
  'referrer-policy': 'no-referrer',
  'cross-origin-opener-policy': 'same-origin',
  'cross-origin-resource-policy': 'same-origin',
  'permissions-policy': 'camera=(), geolocation=(), microphone=()',
  'cache-control': 'no-store',
}

/** Puts the page's policy on every answer, refusals included. */
export const pageHeaders: MiddlewareHandler = async (context, next) => {
  await next()
  for (const [name, value] of Object.entries(PAGE_HEADERS)) context.res.headers.set(name, value)
}

/**
 * Refuses a request that names another host than this machine or one of `names`: a foreign site that lets its own
 * name point here (DNS rebinding). The port is free, so that an SSH forward works.
 */
export function knownHost(names: readonly string[] = []): MiddlewareHandler {
  const known = new Set([...LOOPBACK_NAMES, ...names.map((name) => name.toLowerCase())])
  return async (context, next) => {
    const host = context.req.header('host') ?? ''
    if (known.has(host.toLowerCase().replace(/:\d{1,5}$/, ''))) return next()
    return context.json(refusal('host_refused', 'This address does not answer to this host name.'), 403)
  }
}

/** Refuses what another site's page sends, behind a proxy with TLS or not. Programs that name no origin are left to the token. */
export const sameOrigin: MiddlewareHandler = async (context, next) => {
  const origin = context.req.header('origin')
  const site = context.req.header('sec-fetch-site')
  const host = context.req.header('host') ?? ''
  const foreign = origin !== undefined && origin !== `http://${host}` && origin !== `https://${host}`
  if (foreign || (site !== undefined && site !== 'same-origin')) {
    return context.json(refusal('origin_refused', 'Another site may not talk to this page.'), 403)
  }
  return next()
}

/** Refuses a request without the token of this start, so that other accounts of this machine stay out. */
export function tokenGuard(token: string): MiddlewareHandler {
  const want = digest(token)
  return async (context, next) => {
    if (!timingSafeEqual(want, digest(context.req.header(TOKEN_HEADER) ?? ''))) {
      return context.json(
        refusal('token_refused', 'Open the address that the bot printed: it holds the key to this page.'),
        403,
      )
    }
    return next()
  }
}

/** The body of every refusal. */
export function refusal(code: string, message: string): { error: { code: string; message: string } } {
  return { error: { code, message } }
}

function digest(text: string): Buffer {
  return createHash('sha256').update(text).digest()
}
