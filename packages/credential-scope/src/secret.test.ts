import { format, inspect } from 'node:util'
import { findSecret } from '@sandbox/testing'
import { describe, expect, test, vi } from 'vitest'
import { type AuthSlot, CredentialError, fingerprintOf, Secret } from './index.ts'

const token = 'sk-canary-1234567890+/=&"<e>'
const origin = 'https://api.example.com'
const secret = new Secret({ token, origin })

describe('printing', () => {
  test.each<[string, () => string]>([
    ['String', () => String(secret)],
    ['a template', () => `${secret}`],
    ['concatenation', () => `key: ${`${secret}`}`.concat(secret as never)],
    ['JSON.stringify', () => JSON.stringify({ secret, list: [secret] })],
    ['util.inspect', () => inspect({ secret }, { showHidden: true, depth: 9, getters: true })],
    [
      'util.inspect without custom printers',
      () => inspect(secret, { customInspect: false, showHidden: true }),
    ],
    ['util.format', () => format('%s %o %O %j', secret, secret, secret, secret)],
    ['an error message', () => inspect(new TypeError(`no: ${secret}`, { cause: secret }))],
    ['its own keys', () => JSON.stringify([Reflect.ownKeys(secret), Object.entries(secret)])],
    ['toLocaleString', () => secret.toLocaleString()],
  ])('CS-15 W-20 %s shows nothing of it', (_what, print) => {
    expect(findSecret(print(), token)).toEqual([])
  })

  test('it prints as [secret] [secret:unprintable]', () => {
    expect([`${secret}`, JSON.stringify(secret), inspect(secret), String(secret)]).toEqual([
      '[secret]',
      '"[secret]"',
      '[secret]',
      '[secret]',
    ])
  })

  test('decision 41: nothing of it survives a structured clone', () => {
    const clone: unknown = structuredClone(secret)
    expect(clone).toEqual({})
    expect(inspect({ ...secret })).toBe('{}')
  })
})

describe('its one way out', () => {
  const apply = (slot: AuthSlot, headers: Record<string, string> = {}, url = `${origin}/v1/x?a=%20b&c`) => {
    const target = new URL(url)
    secret.applyTo(headers, target, slot)
    return { headers, url: target.href }
  }

  test('CS-16 bearer', () => {
    expect(apply({ kind: 'bearer' })).toEqual({
      headers: { authorization: `Bearer ${token}` },
      url: `${origin}/v1/x?a=%20b&c`,
    })
  })

  test('W-13 T14 header, basic and query', () => {
    expect(apply({ kind: 'header', name: 'X-Api-Key' }).headers).toEqual({ 'x-api-key': token })
    expect(apply({ kind: 'header', name: 'authorization', prefix: 'Key ' }).headers).toEqual({
      authorization: `Key ${token}`,
    })
    const basic = (user: string) => `Basic ${Buffer.from(`${user}:${token}`).toString('base64')}`
    expect(apply({ kind: 'basic' }).headers).toEqual({ authorization: basic('') })
    expect(apply({ kind: 'basic', user: 'api' }).headers).toEqual({ authorization: basic('api') })
    expect(apply({ kind: 'query', name: 'key' })).toEqual({
      headers: {},
      url: `${origin}/v1/x?a=%20b&c&key=${encodeURIComponent(token)}`,
    })
  })

  test('T10 T32 it replaces whatever was in its slot, in any case, and touches nothing else', () => {
    const headers = { Authorization: 'Bearer guest', AUTHORIZATION: 'x', accept: 'a', 'x-api-key': 'b' }
    expect(apply({ kind: 'bearer' }, headers).headers).toEqual({
      authorization: `Bearer ${token}`,
      accept: 'a',
      'x-api-key': 'b',
    })
    const url = `${origin}/v1/x?key=guest&a=%20b&k%65y=again&other`
    expect(apply({ kind: 'query', name: 'key' }, {}, url).url).toBe(
      `${origin}/v1/x?a=%20b&other&key=${encodeURIComponent(token)}`,
    )
  })

  test('CS-16 decision 16: it is never written for another origin', () => {
    for (const url of [
      'https://evil.example.com/',
      'http://api.example.com/',
      'https://api.example.com:444/',
    ]) {
      const headers = { authorization: 'before' }
      const target = new URL(url)
      expect(() => secret.applyTo(headers, target, { kind: 'bearer' })).toThrow(CredentialError)
      expect(() => secret.applyTo(headers, target, { kind: 'query', name: 'key' })).toThrow(/not for/)
      expect(headers).toEqual({ authorization: 'before' })
      expect(target.href).toBe(url)
    }
  })

  test('a slot that cannot be sent is a TypeError', () => {
    for (const slot of [
      { kind: 'header', name: '' },
      { kind: 'header', name: 'x key' },
      { kind: 'header', name: 'x\r\ny' },
      { kind: 'header', name: 'x-key', prefix: 'a\r\nb: ' },
      { kind: 'basic', user: 'a:b' },
      { kind: 'query', name: '' },
    ] satisfies AuthSlot[]) {
      expect(() => apply(slot)).toThrow(TypeError)
    }
  })
})

describe('fingerprints', () => {
  test('the same credential has the same one in this process, another has another', () => {
    expect(secret.fingerprint).toMatch(/^[0-9a-f]{12}$/)
    expect(secret.fingerprint).toBe(fingerprintOf(`${token}\n`))
    expect(secret.fingerprint).toBe(new Secret({ token, origin: 'https://b.example' }).fingerprint)
    expect(secret.fingerprint).not.toBe(fingerprintOf(`${token}x`))
  })

  test('a copy of the module, such as another process, has another key', async () => {
    vi.resetModules()
    const again = await import('./secret.ts')
    expect(again.fingerprintOf(token)).toMatch(/^[0-9a-f]{12}$/)
    expect(again.fingerprintOf(token)).not.toBe(fingerprintOf(token))
  })
})

describe('CredentialError', () => {
  test('it is known by its brand, not by its class', () => {
    const error = new CredentialError('credential_missing', 'x')
    expect(CredentialError.isInstance(error)).toBe(true)
    expect(error).toMatchObject({ name: 'CredentialError', code: 'credential_missing' })
    expect(Object.keys(error)).not.toContain('cause')
    const copy = {
      [Symbol.for('@sandbox/credential-scope.CredentialError')]: true,
      code: 'credential_missing',
    }
    expect(CredentialError.isInstance(copy)).toBe(true)
    for (const other of [new TypeError('x'), null, undefined, 'x', {}]) {
      expect(CredentialError.isInstance(other)).toBe(false)
    }
  })
})
