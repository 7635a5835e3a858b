/** An endpoint, or what is wrong with it. */
export type EndpointOrProblem = { readonly url: URL } | { readonly problem: string }

/**
 * Reads an endpoint URL of the operator: `https:`, no user info, no fragment; a query is allowed. With
 * `allowHttp`, `http:` too, but for loopback hosts only. Problems never quote the URL: it may hold a key.
 */
export function readEndpoint(text: unknown, options: { readonly allowHttp: boolean }): EndpointOrProblem {
  if (typeof text !== 'string' || !URL.canParse(text)) return { problem: 'is no URL' }
  const url = new URL(text)
  if (url.username !== '' || url.password !== '') {
    return { problem: 'has a user name or password in it: use apiKey and authSlot' }
  }
  if (url.hash !== '' || text.includes('#')) return { problem: 'has a fragment' }
  if (url.protocol === 'https:') return { url }
  if (url.protocol !== 'http:') return { problem: 'must start with https:' }
  if (!options.allowHttp) return { problem: 'must start with https: (or set allowHttp for a loopback host)' }
  if (!isLoopback(url.hostname)) return { problem: 'may use http: with a loopback host only' }
  return { url }
}

function isLoopback(hostname: string): boolean {
  return hostname === 'localhost' || hostname === '[::1]' || /^127(\.\d{1,3}){3}$/.test(hostname)
}
