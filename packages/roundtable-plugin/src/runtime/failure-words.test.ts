import type { CallEvent } from '@sandbox/broker'
import { expect, test } from 'vitest'
import { CallWatch, failureWords } from './failure-words.ts'

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
  expect(failureWords('credential', 'Olga', 'missing')).toBe(
    'No key is set for you in this channel, so I cannot answer. Please ask Olga for one.',
  )
  expect(failureWords('credential', 'Olga', 'rejected')).toContain('refused the key that is set for you')
  expect(failureWords('credential', 'Olga', 'unusable')).toContain('could not be used')
  expect(failureWords('credential', 'Olga', 'spent')).toBe(
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
  ] as const
  expect(new Set(categories.map((each) => failureWords(each, 'Olga'))).size).toBe(categories.length)
})

test.each([
  [call('credential_missing'), { credential: 'missing' }],
  [call('credential_error'), { credential: 'unusable' }],
  [call('credential_invalid'), { credential: 'unusable' }],
  [call('credit_spent', { status: 402 }), { credential: 'spent' }],
  [call('upstream_status', { upstreamStatus: 401 }), { credential: 'rejected' }],
  [call('upstream_status', { upstreamStatus: 500 }), { upstream: 'upstream_status' }],
  [call('upstream_network'), { upstream: 'upstream_network' }],
  [call('reflection'), { upstream: 'reflection' }],
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
