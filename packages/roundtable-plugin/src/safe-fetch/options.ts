import { Resolver } from 'node:dns/promises'
import { networkInterfaces } from 'node:os'
import { SafeFetchError } from './errors.ts'
import { type AddressRange, parseRange } from './public-address.ts'

/** How `safeFetch` and `assertPublicUrl` decide what may be asked. */
export interface PublicUrlOptions {
  /** Ports that may be asked. Omitted = 80 and 443. */
  readonly ports?: readonly number[]
  /** Addresses and ranges (`203.0.113.7`, `2001:db8::/32`) that are refused as well, such as those of your own edge. */
  readonly deny?: readonly string[]
  /** Ends everything; the promise rejects with its reason. */
  readonly signal?: AbortSignal
}

/** What `safeFetch` takes beside the address. */
export interface SafeFetchOptions extends PublicUrlOptions {
  /** Largest answer, on the wire and decoded, in bytes: 1 to 32 MiB. Omitted = 5 MiB. */
  readonly maxBytes?: number
  /** From the call to the last byte, in milliseconds: 1 to 120,000. Omitted = 60,000. */
  readonly timeoutMs?: number
  /** 0 to 10. Omitted = 5. */
  readonly maxRedirects?: number
  /** False returns a redirect as it is. Omitted = true. */
  readonly followRedirects?: boolean
  /** Lets a redirect lead from https to http. Omitted = false. */
  readonly allowDowngrade?: boolean
  /**
   * Sent to the origin of the address. After a redirect to another origin only `accept`, `accept-language` and
   * `user-agent` are left. Headers that frame or route a request are refused.
   */
  readonly headers?: Readonly<Record<string, string>>
}

/** What the network is made of; tests bring their own. */
export interface NetworkPorts {
  /** Every address of a name. It must give up when `signal` fires. */
  resolve(host: string, signal: AbortSignal): Promise<readonly string[]>
  /** Addresses of this machine: never asked, wherever they lie. */
  ownAddresses(): readonly string[]
  isPublic(address: string): boolean
  /** Certificates to trust, in PEM. Omitted = those of Node. */
  readonly ca?: string
}

/** Options with every default filled in. */
export interface ResolvedFetchOptions {
  readonly ports: ReadonlySet<number>
  readonly deny: readonly AddressRange[]
  readonly maxBytes: number
  readonly timeoutMs: number
  readonly maxRedirects: number
  readonly followRedirects: boolean
  readonly allowDowngrade: boolean
  readonly headers: ReadonlyMap<string, string>
}

const MIB = 2 ** 20
const OWN_HEADERS =
  /^(?:host|connection|keep-alive|proxy-.*|te|trailer|transfer-encoding|upgrade|expect|content-.*|accept-encoding|http2-settings)$/
const TOKEN = /^[!#$%&'*+.^_`|~\w-]+$/
const VALUE = /^[\t\x20-\x7e\x80-\xff]*$/

/** Checks the options and fills in the defaults. Throws {@link SafeFetchError} `options_invalid` naming the option. */
export function resolveOptions(options: SafeFetchOptions): ResolvedFetchOptions {
  return {
    ports: new Set((options.ports ?? [80, 443]).map((port) => whole('ports', port, 1, 65_535))),
    deny: (options.deny ?? []).map(checkedRange),
    maxBytes: whole('maxBytes', options.maxBytes ?? 5 * MIB, 1, 32 * MIB),
    timeoutMs: whole('timeoutMs', options.timeoutMs ?? 60_000, 1, 120_000),
    maxRedirects: whole('maxRedirects', options.maxRedirects ?? 5, 0, 10),
    followRedirects: options.followRedirects ?? true,
    allowDowngrade: options.allowDowngrade ?? false,
    headers: new Map(headerEntries(options.headers).map(checkedHeader)),
  }
}

function whole(option: string, value: number, least: number, most: number): number {
  if (!Number.isInteger(value) || value < least || value > most) {
    throw invalid(option, `must be a whole number from ${least} to ${most}`)
  }
  return value
}

function checkedRange(range: string): AddressRange {
  try {
    return parseRange(range)
  } catch (cause) {
    throw invalid('deny', 'must be addresses or ranges such as 203.0.113.0/24', cause)
  }
}

/** A `Headers` or a list of pairs has no entries as an object: its headers would be lost in silence. */
function headerEntries(headers: SafeFetchOptions['headers'] = {}): [string, string][] {
  if (Symbol.iterator in headers) {
    throw invalid(
      'headers',
      'must be an object of names and texts; Object.fromEntries makes one of a Headers',
    )
  }
  return Object.entries(headers)
}

function checkedHeader([name, value]: [string, string]): [string, string] {
  const lower = name.toLowerCase()
  if (!TOKEN.test(name) || OWN_HEADERS.test(lower))
    throw invalid('headers', `cannot have ${JSON.stringify(name)}`)
  if (typeof value !== 'string' || !VALUE.test(value))
    throw invalid('headers', `has a bad value for ${lower}`)
  return [lower, value]
}

function invalid(option: string, problem: string, cause?: unknown): SafeFetchError {
  return new SafeFetchError('options_invalid', `${option} ${problem}.`, { cause })
}

/** The machine's own resolver and interfaces. */
export const systemNetwork: Omit<NetworkPorts, 'isPublic'> = {
  async resolve(host, signal) {
    const resolver = new Resolver({ timeout: 5_000, tries: 2 })
    const cancel = () => resolver.cancel()
    signal.addEventListener('abort', cancel, { once: true })
    try {
      const answers = await Promise.allSettled([resolver.resolve4(host), resolver.resolve6(host)])
      return answers.flatMap((answer) => (answer.status === 'fulfilled' ? answer.value : []))
    } finally {
      signal.removeEventListener('abort', cancel)
    }
  },
  ownAddresses: () =>
    Object.values(networkInterfaces()).flatMap((all) => (all ?? []).map(({ address }) => address)),
}
