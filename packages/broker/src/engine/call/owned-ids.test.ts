import { describe, expect, test } from 'vitest'
import { OwnedIds } from './owned-ids.ts'

const scope = (channel: string, id: string) => ({ channel, speaker: { id } })
const ANN = scope('web:room', 'u-ann')
const BOB = scope('web:room', 'u-bob')

describe('issue 4: what a scope created on an account [call:own-ids-only]', () => {
  test('is its channel’s and speaker’s alone, whatever they are called', () => {
    const ids = new OwnedIds()
    ids.add({ channel: 'web:room', speaker: { id: 'u-ann', name: 'Ann' } } as typeof ANN, 'resp_1')
    expect(
      ids.has({ channel: 'web:room', speaker: { id: 'u-ann', name: 'Anna' } } as typeof ANN, 'resp_1'),
    ).toBe(true)
    const others = [
      BOB,
      scope('web:hall', 'u-ann'),
      scope('web:room","u-ann', ''),
      scope('web', 'room:u-ann'),
      scope('__proto__', 'constructor'),
    ]
    expect(others.map((other) => ids.has(other, 'resp_1'))).toEqual(others.map(() => false))
    expect(ids.has(ANN, 'resp_2')).toBe(false)
  })

  test('an id that is none is not remembered', () => {
    const ids = new OwnedIds()
    for (const id of ['', 'x'.repeat(257)]) {
      ids.add(ANN, id)
      expect(ids.has(ANN, id)).toBe(false)
    }
    expect(ids.size).toBe(0)
  })

  test('count: the oldest of a scope goes first; one that is seen again is young again', () => {
    const ids = new OwnedIds({ perScope: 2 })
    for (const id of ['a', 'b', 'a', 'c']) ids.add(ANN, id)
    expect(['a', 'b', 'c'].map((id) => ids.has(ANN, id))).toEqual([true, false, true])
    expect(ids.size).toBe(2)
  })

  test('count: of all scopes, the one that was quiet for longest loses its oldest', () => {
    const ids = new OwnedIds({ total: 3 })
    ids.add(ANN, 'a1')
    ids.add(ANN, 'a2')
    ids.add(BOB, 'b1')
    ids.add(BOB, 'b2')
    expect([ids.has(ANN, 'a1'), ids.has(ANN, 'a2'), ids.has(BOB, 'b1')]).toEqual([false, true, true])
    ids.add(ANN, 'a3')
    expect([ids.has(BOB, 'b1'), ids.has(ANN, 'a2')]).toEqual([false, true])
    expect(ids.size).toBe(3)
  })

  test('age: what was not seen for long is refused, and its memory given back', () => {
    let nowMs = 0
    const ids = new OwnedIds({ ageMs: 1000, now: () => nowMs })
    ids.add(ANN, 'a')
    nowMs = 999
    expect(ids.has(ANN, 'a')).toBe(true)
    ids.add(BOB, 'b')
    nowMs = 1000
    expect([ids.has(ANN, 'a'), ids.has(BOB, 'b')]).toEqual([false, true])
    ids.add(BOB, 'c')
    expect(ids.size).toBe(2)
  })

  test('ids of many scopes stay within the bound', () => {
    const ids = new OwnedIds({ perScope: 8, total: 100 })
    for (let at = 0; at < 100_000; at += 1) ids.add(scope('web:room', `u-${at % 1000}`), `id-${at}`)
    expect(ids.size).toBe(100)
    expect(ids.has(scope('web:room', 'u-999'), 'id-99999')).toBe(true)
  })

  test('forget: a channel, or one speaker of it', () => {
    const ids = new OwnedIds()
    const all = [ANN, BOB, scope('web:hall', 'u-ann')]
    for (const one of all) ids.add(one, 'x')
    ids.forget({ channel: 'web:room', speakerId: 'u-ann' })
    expect(all.map((one) => ids.has(one, 'x'))).toEqual([false, true, true])
    ids.forget({ channel: 'web:room' })
    expect(all.map((one) => ids.has(one, 'x'))).toEqual([false, false, true])
    expect(ids.size).toBe(1)
  })

  test.each([{ perScope: 0 }, { total: 1.5 }, { ageMs: Number.NaN }])('%j is refused', (options) => {
    expect(() => new OwnedIds(options)).toThrow(TypeError)
  })
})
