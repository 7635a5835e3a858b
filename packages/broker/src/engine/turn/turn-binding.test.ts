import { getEventListeners } from 'node:events'
import { Secret } from '@sandbox/credential-scope'
import { describe, expect, test } from 'vitest'
import { sameText, TurnBinding, type TurnInput } from './turn-binding.ts'

const limits = { maxCalls: 2, concurrent: 1, queued: 4 }
const input = (changes: Partial<TurnInput> = {}): TurnInput => ({
  turnId: 't-1',
  context: { channel: 'web:room', speaker: { id: 'u-ann', name: 'Ann' } },
  signal: new AbortController().signal,
  ...changes,
})
const many = () => new TurnBinding({ limits, once: false, needsNonce: true })

describe('one turn after another, as in Pi mode', () => {
  test('W-01 a nonce is good for its own turn alone, even while another is bound', () => {
    const binding = many()
    const first = binding.bind(input())
    expect(binding.admit(first.nonce)).toBe(first)
    first.release()
    const second = binding.bind(input({ turnId: 't-2' }))
    expect(() => binding.admit(first.nonce)).toThrow(expect.objectContaining({ reason: 'nonce_refused' }))
    expect(() => binding.admit(undefined)).toThrow(expect.objectContaining({ reason: 'nonce_refused' }))
    expect(binding.admit(second.nonce)).toBe(second)
  })
  test('PB-04 a second bind while one is active throws; a late release ends only its own turn', () => {
    const binding = many()
    const first = binding.bind(input())
    expect(() => binding.bind(input())).toThrow(expect.objectContaining({ code: 'already_bound' }))
    first.release()
    const second = binding.bind(input({ turnId: 't-2' }))
    first.release()
    expect(binding.admit(second.nonce)).toBe(second)
  })
  test('CS-12 what was admitted keeps its scope, budget and line, whatever is bound next', async () => {
    const binding = many()
    const first = binding.bind(input())
    const admitted = binding.admit(first.nonce)
    const signal = new AbortController().signal
    await admitted.enterCall(signal)
    first.release()
    const context = { channel: 'web:room', speaker: { id: 'u-bob', name: 'Bob' } }
    const second = binding.bind(input({ turnId: 't-2', context }))
    expect(admitted.scope.speaker.id).toBe('u-ann')
    expect(admitted.signal.aborted).toBe(true)
    // A's slow reader does not hold B up.
    await second.enterCall(signal)
  })
})

test('W-47 PB-42 a turn that is released gently takes no more calls, and lets those in flight finish', () => {
  const binding = many()
  const control = new AbortController()
  const first = binding.bind(input({ signal: control.signal }))
  first.release({ abort: false })
  expect(first.signal.aborted).toBe(false)
  expect(() => binding.admit(first.nonce)).toThrow(expect.objectContaining({ reason: 'turn_over' }))
  const second = binding.bind(input({ turnId: 't-2' }))
  control.abort()
  expect([first.signal.aborted, second.signal.aborted]).toEqual([true, false])
  expect(binding.admit(second.nonce)).toBe(second)
})

describe('SB-12 and SB-13 the budget of a turn', () => {
  test('a refusal for want of a slot spends nothing; an entry that leaves the line has spent', async () => {
    const turn = new TurnBinding({
      limits: { maxCalls: 2, concurrent: 1, queued: 1 },
      once: true,
      needsNonce: true,
    }).bind(input())
    const signal = new AbortController().signal
    const leave = await turn.enterCall(signal)
    const control = new AbortController()
    const waiting = expect(turn.enterCall(control.signal)).rejects.toBe('left')
    await expect(turn.enterCall(signal)).rejects.toMatchObject({ reason: 'busy' })
    control.abort('left')
    await waiting
    leave()
    await expect(turn.enterCall(signal)).rejects.toMatchObject({ reason: 'budget_spent' })
  })
})

test('W-49 a released turn leaves nothing on the caller’s signal', () => {
  const control = new AbortController()
  for (let count = 0; count < 100; count += 1)
    many()
      .bind(input({ signal: control.signal }))
      .release()
  expect(getEventListeners(control.signal, 'abort')).toHaveLength(0)
})

test('W-22 every secret that the turn has spent is looked for', () => {
  const turn = many().bind(input())
  const origin = 'https://api.example'
  expect(turn.matcher.matches('key-number-one')).toBe(false)
  turn.remember(new Secret({ token: 'key-number-one', origin }))
  turn.remember(new Secret({ token: 'key-number-two', origin }))
  turn.remember(new Secret({ token: 'key-number-one', origin }))
  expect(
    ['key-number-one', 'key-number-two', 'key-number-six'].map((text) => turn.matcher.matches(text)),
  ).toEqual([true, true, false])
})

test.each([
  ['turnId', { turnId: '' }],
  ['turnId', { turnId: 'x'.repeat(65) }],
  ['turnId', { turnId: 'a b' }],
  ['turnId', { turnId: 7 as never }],
  ['signal', { signal: undefined as never }],
])('a wrong %s is refused', (field, changes) => {
  expect(() => many().bind(input(changes))).toThrow(
    expect.objectContaining({ code: 'turn_invalid', message: expect.stringContaining(field) }),
  )
})

test('sameText compares bytes, and lengths do not throw', () => {
  expect(sameText('abc', 'abc')).toBe(true)
  for (const other of ['', 'abd', 'ab', 'abcd', 'äb']) expect(sameText(other, 'abc')).toBe(false)
})
