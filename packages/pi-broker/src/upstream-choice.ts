import {
  type AdmittedCall,
  BrokerError,
  CallRefusal,
  linkCallSignal,
  raceSignal,
  readEndpoint,
} from '@sandbox/broker/engine'
import {
  type AuthSlot,
  CredentialError,
  type CredentialGetter,
  forOrigin,
  type SandboxCredentialScope,
  Secret,
  snapshotScope,
} from '@sandbox/credential-scope'

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
export type PiUpstreamPicker = (
  scope: SandboxCredentialScope,
  options: { readonly signal: AbortSignal },
) => PiUpstreamChoice | undefined | Promise<PiUpstreamChoice | undefined>

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
const PICKER_MS = 10_000

/**
 * The upstream of a call's scope.
 * @throws CallRefusal `endpoint_invalid` when the picker fails, is too slow, or picks what options would refuse.
 * Rejects with the signal's reason when that fires.
 */
export async function chooseUpstream(options: PiUpstreamOptions, call: AdmittedCall): Promise<PiUpstream> {
  const { picker, home } = options
  if (picker === undefined) return home
  const { signal, detach } = linkCallSignal({ guest: call.signal, limitMs: PICKER_MS })
  try {
    const choice = await raceSignal(pick(picker, call, signal), signal)
    return choice === undefined ? home : readUpstream(choice, options)
  } catch (cause) {
    call.signal.throwIfAborted()
    throw new CallRefusal('endpoint_invalid', { cause })
  } finally {
    detach()
  }
}

/** Also turns what the picker throws at once into a rejection. */
async function pick(picker: PiUpstreamPicker, { turn }: AdmittedCall, signal: AbortSignal) {
  return await picker(snapshotScope(turn.scope), { signal })
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

/**
 * The getter for a credential that is spent at `url` (decision 16): one that does not say which origin it is for is
 * for that of the broker's own upstream, and goes nowhere else.
 */
export function getterFor(getter: CredentialGetter, home: PiUpstream, url: URL): CredentialGetter {
  const { origin } = home.base
  return url.origin === origin ? getter : forOrigin(origin, getter)
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

/** Tries the slot with a value that is no credential. */
function readSlot(slot: AuthSlot, url: URL): AuthSlot {
  if (slot?.kind !== 'bearer' && (slot?.kind !== 'header' || !/^x-[a-z-]{1,64}$/i.test(slot.name))) {
    throw invalid('authSlot', 'must be bearer, or a header whose name begins with x-')
  }
  const copy = Object.freeze({ ...slot })
  try {
    new Secret({ token: 'sandbox-preflight', origin: url.origin }).applyTo({}, new URL(url), copy)
  } catch (cause) {
    if (!(cause instanceof TypeError) && !CredentialError.isInstance(cause)) throw cause
    throw new BrokerError('options_invalid', `authSlot: ${cause.message}`, { cause })
  }
  return copy
}

function invalid(field: string, problem: string): BrokerError {
  return new BrokerError('options_invalid', `${field}: ${problem}`)
}
