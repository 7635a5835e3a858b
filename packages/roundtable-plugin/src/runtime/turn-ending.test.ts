import { expect, test, vi } from 'vitest'
import { TurnEnding, untilAborted } from './turn-ending.ts'

test('the first end counts, and fires the signal once', () => {
  const ending = new TurnEnding(60_000)
  let fired = 0
  ending.signal.addEventListener('abort', () => {
    fired += 1
  })
  expect(ending.cause).toBeUndefined()
  expect(ending.end('stopped')).toBe(true)
  expect(ending.end('over')).toBe(false)
  expect([ending.cause, fired]).toEqual(['stopped', 1])
})

test('W-81 the deadline does not follow the wall clock', () => {
  vi.useFakeTimers({ toFake: ['Date'], now: 0 })
  try {
    const ending = new TurnEnding(60_000)
    vi.setSystemTime(10 * 3_600_000)
    expect(ending.signal.aborted).toBe(false)
    expect(ending.deadline - performance.now()).toBeGreaterThan(0)
    ending.end('over')
  } finally {
    vi.useRealTimers()
  }
})

test('the deadline ends the turn by itself', async () => {
  const ending = new TurnEnding(1)
  await expect(untilAborted(new Promise(() => {}), ending.signal)).rejects.toThrow('timeout')
  expect(ending.cause).toBe('timeout')
})

test('untilAborted gives the answer when it comes first, and ignores a late failure', async () => {
  const ending = new TurnEnding(60_000)
  await expect(untilAborted(Promise.resolve(7), ending.signal)).resolves.toBe(7)
  let fail = (_: Error) => {}
  const late = untilAborted(
    new Promise((_, reject) => {
      fail = reject
    }),
    ending.signal,
  )
  ending.end('stopped')
  await expect(late).rejects.toThrow('stopped')
  fail(new TypeError('late'))
  await expect(untilAborted(Promise.resolve(7), ending.signal)).rejects.toThrow('stopped')
})
