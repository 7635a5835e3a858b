import { expect, test } from 'vitest'
import { payerWords, statusWords } from './status-words.ts'

const scope = { channel: 'a:1', speaker: { id: 'ann', name: 'Ann' } } as const
const facts = {
  mode: 'sealed',
  worker: 'a worker waits',
  last: undefined,
  revoked: false,
  payer: 'no key',
} as const

test('W-78 status says mode, worker, last turn and who pays', () => {
  expect(statusWords(facts, 0)).toBe(
    'Mode: sealed; a worker waits. No turn since the bot started. Who pays for you here: no key.',
  )
  const last = {
    turnId: 't',
    speakerId: 'ann',
    ok: true,
    durationMs: 1_234,
    endedAt: 1_000,
    fingerprint: 'f1',
  }
  expect(statusWords({ ...facts, last }, 3_500)).toContain(
    'Last turn: answered for ann in 1.2 s, 2.5 s ago, paid by key f1.',
  )
  const failed = {
    turnId: 't',
    speakerId: 'bob',
    ok: false,
    category: 'timeout',
    durationMs: 20,
    endedAt: 0,
  } as const
  expect(statusWords({ ...facts, last: failed, revoked: true }, 0)).toMatch(
    /not answered \(timeout\) for bob in 0 s, 0 s ago, nothing was paid\. Spending is stopped/,
  )
})

test('W-78 who pays: a fingerprint and a rule, or no key; never a key, and a function that fails hurts nobody', () => {
  expect(payerWords(undefined, scope, 'the host')).toBe('the host')
  expect(payerWords(() => ({ rule: 'channel a:1', fingerprint: 'f1' }), scope, '')).toBe(
    'key f1, by the rule channel a:1',
  )
  expect(payerWords(() => ({ fingerprint: 'f1' }), scope, '')).toBe('key f1')
  expect(payerWords(() => ({ rule: 'channel a:1' }), scope, '')).toBe('no key yet, by the rule channel a:1')
  expect(payerWords(() => ({ rule: undefined, fingerprint: undefined }), scope, '')).toBe('no key')
  const failing = () => {
    throw new TypeError('sk-secret-0123456789')
  }
  expect(payerWords(failing, scope, '')).toBe('not known, explain failed')
})

test('W-78 who pays: an explain that answers late is said to, is not taken for no key, and its failure ends nothing', async () => {
  const unhandled: unknown[] = []
  const note = (error: unknown) => void unhandled.push(error)
  process.on('unhandledRejection', note)
  try {
    for (const explain of [async () => ({ rule: 'r' }), () => Promise.reject(new TypeError('no'))]) {
      expect(payerWords(explain as never, scope, '')).toBe('not known, explain does not answer at once')
    }
    await new Promise((done) => setTimeout(done, 10))
    expect(unhandled).toEqual([])
  } finally {
    process.off('unhandledRejection', note)
  }
})
