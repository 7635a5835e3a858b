import {
  type AuthSlot,
  CredentialError,
  type CredentialGetter,
  forOrigin,
  type SandboxCredentialScope,
  Secret,
  snapshotScope,
} from '@sandbox/credential-scope'
import { linkCallSignal, raceSignal } from './engine/call/call-signal.ts'
import { CallRefusal } from './engine/call/refusal.ts'
import type { AdmittedCall } from './engine/call/route.ts'
import { BrokerError } from './engine/errors.ts'
import { readEndpoint } from './engine/upstream/endpoint.ts'

/** Where the calls of a scope go. What is left out is as the broker's own options say. */
export interface UpstreamChoice {
  /** As `BrokerOptions.modelUrl`. With it, `responsesUrl` is taken from here too, or there is none. */
  readonly modelUrl?: string
  /** As `BrokerOptions.responsesUrl`. */
  readonly responsesUrl?: string
  readonly model?: string
  readonly authSlot?: AuthSlot
  /** As `BrokerOptions.tokenLimitField`. */
  readonly tokenLimitField?: 'max_tokens' | 'max_completion_tokens'
  /** As `BrokerOptions.renameTokenLimit`. */
  readonly renameTokenLimit?: boolean
  /** As `BrokerOptions.streamUsage`. */
  readonly streamUsage?: boolean
}

/**
 * Picks the upstream of a scope; `undefined` = as the options say. Asked before every call, with a frozen copy of
 * the scope; it must answer within 10 s. A throw fails the call, and its text never reaches the guest.
 */
export type UpstreamPicker = (
  scope: SandboxCredentialScope,
  options: { readonly signal: AbortSignal },
) => UpstreamChoice | undefined | Promise<UpstreamChoice | undefined>

/** An upstream, checked. */
export interface Upstream {
  /** Of Chat Completions. */
  readonly chat: URL
  readonly responses: URL | undefined
  readonly model: string
  readonly authSlot: AuthSlot
  readonly tokenLimitField: 'max_tokens' | 'max_completion_tokens'
  readonly renameTokenLimit: boolean
  readonly streamUsage: boolean
  /**
   * The getter for a credential that is spent at `url`. A credential that does not say which origin it is for is
   * for that of `BrokerOptions.modelUrl`, and goes nowhere else.
   */
  getterFor(url: URL): CredentialGetter
}

/** What the broker's own options say, and what depends on the scope. */
export interface UpstreamOptions {
  readonly allowHttp: boolean
  readonly apiKey: CredentialGetter
  readonly home: Upstream
  readonly picker: UpstreamPicker | undefined
}

const PICKER_MS = 10_000

/**
 * The upstream of a call's scope.
 * @throws CallRefusal `endpoint_invalid` when the picker fails, is too slow, or picks what options would refuse.
 * Rejects with the signal's reason when that fires.
 */
export async function chooseUpstream(
  { upstream }: { readonly upstream: UpstreamOptions },
  call: AdmittedCall,
): Promise<Upstream> {
  const { picker, home } = upstream
  if (picker === undefined) return home
  const { signal, detach } = linkCallSignal({ guest: call.signal, limitMs: PICKER_MS })
  try {
    const choice = await raceSignal(pick(picker, call, signal), signal)
    return choice === undefined ? home : readChoice(choice, upstream)
  } catch (cause) {
    call.signal.throwIfAborted()
    throw new CallRefusal('endpoint_invalid', { cause })
  } finally {
    detach()
  }
}

/** Also turns what the picker throws at once into a rejection. */
async function pick(picker: UpstreamPicker, { turn }: AdmittedCall, signal: AbortSignal) {
  return await picker(snapshotScope(turn.scope), { signal })
}

/**
 * Checks a choice.
 * @throws BrokerError `options_invalid`, naming the field.
 */
function readChoice(choice: UpstreamChoice, { allowHttp, apiKey, home }: UpstreamOptions): Upstream {
  const chat = choice.modelUrl === undefined ? home.chat : readUrl('modelUrl', choice.modelUrl, allowHttp)
  const responses =
    choice.responsesUrl === undefined
      ? chat === home.chat
        ? home.responses
        : undefined
      : readUrl('responsesUrl', choice.responsesUrl, allowHttp)
  return {
    chat,
    responses,
    model: choice.model === undefined ? home.model : readModel(choice.model),
    authSlot: choice.authSlot === undefined ? home.authSlot : readSlot(choice.authSlot, chat),
    tokenLimitField: readLimitField(choice.tokenLimitField ?? home.tokenLimitField),
    renameTokenLimit: readFlag('renameTokenLimit', choice.renameTokenLimit ?? home.renameTokenLimit),
    streamUsage: readFlag('streamUsage', choice.streamUsage ?? home.streamUsage),
    getterFor: (url) => boundTo(apiKey, home.chat.origin, url),
  }
}

/** The upstream that the broker's own options name. Throws as {@link readChoice} does. */
export function readHome(
  options: UpstreamChoice & { readonly modelUrl: string; readonly model: string },
  { allowHttp, apiKey }: { readonly allowHttp: boolean; readonly apiKey: CredentialGetter },
): Upstream {
  const chat = readUrl('modelUrl', options.modelUrl, allowHttp)
  const { responsesUrl } = options
  return {
    chat,
    responses: responsesUrl === undefined ? undefined : readUrl('responsesUrl', responsesUrl, allowHttp),
    model: readModel(options.model),
    authSlot: readSlot(options.authSlot ?? { kind: 'bearer' }, chat),
    tokenLimitField: readLimitField(options.tokenLimitField ?? 'max_tokens'),
    renameTokenLimit: readFlag('renameTokenLimit', options.renameTokenLimit ?? false),
    streamUsage: readFlag('streamUsage', options.streamUsage ?? true),
    getterFor: (url) => boundTo(apiKey, chat.origin, url),
  }
}

/** Decision 16: a bare credential is for one origin. */
function boundTo(getter: CredentialGetter, origin: string, url: URL): CredentialGetter {
  return url.origin === origin ? getter : forOrigin(origin, getter)
}

function readUrl(field: string, text: string, allowHttp: boolean): URL {
  const endpoint = readEndpoint(text, { allowHttp })
  if ('problem' in endpoint) throw invalid(field, endpoint.problem)
  return endpoint.url
}

function readModel(model: unknown): string {
  if (typeof model === 'string' && model !== '' && model.length <= 256) return model
  throw invalid('model', 'must be a string of 1 to 256 characters')
}

function readLimitField(field: unknown): Upstream['tokenLimitField'] {
  if (field === 'max_tokens' || field === 'max_completion_tokens') return field
  throw invalid('tokenLimitField', 'must be max_tokens or max_completion_tokens')
}

function readFlag(field: string, value: unknown): boolean {
  if (typeof value === 'boolean') return value
  throw invalid(field, 'must be true or false')
}

const SLOTS = new Set(['bearer', 'header', 'query', 'basic'])
const OWN_HEADERS =
  /^(accept.*|connection|content-.*|cookie|expect|host|keep-alive|proxy-.*|te|trailer|transfer-encoding|upgrade)$/i

/** Tries the slot with a value that is no credential. */
function readSlot(slot: AuthSlot, url: URL): AuthSlot {
  if (typeof slot !== 'object' || slot === null || !SLOTS.has(slot.kind)) {
    throw invalid('authSlot.kind', 'must be bearer, header, query or basic')
  }
  if (slot.kind === 'header' && typeof slot.name === 'string' && OWN_HEADERS.test(slot.name)) {
    throw invalid('authSlot.name', `"${slot.name}" is not for credentials`)
  }
  if (slot.kind === 'query' && (typeof slot.name !== 'string' || slot.name === '')) {
    throw invalid('authSlot.name', 'must be the name of a query parameter')
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
