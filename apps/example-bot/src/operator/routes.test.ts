import { CredentialError, resolveCredential } from '@sandbox/credential-scope'
import { describe, expect, test } from 'vitest'
import { Routes, type RoutesOptions } from './routes.ts'

const providers = {
  local: { api: 'openai', url: 'http://127.0.0.1:8080/v1/', model: 'small', allowHttp: true },
  claude: { api: 'anthropic', url: 'https://api.anthropic.com', model: 'sonnet' },
  proxy: { api: 'anthropic', url: 'https://proxy.example/api', model: 'haiku', auth: 'x-proxy-key' },
} satisfies RoutesOptions['providers']

const channels = {
  'room:a': { mode: 'sealed' },
  'room:b': { mode: 'sealed', provider: 'claude', model: 'opus' },
  'room:pi': { mode: 'pi' },
  'room:off': { mode: 'pi', on: false },
  'discord:*': { mode: 'sealed' },
  'discord:9*': { mode: 'pi', provider: 'proxy' },
} satisfies RoutesOptions['channels']

const KEY = 'sk-test-0123456789'

function open(told: { provider?: string; model?: string; source?: string } = {}, broken = false) {
  return new Routes(
    { providers, channels },
    {
      explain: () => {
        if (broken) throw new CredentialError('source_invalid', 'gone')
        return { rule: 'r', source: 'env:K', fingerprint: 'f', ...told }
      },
      getter: () => KEY,
    },
  )
}

const scope = (channel: string) => ({ channel, speaker: { id: 'u-ann', name: 'Ann' } })

describe('modes', () => {
  test.each([
    ['room:a', 'sealed'],
    ['room:pi', 'pi'],
    ['room:x', undefined],
    ['discord:123', 'sealed'],
    ['discord:912', 'pi'],
    ['irc:1', undefined],
  ])('%s is answered in mode %s: a whole key first, then the longest pattern', (channel, mode) => {
    expect(open().modeOf(channel)).toBe(mode)
  })

  test('the channels to turn on are those that are named in full and not off', () => {
    expect(open().channelsOf('sealed')).toEqual(['room:a', 'room:b'])
    expect(open().channelsOf('pi')).toEqual(['room:pi'])
  })
})

describe('which service and model', () => {
  test.each([
    ['room:a', {}, 'local', 'small'],
    ['room:b', {}, 'claude', 'opus'],
    ['room:pi', {}, 'claude', 'sonnet'],
    ['discord:912', {}, 'proxy', 'haiku'],
    ['room:a', { provider: 'claude' }, 'claude', 'sonnet'],
    ['room:a', { provider: 'claude', model: 'haiku' }, 'claude', 'haiku'],
    ['room:b', { provider: 'local' }, 'local', 'small'],
    ['room:b', { model: 'haiku' }, 'claude', 'haiku'],
  ])('%s with a rule of %j is answered by %s, %s', (channel, told, provider, model) => {
    expect(open(told).routeOf(scope(channel))).toMatchObject({ provider, model })
  })

  test('with a gateway, Pi mode also uses services that speak Chat Completions, with a key for the gateway alone', async () => {
    const urlOf = (name: string) => `http://127.0.0.1:7777/secret/${name}`
    const keys = {
      explain: () => ({ rule: 'r', source: 's', fingerprint: 'f', provider: 'local' }),
      getter: () => KEY,
    }
    const { upstream, getter } = new Routes({ providers, channels }, keys, { urlOf, keys }).pi()
    expect(upstream(scope('room:pi'))).toEqual({
      url: 'http://127.0.0.1:7777/secret/local',
      model: 'small',
      authSlot: { kind: 'header', name: 'x-api-key' },
    })
    const spend = (origin: string) => resolveCredential({ getter, scope: scope('room:pi'), origin })
    expect((await spend('http://127.0.0.1:7777')).origin).toBe('http://127.0.0.1:7777')
    await expect(spend('http://127.0.0.1:8080')).rejects.toMatchObject({ code: 'credential_origin' })
  })

  test('without one such a key cannot serve Pi mode, and nothing is guessed', () => {
    expect(() => open({ provider: 'local' }).routeOf(scope('room:pi'))).toThrow(/which cannot serve it/)
  })

  test('a key file that cannot be used fails the call when its key is asked for, not here', () => {
    expect(open({}, true).routeOf(scope('room:a'))).toMatchObject({ provider: 'local' })
  })

  test('sealed workers speak Chat Completions, also with Anthropic', () => {
    const { modelUrl, upstream } = open().sealed()
    expect(modelUrl).toBe('http://127.0.0.1:8080/v1/chat/completions')
    expect(upstream(scope('room:b'))).toEqual({
      modelUrl: 'https://api.anthropic.com/v1/chat/completions',
      model: 'opus',
      authSlot: { kind: 'bearer' },
      tokenLimitField: 'max_tokens',
    })
  })

  test('Pi mode: an API key goes into its header, a login is a bearer, and "auth" wins', () => {
    const slot = (channel: string, source: string) => open({ source }).pi().upstream(scope(channel)).authSlot
    expect(slot('room:pi', 'env:K')).toEqual({ kind: 'header', name: 'x-api-key' })
    expect(slot('room:pi', 'oauth:anthropic:./x')).toEqual({ kind: 'bearer' })
    expect(slot('discord:912', 'env:K')).toEqual({ kind: 'header', name: 'x-proxy-key' })
  })
})

test('decision 16: a key goes to the service of its scope and to no other', async () => {
  const spend = (channel: string, origin: string) =>
    resolveCredential({ getter: open().getter, scope: scope(channel), origin })
  expect((await spend('room:a', 'http://127.0.0.1:8080')).origin).toBe('http://127.0.0.1:8080')
  expect((await spend('room:b', 'https://api.anthropic.com')).origin).toBe('https://api.anthropic.com')
  await expect(spend('room:b', 'http://127.0.0.1:8080')).rejects.toMatchObject({ code: 'credential_origin' })
})
