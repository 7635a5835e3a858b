import { expect, test } from 'vitest'
import { TURN_STATES, type TurnEvent, TurnProgress } from './turn-state.ts'

const base = {
  turnId: 't',
  channel: 'a:1',
  speaker: { id: 'u', name: 'U' },
  driver: 'process',
} as const

test('a turn goes through its states in order and tells each once', () => {
  const events: TurnEvent[] = []
  const progress = new TurnProgress(base, (event) => events.push(event))
  for (const state of TURN_STATES.slice(1, -1)) progress.enter(state)
  progress.enter('settled', { ok: true })
  expect(events.map(({ state }) => state)).toEqual([...TURN_STATES])
  expect(events.at(-1)).toMatchObject({ ...base, ok: true })
  expect(events[0]).not.toHaveProperty('ok')
})

test('from the state in which it is known, the worker is told', () => {
  const events: TurnEvent[] = []
  const posture = { uid: 7 } as NonNullable<TurnEvent['posture']>
  const progress = new TurnProgress(base, (event) => events.push(event))
  progress.enter('starting')
  progress.servedBy({ workerId: 'w', warm: true, posture })
  progress.enter('bound')
  progress.enter('settling')
  expect(events.map(({ workerId, warm, posture }) => [workerId, warm, posture?.uid])).toEqual([
    [undefined, undefined, undefined],
    [undefined, undefined, undefined],
    ['w', true, 7],
    ['w', true, 7],
  ])
})

test('a turn may settle from anywhere, and cannot skip, go back or settle twice', () => {
  const progress = new TurnProgress(base)
  expect(() => progress.enter('bound')).toThrow(TypeError)
  progress.enter('settling')
  expect(() => progress.enter('answering')).toThrow(TypeError)
  progress.enter('settled')
  expect(() => progress.enter('settled')).toThrow(TypeError)
  expect(() => progress.enter('settling')).toThrow(TypeError)
})

test('a listener that throws does not touch the turn', () => {
  const progress = new TurnProgress(base, () => {
    throw new TypeError('listener')
  })
  progress.enter('starting')
  expect(progress.state).toBe('starting')
})
