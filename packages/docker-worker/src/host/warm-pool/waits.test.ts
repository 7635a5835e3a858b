import { expect, test } from 'vitest'
import { backoffMs, untilAborted } from './waits.ts'

test('W-60 work that is called off before anybody waits for it may still reject: nobody is told', async () => {
  const unhandled: unknown[] = []
  const note = (reason: unknown) => unhandled.push(reason)
  process.on('unhandledRejection', note)
  try {
    const work = Promise.reject(new TypeError('the worker said no'))
    await expect(untilAborted(work, AbortSignal.abort('stopped'))).rejects.toMatchObject({
      code: 'aborted',
      cause: 'stopped',
    })
    await new Promise((resolve) => setTimeout(resolve, 10))
    expect(unhandled).toEqual([])
  } finally {
    process.off('unhandledRejection', note)
  }
})

test('the wait doubles with every failure, up to a minute', () => {
  expect([1, 2, 3, 7, 100].map((failures) => backoffMs(1_000, failures))).toEqual([
    1_000, 2_000, 4_000, 60_000, 60_000,
  ])
})
