import type { CallEvent } from '@sandbox/broker'
import { expect, test } from 'vitest'
import { CallWatch, failureWords, tellFailure } from './failure-words.ts'

const call = (reason: CallEvent['reason'], more: Partial<CallEvent> = {}): CallEvent => ({
  callId: 'c',
  route: 'model',
  status: 502,
  reason,
  requestBytes: 0,
  answerBytes: 0,
  durationMs: 0,
  droppedFields: [],
  ...more,
})

test('T40 a speaker without a key is told so, and whom to ask', () => {
  expect(failureWords({ category: 'credential', trouble: 'missing' }, 'Olga')).toBe(
    'No key is set for you in this channel, so I cannot answer. Please ask Olga for one.',
  )
  expect(failureWords({ category: 'credential', trouble: 'rejected' }, 'Olga')).toContain(
    'refused the key that is set for you',
  )
  expect(failureWords({ category: 'credential', trouble: 'unusable' }, 'Olga')).toContain('could not be used')
  expect(failureWords({ category: 'credential', trouble: 'spent' }, 'Olga')).toBe(
    'There is no credit left for you in this channel. Please try again later, or ask Olga for more.',
  )
})

test('PL-10 every category has words of its own', () => {
  const categories = [
    'credential',
    'timeout',
    'stopped',
    'container',
    'workspace',
    'broker',
    'worker',
    'host',
  ] as const
  expect(new Set(categories.map((each) => failureWords({ category: each }, 'Olga'))).size).toBe(
    categories.length,
  )
})

test.each([
  [call('credential_missing'), { credential: 'missing' }],
  [call('credential_error'), { credential: 'unusable' }],
  [call('credential_invalid'), { credential: 'unusable' }],
  [call('credit_spent', { status: 402 }), { credential: 'spent' }],
  [call('upstream_status', { upstreamStatus: 401 }), { credential: 'rejected' }],
  [call('upstream_status', { upstreamStatus: 500 }), { upstream: 'upstream_status' }],
  [call('upstream_status', { upstreamStatus: 529 }), { upstream: 'upstream_status', busy: {} }],
  [
    call('upstream_status', { upstreamStatus: 429, retryAfterMs: 30_000 }),
    { upstream: 'upstream_status', busy: { waitMs: 30_000 } },
  ],
  [call('upstream_network'), { upstream: 'upstream_network' }],
  [call('reflection'), { upstream: 'reflection' }],
  [call('endpoint_invalid'), { host: 'endpoint_invalid' }],
  [call('credit_error'), { host: 'credit_error' }],
  [call('input_refused'), {}],
  [call('credential_missing', { route: 'tool' }), {}],
])('W-10 what a call says about a failure', (event, trouble) => {
  const watch = new CallWatch()
  watch.saw(event)
  expect(watch.trouble).toEqual(trouble)
})

test('W-10 a call that succeeds ends the trouble; a refused one does not', () => {
  const watch = new CallWatch()
  watch.saw(call('credential_missing'))
  watch.saw(call('input_refused'))
  expect(watch.trouble).toEqual({ credential: 'missing' })
  watch.saw(call('ok'))
  expect(watch.trouble).toEqual({})
})

test('W-79 a model service that has too much to do is told as that, with how long it asked to wait', () => {
  const words = (more: object) => failureWords({ category: 'broker', ...more }, 'Olga')
  expect(words({ busy: true, waitMs: 29_001 })).toBe(
    'The model service has too much to do right now. Please try again in 30 s.',
  )
  expect(words({ busy: true, waitMs: 0 })).toMatch(/in 1 s\.$/)
  expect(words({ busy: true })).toMatch(/try again in a moment\.$/)
  expect(words({})).toMatch(/could not be reached/)
})

test.each([
  [1, 'in 1 s'],
  [90_000, 'in 90 s'],
  [120_001, 'in 3 min'],
  [3 * 3_600_000, 'in 3 h'],
  [86_400_000, 'in 24 h'],
  [undefined, 'later'],
])('T40 who has no credit left hears when there will be some: %s ms', (waitMs, when) => {
  const words = failureWords(
    { category: 'credential', trouble: 'spent', ...(waitMs !== undefined && { waitMs }) },
    'Olga',
  )
  expect(words).toContain(`Please try again ${when}, or ask Olga for more.`)
})

test('T40 an operator may word failures, and where there are no usable words ours stand', () => {
  const turn = { channel: 'a:1', speaker: { id: 'ann', name: 'Ann' } } as const
  const asked: unknown[] = []
  const told = (words: (...given: unknown[]) => unknown) =>
    tellFailure(
      { keyContact: 'Olga', words: words as never },
      { category: 'credential', trouble: 'missing' },
      turn,
    )
  expect(
    told((failure) => {
      asked.push(failure)
      return 'Buy a key at the desk.'
    }),
  ).toBe('Buy a key at the desk.')
  expect(asked).toEqual([{ category: 'credential', trouble: 'missing', ...turn }])
  const broken = () => {
    throw new TypeError('no')
  }
  for (const words of [broken, () => undefined, () => ' ', () => 7, () => 'x'.repeat(2_001)]) {
    expect(told(words)).toMatch(/^No key is set for you/)
  }
})
