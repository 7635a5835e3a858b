import { type AuthSlot, resolveCredential } from '@sandbox/credential-scope'
import type { KeyFile } from '@sandbox/credential-scope/sources'
import { BotError } from '../errors.ts'
import type { OperatorConfig } from './read-bot-file.ts'
import type { Routes } from './routes.ts'
import { sampleScopes } from './sample-scopes.ts'

/** Options of {@link tryProvider}. */
export interface TryProviderOptions {
  /** Of the provider. */
  readonly name: string
  readonly config: OperatorConfig
  readonly routes: Routes
  readonly keys: Pick<KeyFile, 'rules'>
  /** Makes a call of one token, with the key of the first rule that leads there. */
  readonly call: boolean
}

const ANSWER_MS = 20_000

/**
 * Tries whether a model service can be reached, and with `call`, whether it takes a key and knows the model. Returns
 * what was found.
 *
 * @throws BotError `provider` with what is wrong; CredentialError when there is no key.
 */
export async function tryProvider(options: TryProviderOptions): Promise<string> {
  const { name, config, call } = options
  const url = config.providers?.[name]?.url ?? ''
  if (!call) {
    const { status } = await request(url, { method: 'GET' })
    return `${new URL(url).origin} answers (${status})`
  }
  const scope = scopeFor(options)
  if (scope === undefined) throw new BotError('provider', `no rule of the key file leads to ${name}`)
  const { url: endpoint, slot, headers, body } = callFor(options, scope)
  const secret = await resolveCredential({
    getter: options.routes.getter,
    scope,
    origin: new URL(endpoint).origin,
  })
  const target = new URL(endpoint)
  const sent: Record<string, string> = { 'content-type': 'application/json', ...headers }
  secret.applyTo(sent, target, slot)
  const { status } = await request(target.href, { method: 'POST', headers: sent, body: JSON.stringify(body) })
  if (status >= 200 && status < 300)
    return `${target.origin} takes the key of ${scope.channel} and knows ${body.model}`
  throw new BotError('provider', `${target.origin} answered ${status}: ${meaning(status)}`)
}

type Scope = Parameters<Routes['routeOf']>[0]

function scopeFor({ name, config, routes, keys }: TryProviderOptions): Scope | undefined {
  return sampleScopes(keys.rules(), config).find((scope) => routes.routeOf(scope).provider === name)
}

/** The same address, model and place of the key as a turn there would use. */
function callFor({ routes }: TryProviderOptions, scope: Scope) {
  const messages = [{ role: 'user', content: 'Hi' }]
  const { settings } = routes.routeOf(scope)
  if (routes.modeOf(scope.channel) === 'pi' && settings.api === 'anthropic') {
    const { url = '', model = '', authSlot } = routes.pi().upstream(scope)
    return {
      url: `${url.replace(/\/$/, '')}/v1/messages`,
      slot: authSlot as AuthSlot,
      headers: { 'anthropic-version': '2023-06-01', 'anthropic-beta': 'oauth-2025-04-20' },
      body: { model, max_tokens: 1, messages },
    }
  }
  const {
    modelUrl = '',
    model = '',
    authSlot,
    tokenLimitField = 'max_tokens',
  } = routes.sealed().upstream(scope)
  return {
    url: modelUrl,
    slot: authSlot as AuthSlot,
    headers: {},
    body: { model, [tokenLimitField]: 1, messages },
  }
}

async function request(url: string, init: RequestInit): Promise<{ status: number }> {
  try {
    const response = await fetch(url, { ...init, redirect: 'manual', signal: AbortSignal.timeout(ANSWER_MS) })
    await response.body?.cancel()
    return response
  } catch (error) {
    const { cause, name, code } = error as { cause?: { code?: string }; name: string; code?: string }
    const why =
      name === 'TimeoutError' ? `nothing within ${ANSWER_MS} ms` : (cause?.code ?? code ?? 'no connection')
    throw new BotError('provider', `${new URL(url).origin} cannot be reached: ${why}`, { cause: error })
  }
}

function meaning(status: number): string {
  if (status === 401 || status === 403) return 'it does not take the key'
  if (status === 404) return 'it does not know the address or the model'
  if (status === 429) return 'the account has no credit left, or too many calls are made'
  if (status === 400 || status === 422)
    return 'it does not understand the call; look at "model" and "tokenLimitField"'
  if (status >= 300 && status < 400) return 'it sends us elsewhere; no key is sent after a redirect'
  return 'it does not work'
}
