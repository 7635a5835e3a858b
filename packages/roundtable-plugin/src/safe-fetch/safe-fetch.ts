import type { Dispatcher } from 'undici'
import { Client } from 'undici/index.js'
import { connectPinned } from './connect-pinned.ts'
import { SafeFetchError, UnsafeUrlError } from './errors.ts'
import {
  type NetworkPorts,
  type PublicUrlOptions,
  type ResolvedFetchOptions,
  resolveOptions,
  type SafeFetchOptions,
  systemNetwork,
} from './options.ts'
import { isPublicAddress } from './public-address.ts'
import { readAnswer } from './read-answer.ts'
import { type VettedUrl, vetUrl } from './vet-url.ts'

/** `safeFetch` and `assertPublicUrl` over one network. */
export interface SafeFetcher {
  safeFetch(url: string | URL, options?: SafeFetchOptions): Promise<Response>
  assertPublicUrl(url: string | URL, options?: PublicUrlOptions): Promise<void>
}

const REDIRECTS = new Set([301, 302, 303, 307, 308])
/** What says nothing of the caller, and so may follow a redirect to another origin. */
const PLAIN_HEADERS = new Set(['accept', 'accept-language', 'user-agent'])
/** A `Response` has no body with these (WHATWG Fetch). */
const NO_BODY = new Set([204, 205, 304])

/** Makes the two over a network; tests bring one in which a local server counts as public. */
export function createSafeFetcher(network: NetworkPorts): SafeFetcher {
  return {
    async safeFetch(url, options = {}) {
      const resolved = resolveOptions(options)
      using limit = timeLimit(resolved.timeoutMs, options.signal)
      return await follow(url, resolved, network, limit.signal)
    },
    async assertPublicUrl(url, options = {}) {
      const resolved = resolveOptions(options)
      using limit = timeLimit(resolved.timeoutMs, options.signal)
      await vetUrl(url, resolved, network, limit.signal)
    },
  }
}

const fetcher = createSafeFetcher({ ...systemNetwork, isPublic: isPublicAddress })

/**
 * Gets a public http or https address that a stranger named, and nothing else: every number behind the name must be
 * public, the connection goes to one of the numbers that were checked, and each redirect is checked anew. No proxy of the environment is
 * used. The answer is read whole, decoded and bounded; its status may be any.
 *
 * @throws SafeFetchError with a code, of which {@link UnsafeUrlError} and `ResponseTooLargeError` are kinds; the reason
 * of `signal` when that fired
 */
export function safeFetch(url: string | URL, options?: SafeFetchOptions): Promise<Response> {
  return fetcher.safeFetch(url, options)
}

/**
 * Checks an address as `safeFetch` does, without asking it. The answer holds for now: whoever connects later looks the
 * name up again, and may be led elsewhere. To get something, use {@link safeFetch}.
 *
 * @throws SafeFetchError, as `safeFetch` does
 */
export function assertPublicUrl(url: string | URL, options?: PublicUrlOptions): Promise<void> {
  return fetcher.assertPublicUrl(url, options)
}

async function follow(
  first: string | URL,
  options: ResolvedFetchOptions,
  network: NetworkPorts,
  signal: AbortSignal,
): Promise<Response> {
  let next: string | URL = first
  let headers = options.headers
  for (let redirects = 0; ; redirects += 1) {
    const vetted = await vetUrl(next, options, network, signal)
    const { response, location } = await askOnce(vetted, { headers, options, network, signal })
    if (location === undefined) return response
    if (redirects >= options.maxRedirects) {
      throw new SafeFetchError('redirects', `More than ${options.maxRedirects} redirects.`)
    }
    const target: URL | null = URL.parse(location, vetted.url.href)
    if (target === null) throw new UnsafeUrlError('A redirect leads to something that is not a URL.')
    if (vetted.url.protocol === 'https:' && target.protocol === 'http:' && !options.allowDowngrade) {
      throw new UnsafeUrlError('A redirect leads from https to http.')
    }
    if (target.origin !== vetted.url.origin) headers = onlyPlain(headers)
    next = target
  }
}

/** Once the origin has changed, nothing that was dropped comes back. */
function onlyPlain(headers: ReadonlyMap<string, string>): ReadonlyMap<string, string> {
  return new Map([...headers].filter(([name]) => PLAIN_HEADERS.has(name)))
}

interface Ask {
  readonly headers: ReadonlyMap<string, string>
  readonly options: ResolvedFetchOptions
  readonly network: NetworkPorts
  readonly signal: AbortSignal
}

/** One request over one connection. `location` is set when the answer is a redirect that is to be followed. */
async function askOnce(
  vetted: VettedUrl,
  { headers, options, network, signal }: Ask,
): Promise<{ response: Response; location?: string }> {
  const { url } = vetted
  const socket = await connectPinned(vetted, { ca: network.ca, signal })
  const client = new Client(url.origin, {
    connect: (_options, connected) => queueMicrotask(() => connected(null, socket)),
  })
  try {
    if (socket.destroyed) throw new TypeError('the connection broke as it was made')
    const answer = await client.request({
      method: 'GET',
      path: url.pathname + url.search,
      headers: { ...Object.fromEntries(headers), 'accept-encoding': 'identity' },
      signal,
      headersTimeout: 0,
      bodyTimeout: 0,
    })
    const status = answer.statusCode
    const passed = plainHeaders(answer.headers)
    if (REDIRECTS.has(status) && options.followRedirects) {
      const location = passed.get('location')
      if (location === null) throw new SafeFetchError('redirects', `A redirect (${status}) has no target.`)
      return { response: new Response(null, { status }), location }
    }
    const bytes = await readAnswer(answer.body, { status, headers: passed }, options.maxBytes)
    return { response: responseOf(status, answer.statusText, passed, bytes) }
  } catch (cause) {
    signal.throwIfAborted()
    if (SafeFetchError.isInstance(cause)) throw cause
    throw new SafeFetchError('unreachable', `The connection to ${url.host} broke off.`, { cause })
  } finally {
    void client.destroy().catch(() => {})
    socket.destroy()
  }
}

function responseOf(status: number, statusText: string, headers: Headers, bytes: Buffer): Response {
  if (headers.has('content-encoding')) {
    headers.delete('content-encoding')
    headers.delete('content-length')
  }
  if (status < 200 || status > 599)
    throw new SafeFetchError('unreachable', `The answer has the status ${status}.`)
  const body = NO_BODY.has(status) ? null : new Uint8Array(bytes)
  return new Response(body, {
    status,
    statusText: /^[\t\x20-\x7e\x80-\xff]*$/.test(statusText) ? statusText : '',
    headers,
  })
}

function plainHeaders(given: Dispatcher.ResponseData['headers']): Headers {
  const headers = new Headers()
  for (const [name, value] of Object.entries(given)) {
    for (const one of Array.isArray(value) ? value : [value ?? '']) headers.append(name, one)
  }
  return headers
}

/** A signal for a time limit and a caller's signal; given back when the work is over, so that nothing is left listening. */
function timeLimit(timeoutMs: number, outer: AbortSignal | undefined): { signal: AbortSignal } & Disposable {
  const controller = new AbortController()
  const passOn = () => controller.abort(outer?.reason)
  if (outer?.aborted) passOn()
  outer?.addEventListener('abort', passOn, { once: true })
  const late = () => controller.abort(new SafeFetchError('timeout', `Not done within ${timeoutMs} ms.`))
  const timer = setTimeout(late, timeoutMs)
  return {
    signal: controller.signal,
    [Symbol.dispose]() {
      clearTimeout(timer)
      outer?.removeEventListener('abort', passOn)
    },
  }
}
