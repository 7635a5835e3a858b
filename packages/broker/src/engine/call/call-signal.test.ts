import { getEventListeners } from 'node:events'
import { describe, expect, test } from 'vitest'
import { linkCallSignal, raceSignal } from './call-signal.ts'
import { CallRefusal } from './refusal.ts'

const listeners = (signal: AbortSignal) => getEventListeners(signal, 'abort').length

describe('SB-14 and W-49 linked signals', () => {
  test('a thousand ended calls leave nothing on the turn’s signal', () => {
    const [turn, guest] = [new AbortController(), new AbortController()]
    for (let count = 0; count < 1000; count += 1) {
      linkCallSignal({ turn: turn.signal, guest: guest.signal, limitMs: 60_000 }).detach()
    }
    expect([listeners(turn.signal), listeners(guest.signal)]).toEqual([0, 0])
  })
  test('a link that fired has let go too', () => {
    const [turn, guest] = [new AbortController(), new AbortController()]
    linkCallSignal({ turn: turn.signal, guest: guest.signal, limitMs: 60_000 })
    expect(listeners(turn.signal)).toBe(1)
    guest.abort()
    expect([listeners(turn.signal), listeners(guest.signal)]).toEqual([0, 0])
  })
  test.each(['turn', 'guest'] as const)('%s: fires once, with the first cause', (which) => {
    const sources = { turn: new AbortController(), guest: new AbortController() }
    const linked = linkCallSignal({ turn: sources.turn.signal, guest: sources.guest.signal, limitMs: 60_000 })
    expect(linked.refusal()).toBeUndefined()
    sources[which].abort()
    sources.turn.abort()
    expect(linked.refusal()?.reason).toBe(which === 'turn' ? 'turn_over' : 'aborted')
    expect(linked.signal.reason).toBeInstanceOf(CallRefusal)
  })
  test('what had fired before counts', () => {
    const guest = new AbortController().signal
    const linked = linkCallSignal({ turn: AbortSignal.abort(), guest, limitMs: 60_000 })
    expect(linked.signal.aborted).toBe(true)
    expect(listeners(guest)).toBe(0)
  })
  test('the time alone is enough', async () => {
    const linked = linkCallSignal({ guest: new AbortController().signal, limitMs: 1 })
    await new Promise((done) => linked.signal.addEventListener('abort', done))
    expect(linked.refusal()?.reason).toBe('timeout')
  })
  test('after detach it never fires', () => {
    const turn = new AbortController()
    const linked = linkCallSignal({ turn: turn.signal, guest: new AbortController().signal, limitMs: 60_000 })
    linked.detach()
    turn.abort()
    expect(linked.signal.aborted).toBe(false)
  })
})

describe('W-06 raceSignal', () => {
  test('takes the promise’s side when it is first, and lets go of the signal', async () => {
    const control = new AbortController()
    expect(await raceSignal(Promise.resolve(1), control.signal)).toBe(1)
    await expect(raceSignal(Promise.reject(2), control.signal)).rejects.toBe(2)
    await new Promise((done) => setImmediate(done))
    expect(listeners(control.signal)).toBe(0)
  })
  test('takes the signal’s side when that is first, and swallows what comes later', async () => {
    const control = new AbortController()
    let fail = (_: unknown) => {}
    const raced = raceSignal(
      new Promise((_, reject) => {
        fail = reject
      }),
      control.signal,
    )
    control.abort('over')
    fail('late')
    await expect(raced).rejects.toBe('over')
    await expect(raceSignal(new Promise(() => {}), AbortSignal.abort('over'))).rejects.toBe('over')
  })
})
