import type { AuthSlot, CredentialGetter } from '@sandbox/credential-scope'
import type { AdmittedCall } from './engine/call/route.ts'
import { BrokerError } from './engine/errors.ts'
import { readEndpoint } from './engine/upstream/endpoint.ts'
import { getterFor, pickUpstream, type ScopePicker } from './engine/upstream/pick-upstream.ts'
import { triedSlot } from './engine/upstream/tried-slot.ts'

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
export type UpstreamPicker = ScopePicker<UpstreamChoice>

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

/** The upstream of a call's scope. Throws as {@link pickUpstream} does. */
export function chooseUpstream(
  { upstream }: { readonly upstream: UpstreamOptions },
  call: AdmittedCall,
): Promise<Upstream> {
  return pickUpstream({ ...upstream, read: (choice) => readChoice(choice, upstream) }, call)
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
    getterFor: (url) => getterFor(apiKey, home.chat.origin, url),
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
    getterFor: (url) => getterFor(apiKey, chat.origin, url),
  }
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
  return triedSlot(slot, url)
}

function invalid(field: string, problem: string): BrokerError {
  return new BrokerError('options_invalid', `${field}: ${problem}`)
}
