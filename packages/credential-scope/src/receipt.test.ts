import { readFileSync } from 'node:fs'
import Schema from 'typebox/schema'
import { describe, expect, test } from 'vitest'
import {
  byChannel,
  type CredentialGetter,
  type CredentialReceipt,
  fingerprintOf,
  type ResolveOptions,
  resolveCredential,
} from './index.ts'
import { fromEnv } from './sources/index.ts'

const token = 'sk-alpha-0123456789'
const scope = { channel: 'demo:alpha', speaker: { id: 'u-ann', name: 'Ann' } }
const origin = 'https://api.example.com'
const schema = Schema.Compile(
  JSON.parse(readFileSync(new URL('../schemas/receipt.schema.json', import.meta.url), 'utf8')),
)

async function receiptsOf(
  getter: CredentialGetter,
  more: Partial<ResolveOptions> = {},
): Promise<CredentialReceipt[]> {
  const receipts: CredentialReceipt[] = []
  const onReceipt = (receipt: CredentialReceipt) => receipts.push(receipt)
  await resolveCredential({ getter, scope, origin, onReceipt, ...more }).catch(() => {})
  for (const receipt of receipts) expect(schema.Check(JSON.parse(JSON.stringify(receipt)))).toBe(true)
  return receipts
}

describe('receipts', () => {
  test('W-10 one for each resolution, as stable JSON', async () => {
    const getter = byChannel({ 'demo:alpha': fromEnv('ALPHA_KEY', { env: { ALPHA_KEY: token } }) })
    const [receipt, ...others] = await receiptsOf(getter)
    expect(others).toEqual([])
    const time = receipt?.time ?? ''
    expect(new Date(time).toISOString()).toBe(time)
    expect(JSON.stringify(receipt)).toBe(
      JSON.stringify({
        version: 1,
        time,
        channel: 'demo:alpha',
        speakerId: 'u-ann',
        rule: 'channel demo:alpha',
        source: 'env:ALPHA_KEY',
        fingerprint: fingerprintOf(token),
        outcome: 'ok',
      }),
    )
  })

  test.each<[string, CredentialGetter, Partial<ResolveOptions>]>([
    ['credential_missing', () => undefined, {}],
    ['credential_error', () => Promise.reject(new TypeError(token)), {}],
    ['credential_invalid', () => 'short', {}],
    ['credential_origin', () => ({ token, origin: 'https://b.example' }), {}],
    ['credential_timeout', () => new Promise(() => {}), { deadlineMs: 5 }],
    ['credential_aborted', () => token, { signal: AbortSignal.abort() }],
  ])(
    'W-10 %s has one too, with the rule that chose and without a credential',
    async (outcome, source, more) => {
      const receipts = await receiptsOf(byChannel({ 'demo:alpha': source }), more)
      const rule = outcome === 'credential_aborted' ? null : 'channel demo:alpha'
      expect(receipts).toMatchObject([{ outcome, rule, source: null, fingerprint: null }])
      expect(JSON.stringify(receipts)).not.toContain('sk-')
    },
  )

  test('a callback that throws breaks nothing', async () => {
    const onReceipt = () => {
      throw new TypeError('disk full')
    }
    const secret = await resolveCredential({ getter: () => token, scope, origin, onReceipt })
    expect(secret.fingerprint).toBe(fingerprintOf(token))
  })

  test('the schema refuses what is no receipt', () => {
    const good = {
      version: 1,
      time: '2026-01-01T00:00:00.000Z',
      channel: 'a',
      speakerId: 'b',
      rule: null,
      source: null,
    }
    const whole = { ...good, fingerprint: null, outcome: 'ok' }
    expect(schema.Check(whole)).toBe(true)
    for (const bad of [
      good,
      { ...whole, token },
      { ...whole, outcome: 'fine' },
      { ...whole, fingerprint: token },
      7,
    ]) {
      expect(schema.Check(bad)).toBe(false)
    }
  })
})
