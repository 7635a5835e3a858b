import type { CallEvent } from '@sandbox/broker'
import { expect, test } from 'vitest'
import type { ChannelKey } from '../host-contract.ts'
import { LastTurns } from './last-turns.ts'
import type { TurnEvent } from './turn-state.ts'

function turns() {
  const last = new LastTurns()
  const turn = (state: TurnEvent['state'], more: Partial<TurnEvent> = {}) =>
    last.sawTurn({
      turnId: 't1',
      channel: 'a:1',
      speaker: { id: 'ann', name: 'Ann' },
      driver: 'process',
      durationMs: 5,
      state,
      ...more,
    })
  const call = (more: Partial<CallEvent>) =>
    last.sawCall({ route: 'model', turnId: 't1', fingerprint: 'f1', ...more } as CallEvent)
  return { last, turn, call }
}

test('W-78 the last turn is told with what paid for it: the credential of its last model call', () => {
  const { last, turn, call } = turns()
  turn('admitted')
  expect(last.of('a:1')).toBeUndefined()
  call({ fingerprint: 'f0' })
  call({})
  call({ route: 'mcp', fingerprint: 'of a server' })
  call({ turnId: 't2', fingerprint: 'of another turn' })
  turn('settled', { ok: true })
  expect(last.of('a:1')).toMatchObject({
    turnId: 't1',
    speakerId: 'ann',
    ok: true,
    durationMs: 5,
    fingerprint: 'f1',
  })
  turn('admitted', { turnId: 't2' })
  turn('settled', { turnId: 't2', ok: false, category: 'credential' })
  expect(last.of('a:1')).toMatchObject({ ok: false, category: 'credential' })
  expect(last.of('a:1')).not.toHaveProperty('fingerprint')
})

test('channels without end are forgotten, the oldest first', () => {
  const { last, turn } = turns()
  const channel = (n: number): ChannelKey => `a:${n}`
  for (let n = 0; n <= 10_000; n += 1) turn('settled', { channel: channel(n), ok: true })
  expect([last.of(channel(0)), last.of(channel(1))?.ok, last.of(channel(10_000))?.ok]).toEqual([
    undefined,
    true,
    true,
  ])
})
