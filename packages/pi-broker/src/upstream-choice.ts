import {
  type AdmittedCall,
  BrokerError,
  pickUpstream,
  readEndpoint,
  type ScopePicker,
  triedSlot,
} from '@sandbox/broker/engine'
import type { AuthSlot } from '@sandbox/credential-scope'

/** Where the calls of a scope go. What is left out is as the broker's own options say. */
export interface PiUpstreamChoice {
  /** As `PiSandboxBrokerOptions.upstream`. */
  readonly url?: string
  readonly model?: string
  readonly authSlot?: AuthSlot
}

/**
 * Picks the upstream of a scope; `undefined` = as the options say. Asked before every call, with a frozen copy of
 * the scope; it must answer within 10 s. A throw fails the call, and its text never reaches the guest.
 */
export type PiUpstreamPicker = ScopePicker<PiUpstreamChoice>

/** An upstream, checked. */
export interface PiUpstream {
  readonly base: URL
  readonly model: string
  readonly authSlot: AuthSlot
}

/** What the broker's own options say, and what depends on the scope. */
export interface PiUpstreamOptions {
  readonly allowHttp: boolean
  readonly home: PiUpstream
  readonly picker: PiUpstreamPicker | undefined
}

/** The Messages API, unless the options name another place. */
const ANTHROPIC = 'https://api.anthropic.com'

/** The upstream of a call's scope. Throws as {@link pickUpstream} does. */
export function chooseUpstream(options: PiUpstreamOptions, call: AdmittedCall): Promise<PiUpstream> {
  return pickUpstream({ ...options, read: (choice) => readUpstream(choice, options) }, call)
}

/**
 * Checks an upstream. What is left out is as `home` says.
 * @throws BrokerError `options_invalid`, naming the field.
 */
export function readUpstream(
  choice: PiUpstreamChoice,
  { allowHttp, home }: { readonly allowHttp: boolean; readonly home?: PiUpstream },
): PiUpstream {
  const base = choice.url === undefined && home !== undefined ? home.base : readBase(choice.url, allowHttp)
  const model = choice.model ?? home?.model
  if (typeof model !== 'string' || model === '' || model.length > 256) {
    throw invalid('model', 'must be a string of 1 to 256 characters')
  }
  return { base, model, authSlot: readSlot(choice.authSlot ?? home?.authSlot ?? { kind: 'bearer' }, base) }
}

/** The full URL of one of the API's paths. */
export function urlOf({ base }: PiUpstream, path: string, query: string): URL {
  const url = new URL(base)
  url.pathname = url.pathname.replace(/\/$/, '') + path
  url.search = query
  return url
}

function readBase(text: string | undefined, allowHttp: boolean): URL {
  const endpoint = readEndpoint(text ?? ANTHROPIC, { allowHttp })
  if ('problem' in endpoint) throw invalid('upstream', endpoint.problem)
  if (endpoint.url.search !== '' || String(text).includes('?')) throw invalid('upstream', 'has a query')
  return endpoint.url
}

function readSlot(slot: AuthSlot, url: URL): AuthSlot {
  if (slot?.kind !== 'bearer' && (slot?.kind !== 'header' || !/^x-[a-z-]{1,64}$/i.test(slot.name))) {
    throw invalid('authSlot', 'must be bearer, or a header whose name begins with x-')
  }
  return triedSlot(slot, url)
}

function invalid(field: string, problem: string): BrokerError {
  return new BrokerError('options_invalid', `${field}: ${problem}`)
}
