import { isIP } from 'node:net'
import { SafeFetchError, UnsafeUrlError } from './errors.ts'
import type { NetworkPorts, ResolvedFetchOptions } from './options.ts'
import { isIn, parseAddress } from './public-address.ts'

/** An address that may be asked, and the numbers that its name stands for right now. */
export interface VettedUrl {
  /** Without a fragment. */
  readonly url: URL
  /** At least one, each of them allowed. The connection goes to one of these and nowhere else. */
  readonly addresses: readonly string[]
}

/**
 * Checks an address and every number behind its name.
 * @throws UnsafeUrlError when any of them must not be asked, SafeFetchError `unreachable` when the name has none
 */
export async function vetUrl(
  given: string | URL,
  options: Pick<ResolvedFetchOptions, 'ports' | 'deny'>,
  network: NetworkPorts,
  signal: AbortSignal,
): Promise<VettedUrl> {
  const url = parseUrl(given)
  const port = portOf(url)
  if (!options.ports.has(port))
    throw new UnsafeUrlError(`Port ${port} of ${url.hostname} is not among those allowed.`)
  // The parser has already turned numbers in other bases into the usual spelling.
  const host = url.hostname.replace(/^\[(.*)\]$/, '$1')
  if (/(?:^|\.)localhost\.?$/.test(host)) throw new UnsafeUrlError(`${host} is a non-public name.`)
  const addresses = isIP(host) === 0 ? await lookUp(host, network, signal) : [host]
  const own = new Set(network.ownAddresses().map((address) => parseAddress(address)?.toString()))
  for (const address of addresses) {
    const parsed = parseAddress(address)
    const denied = parsed === undefined || options.deny.some((range) => isIn(parsed, range))
    if (denied || own.has(parsed.toString()) || !network.isPublic(address)) {
      throw new UnsafeUrlError(`${url.hostname} leads to a non-public or refused address.`)
    }
  }
  return { url, addresses }
}

/** The port that an address means. */
export function portOf(url: URL): number {
  if (url.port !== '') return Number(url.port)
  return url.protocol === 'https:' ? 443 : 80
}

function parseUrl(given: string | URL): URL {
  const url = URL.parse(String(given))
  if (url === null) throw new UnsafeUrlError('The address is not a URL.')
  if (url.protocol !== 'http:' && url.protocol !== 'https:') {
    throw new UnsafeUrlError(`Only http and https addresses are asked, and this one is ${url.protocol}`)
  }
  if (url.username !== '' || url.password !== '')
    throw new UnsafeUrlError('The address has user information in it.')
  url.hash = ''
  return url
}

async function lookUp(host: string, network: NetworkPorts, signal: AbortSignal): Promise<readonly string[]> {
  signal.throwIfAborted()
  const addresses = await unlessAborted(network.resolve(host, signal), signal)
  signal.throwIfAborted()
  if (addresses.length === 0) throw new SafeFetchError('unreachable', `There is no address for ${host}.`)
  return addresses
}

/** A resolver that does not hear the signal is not waited for. Rejects with the signal's reason. */
async function unlessAborted<T>(work: Promise<T>, signal: AbortSignal): Promise<T> {
  const { promise, reject } = Promise.withResolvers<never>()
  const abort = () => reject(signal.reason)
  signal.addEventListener('abort', abort, { once: true })
  try {
    return await Promise.race([work, promise])
  } finally {
    signal.removeEventListener('abort', abort)
  }
}
