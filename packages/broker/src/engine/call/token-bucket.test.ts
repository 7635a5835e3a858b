import { describe, expect, test } from 'vitest'
import { CHEAP_CALLS, TokenBucket } from './token-bucket.ts'

describe('W-33 a bucket of tokens', () => {
  test('lets a burst through, then as many as drip in', () => {
    let nowMs = 1000
    const bucket = new TokenBucket({ ...CHEAP_CALLS, now: () => nowMs })
    const taken = (times: number) =>
      Array.from({ length: times }, () => bucket.take()).filter((wait) => wait === 0)
    expect(taken(500)).toHaveLength(100)
    expect(bucket.take()).toBeCloseTo(20)
    nowMs += 19
    expect(bucket.take()).toBeCloseTo(1)
    nowMs += 1
    expect(taken(5)).toHaveLength(1)
    nowMs += 1000
    expect(taken(500)).toHaveLength(50)
  })

  test('a long rest fills it no higher than the burst', () => {
    let nowMs = 0
    const bucket = new TokenBucket({ perSecond: 2, burst: 3, now: () => nowMs })
    nowMs += 3_600_000
    expect([1, 2, 3, 4].map(() => bucket.take())).toEqual([0, 0, 0, 500])
  })

  test('goes by the real clock when it is given none', () => {
    const bucket = new TokenBucket({ perSecond: 0.001, burst: 1 })
    expect(bucket.take()).toBe(0)
    expect(bucket.take()).toBeGreaterThan(900_000)
  })
})
