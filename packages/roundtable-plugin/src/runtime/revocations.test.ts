import { expect, test } from 'vitest'
import type { ChannelKey } from '../host-contract.ts'
import { Revocations, type SpendingScope } from './revocations.ts'
import { TurnEnding } from './turn-ending.ts'

function running(channel: ChannelKey, speakerId: string) {
  const ending = new TurnEnding(60_000)
  return { channel, speakerId, ending }
}

const all = () => [running('a:1', 'ann'), running('a:1', 'bob'), running('a:2', 'ann')]

test.each<[SpendingScope, string[]]>([
  [{ channel: 'a:1', speaker: { id: 'ann' } }, ['a:1 ann']],
  [{ channel: 'a:1' }, ['a:1 ann', 'a:1 bob']],
  [{ speaker: { id: 'ann' } }, ['a:1 ann', 'a:2 ann']],
])('%j ends the turns that it covers, and later ones, until exactly it is restored', (scope, covered) => {
  const revocations = new Revocations()
  const now = all()
  const ended = revocations.revoke(scope, now)
  expect(ended).toEqual(covered.map((name) => name.split(' ')[0]))
  const of = (turns: ReturnType<typeof all>) =>
    turns
      .filter(({ ending }) => ending.cause === 'revoked')
      .map((turn) => `${turn.channel} ${turn.speakerId}`)
  expect(of(now)).toEqual(covered)
  const later = all()
  for (const turn of later) revocations.admit(turn)
  expect(of(later)).toEqual(covered)
  expect(revocations.restore({ ...scope, channel: 'a:3' })).toBe(false)
  expect([revocations.restore(scope), revocations.restore(scope), revocations.list()]).toEqual([
    true,
    false,
    [],
  ])
  const again = all()
  for (const turn of again) revocations.admit(turn)
  expect(of(again)).toEqual([])
  for (const { ending } of [...now, ...later, ...again]) ending.end('over')
})

test('the scope of a call is one too, and is copied', () => {
  const revocations = new Revocations()
  const scope = { channel: 'a:1', speaker: { id: 'ann', name: 'Ann' } }
  revocations.revoke(scope, [])
  scope.speaker.id = 'bob'
  expect(revocations.list()).toEqual([{ channel: 'a:1', speaker: { id: 'ann' } }])
})

test('a turn that has ended otherwise is not ended again, and what it spends through is told first', () => {
  const revocations = new Revocations()
  const stopped = running('a:1', 'ann')
  stopped.ending.end('stopped')
  const spends = running('a:1', 'bob')
  const seen: boolean[] = []
  spends.ending.spending = { revoke: () => void seen.push(spends.ending.signal.aborted) }
  expect(revocations.revoke({ channel: 'a:1' }, [stopped, spends])).toEqual(['a:1'])
  expect([stopped.ending.cause, seen]).toEqual(['stopped', [false]])
})

test.each([
  {},
  { channel: 'nocolon' },
  { speaker: { id: '' } },
  { channel: 'a:1', speaker: {} },
  { speaker: { id: 7 } },
  { channel: 'a:1', speaker: null },
  null,
  undefined,
])('%j names nobody and is refused', (scope) => {
  const refused = expect.objectContaining({ code: 'input_invalid' })
  expect(() => new Revocations().revoke(scope as SpendingScope, [])).toThrow(refused)
  expect(() => new Revocations().restore(scope as SpendingScope)).toThrow(refused)
})
