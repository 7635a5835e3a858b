import { expect, test } from 'vitest'
import { FreshStarts } from './fresh-start.ts'

test('RL-12 a reset is asked for once and used once', () => {
  const fresh = new FreshStarts()
  const seen: boolean[] = []
  const turn = (during?: () => void) => {
    const start = fresh.begin('a:1')
    seen.push(start.reset)
    during?.()
    fresh.consume('a:1', start)
  }
  turn(() => fresh.request('a:1'))
  turn()
  turn()
  expect(seen).toEqual([false, true, false])
})

test('RL-12 a reset asked during a turn that itself resets is kept for the next', () => {
  const fresh = new FreshStarts()
  fresh.request('a:1')
  const first = fresh.begin('a:1')
  expect(first.reset).toBe(true)
  fresh.request('a:1')
  fresh.consume('a:1', first)
  const second = fresh.begin('a:1')
  expect(second.reset).toBe(true)
  fresh.consume('a:1', second)
  expect(fresh.begin('a:1').reset).toBe(false)
})

test('RL-12 a failed turn uses nothing up', () => {
  const fresh = new FreshStarts()
  fresh.request('a:1')
  expect(fresh.begin('a:1').reset).toBe(true)
  expect(fresh.begin('a:1').reset).toBe(true)
  expect(fresh.begin('a:2').reset).toBe(false)
})
