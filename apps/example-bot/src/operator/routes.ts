import type { UpstreamChoice } from '@sandbox/broker'
import { type AuthSlot, CredentialError, type CredentialGetter, forOrigin } from '@sandbox/credential-scope'
import type { KeyFile, KeyFileExplanation } from '@sandbox/credential-scope/sources'
import type { ChannelKey, PiSandboxRuntimeOptions } from '@sandbox/roundtable-plugin'
import { BotError } from '../errors.ts'
import type { Explain } from '../ledger.ts'
import { GATEWAY_KEY_HEADER } from '../messages-gateway/messages-gateway.ts'
import type { ChannelSettings, ProviderSettings } from './bot-schema.ts'

/** How a channel is answered: a fresh container for each message, or a lasting one with the Pi agent. */
export type Mode = ChannelSettings['mode']

type Scope = Parameters<Explain>[0]
type PiChoice = Exclude<
  Awaited<ReturnType<Exclude<PiSandboxRuntimeOptions['upstream'], string | undefined>>>,
  undefined
>

/** Options of {@link Routes}. */
export interface RoutesOptions {
  readonly providers: Readonly<Record<string, ProviderSettings>>
  readonly channels: Readonly<Record<string, ChannelSettings>>
}

/** How Pi workers, which speak the Messages API, reach services that speak Chat Completions. */
export interface PiGateway {
  /** Base URL of the Messages API in front of a provider. */
  urlOf(provider: string): string
  /** The same key file, with keys for such providers bound to the gateway. */
  readonly keys: Pick<KeyFile, 'getter'>
}

/** A model service as a scope uses it. */
export interface Route {
  /** The provider's name. */
  readonly provider: string
  readonly settings: ProviderSettings
  readonly model: string
}

/** The origin of each provider, as `keyFile` takes it. */
export function providerOrigins(providers: RoutesOptions['providers']): Record<string, string> {
  return Object.fromEntries(Object.entries(providers).map(([name, { url }]) => [name, new URL(url).origin]))
}

/**
 * Which model service, model and place for the key a channel and a speaker use: what the rule of their key says, then
 * what their channel says, then the first provider that fits.
 */
export class Routes {
  readonly #providers: RoutesOptions['providers']
  readonly #channels: ReadonlyMap<string, ChannelSettings>
  readonly #keys: Pick<KeyFile, 'explain' | 'getter'>
  readonly #gateway: PiGateway | undefined

  /** Without a gateway Pi mode is for providers of the Messages API alone. */
  constructor(
    { providers, channels }: RoutesOptions,
    keys: Pick<KeyFile, 'explain' | 'getter'>,
    gateway?: PiGateway,
  ) {
    this.#gateway = gateway
    this.#providers = providers
    this.#channels = new Map(Object.entries(channels))
    this.#keys = keys
  }

  /** How a channel is answered; `undefined` for one that the configuration does not name. */
  modeOf(channel: string): Mode | undefined {
    return this.#settingsOf(channel)?.mode
  }

  /** The channels that are named in full and are not `on: false`. */
  channelsOf(mode: Mode): readonly ChannelKey[] {
    const own = [...this.#channels].filter(
      ([key, settings]) => settings.mode === mode && !key.endsWith('*') && settings.on !== false,
    )
    return own.map(([key]) => key as ChannelKey)
  }

  /** Whether any channel is answered in this mode. */
  uses(mode: Mode): boolean {
    return [...this.#channels.values()].some((settings) => settings.mode === mode)
  }

  /**
   * The model service of a scope.
   *
   * @throws BotError `config` when its mode cannot use the service that its key is for.
   */
  routeOf(scope: Scope): Route {
    const settings = this.#settingsOf(scope.channel)
    const mode = settings?.mode ?? 'sealed'
    const told = this.#told(scope)
    const usual = settings?.provider ?? this.#firstFor(mode)
    const provider = told.provider ?? usual
    const found = this.#providers[provider]
    if (found === undefined || !this.#fits(mode, found)) {
      throw new BotError(
        'config',
        `${scope.channel} is in ${mode} mode and its key is for the provider ${provider}, which cannot serve it.`,
      )
    }
    const channelModel = provider === usual ? settings?.model : undefined
    return { provider, settings: found, model: told.model ?? channelModel ?? found.model }
  }

  /**
   * The credentials of the key file, each for the origin of its scope's provider and for no other. A key that is for
   * nothing in particular is for the provider of its channel.
   */
  get getter(): CredentialGetter {
    return forOrigin((scope) => new URL(this.routeOf(scope).settings.url).origin, this.#keys.getter)
  }

  /** What the sealed mode is told: the first provider, and which other each scope has. */
  sealed(): {
    modelUrl: string
    model: string
    authSlot: AuthSlot
    upstream: (scope: Scope) => UpstreamChoice
  } {
    const { modelUrl, model, authSlot } = sealedChoice(this.#home('sealed'))
    return { modelUrl, model, authSlot, upstream: (scope) => sealedChoice(this.routeOf(scope)) }
  }

  /** The same for Pi mode, and the credentials for it. */
  pi(): {
    model: string
    authSlot: AuthSlot
    upstream: (scope: Scope) => PiChoice
    getter: CredentialGetter
  } {
    const { model, authSlot } = this.#piChoice(this.#home('pi'), undefined)
    const upstream = (scope: Scope) => this.#piChoice(this.routeOf(scope), this.#told(scope).source)
    const keys = this.#gateway?.keys ?? this.#keys
    return {
      model,
      authSlot,
      upstream,
      getter: forOrigin((scope) => new URL(upstream(scope).url).origin, keys.getter),
    }
  }

  /** An API key goes into a header of its own there; a login is a bearer token. */
  #piChoice({ provider, settings, model }: Route, source: string | undefined) {
    if (settings.api === 'openai' && this.#gateway !== undefined) {
      return { url: this.#gateway.urlOf(provider), model, authSlot: slotOf(GATEWAY_KEY_HEADER) }
    }
    const usual = source?.startsWith('oauth:') === true ? 'bearer' : 'x-api-key'
    return { url: settings.url, model, authSlot: slotOf(settings.auth ?? usual) }
  }

  /** Nothing for a key file that cannot be used: the call fails when its key is asked for, and says why. */
  #told(scope: Scope): Partial<KeyFileExplanation> {
    try {
      return this.#keys.explain(scope)
    } catch (error) {
      if (CredentialError.isInstance(error)) return {}
      throw error
    }
  }

  #home(mode: Mode): Route {
    const provider = this.#firstFor(mode)
    const settings = this.#providers[provider]
    if (settings === undefined) throw new BotError('config', `No provider fits ${mode} mode.`)
    return { provider, settings, model: settings.model }
  }

  /** In Pi mode rather one that speaks the Messages API itself. */
  #firstFor(mode: Mode): string {
    const names = Object.keys(this.#providers).filter((name) => this.#fits(mode, this.#providers[name]))
    const own = mode === 'pi' ? names.find((name) => this.#providers[name]?.api === 'anthropic') : undefined
    return own ?? names[0] ?? ''
  }

  #fits(mode: Mode, provider: ProviderSettings | undefined): boolean {
    if (provider === undefined) return false
    return mode === 'sealed' || provider.api === 'anthropic' || this.#gateway !== undefined
  }

  /** The whole key, else the longest pattern. */
  #settingsOf(channel: string): ChannelSettings | undefined {
    const whole = this.#channels.get(channel)
    if (whole !== undefined) return whole
    for (let length = channel.length; length > 0; length -= 1) {
      const settings = this.#channels.get(`${channel.slice(0, length)}*`)
      if (settings !== undefined) return settings
    }
    return undefined
  }
}

/** Sealed workers speak Chat Completions; Anthropic answers that, too, below its own address. */
function sealedChoice({ settings, model }: Route) {
  const path = settings.api === 'anthropic' ? '/v1/chat/completions' : '/chat/completions'
  return {
    modelUrl: `${settings.url.replace(/\/$/, '')}${path}`,
    model,
    authSlot: slotOf(settings.auth ?? 'bearer'),
    tokenLimitField: settings.tokenLimitField ?? ('max_tokens' as const),
  }
}

function slotOf(auth: string): AuthSlot {
  return auth === 'bearer' ? { kind: 'bearer' } : { kind: 'header', name: auth }
}
