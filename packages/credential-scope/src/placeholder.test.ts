import { describe, expect, test } from 'vitest'
import { createSecretMatcher, placeholderFor, Secret } from './index.ts'

describe('placeholderFor', () => {
  test('T12 decision 14: the one for an OpenAI login decodes as a JWT with harmless claims', () => {
    const parts = placeholderFor('openai-oauth').split('.')
    const decode = (part = '') => JSON.parse(Buffer.from(part, 'base64url').toString('utf8'))
    expect(parts).toHaveLength(3)
    expect(parts.every((part) => /^[A-Za-z0-9_-]+$/.test(part))).toBe(true)
    expect(decode(parts[0])).toEqual({ alg: 'none', typ: 'JWT' })
    expect(decode(parts[1])['https://api.openai.com/auth'].chatgpt_account_id).toBe('sandbox-placeholder')
    expect(new Date(decode(parts[1]).exp * 1000).getUTCFullYear()).toBe(2100)
  })

  test('decision 14: the others look like what they stand for', () => {
    expect(placeholderFor('anthropic-oauth')).toContain('sk-ant-oat')
    expect(placeholderFor('anthropic-api-key')).toMatch(/^sk-ant-api/)
    expect(placeholderFor('api-key')).toMatch(/^sk-/)
  })

  test('T35 they are the same each time, and no secret', () => {
    for (const kind of ['api-key', 'anthropic-api-key', 'anthropic-oauth', 'openai-oauth'] as const) {
      expect(placeholderFor(kind)).toBe(placeholderFor(kind))
      const matcher = createSecretMatcher([
        new Secret({ token: 'sk-real-0123456789', origin: 'https://a.example' }),
      ])
      expect(matcher.matches(placeholderFor(kind))).toBe(false)
    }
  })
})
