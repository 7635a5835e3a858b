import { expect, test } from 'vitest'
import { SandboxPluginError } from '../errors.ts'
import { snapshotTurn } from './turn-snapshot.ts'

const speaker = { id: 'u-1', name: 'Ann' }

function code(run: () => unknown): string {
  try {
    run()
  } catch (error) {
    if (SandboxPluginError.isInstance(error)) return error.code
    throw error
  }
  return 'none'
}

test('CS-13 W-04 later changes of what the caller passed do not reach the turn', () => {
  const mutable = { ...speaker, extra: 'x' }
  const turn = snapshotTurn('a:1', mutable, 'hi')
  mutable.id = 'u-2'
  mutable.name = 'Bob'
  expect(turn.speaker).toEqual(speaker)
  expect(Object.isFrozen(turn) && Object.isFrozen(turn.speaker)).toBe(true)
})

test('CS-21 the principalId is the scope’s alone: what the worker and listeners see has none', () => {
  const given = { ...speaker, principalId: 'p-1' }
  const turn = snapshotTurn('a:1', given, 'hi')
  given.principalId = 'p-eve'
  expect(turn.scope).toEqual({ channel: 'a:1', speaker: { ...speaker, principalId: 'p-1' } })
  expect(turn.speaker).toEqual(speaker)
  expect(Object.isFrozen(turn.scope) && Object.isFrozen(turn.scope.speaker)).toBe(true)
  for (const principalId of ['', 'x'.repeat(257)]) {
    expect(code(() => snapshotTurn('a:1', { ...speaker, principalId }, ''))).toBe('input_invalid')
  }
})

test('every turn has an id of its own', () => {
  const [a, b] = [snapshotTurn('a:1', speaker, ''), snapshotTurn('a:1', speaker, '')]
  expect(a.turnId).not.toBe(b.turnId)
})

test('RL-08 text has at most 32,000 characters, speaker id and name at most 256', () => {
  expect(code(() => snapshotTurn('a:1', speaker, 'x'.repeat(32_000)))).toBe('none')
  expect(code(() => snapshotTurn('a:1', speaker, 'x'.repeat(32_001)))).toBe('input_invalid')
  expect(code(() => snapshotTurn('a:1', { id: 'x'.repeat(256), name: 'x'.repeat(256) }, ''))).toBe('none')
  expect(code(() => snapshotTurn('a:1', { id: 'x'.repeat(257), name: '' }, ''))).toBe('input_invalid')
  expect(code(() => snapshotTurn('a:1', { id: 'x', name: 'x'.repeat(257) }, ''))).toBe('input_invalid')
  expect(code(() => snapshotTurn('a:1', { id: '', name: '' }, ''))).toBe('input_invalid')
})

test('a channel is a surface and an id; anything else is no turn', () => {
  for (const channel of ['', 'a', ':1', 'a:', 'a b:1', `a:${'x'.repeat(512)}`]) {
    expect(code(() => snapshotTurn(channel as 'a:1', speaker, 'hi'))).toBe('input_invalid')
  }
  expect(code(() => snapshotTurn('a:1:2/../3', speaker, 'hi'))).toBe('none')
})
