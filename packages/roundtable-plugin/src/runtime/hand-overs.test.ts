import { expect, test } from 'vitest'
import { ManualClock } from '../../test/manual-clock.ts'
import { HandOvers } from './hand-overs.ts'

/** Whether each removal that gave way goes on, by the time that all microtasks ran. */
async function goneOn(removals: readonly Promise<void>[]): Promise<boolean[]> {
  const seen = removals.map(() => false)
  for (const [at, removal] of removals.entries()) void removal.then(() => (seen[at] = true))
  await new Promise((done) => setImmediate(done))
  return seen
}

test('a removal gives way until the last hand-over has its outcome, and to none when there is none', async () => {
  const handOvers = new HandOvers(new ManualClock())
  expect(await goneOn([handOvers.giveWay()])).toEqual([true])
  const [first, second] = [handOvers.begin(), handOvers.begin()]
  const removals = [handOvers.giveWay(), handOvers.giveWay()]
  first()
  first()
  expect(await goneOn(removals)).toEqual([false, false])
  second()
  expect(await goneOn(removals)).toEqual([true, true])
})

test('a removal gives way for 100 ms at most, however many turns are handed over meanwhile', async () => {
  const clock = new ManualClock()
  const handOvers = new HandOvers(clock)
  handOvers.begin()
  const removal = handOvers.giveWay()
  clock.advance(99)
  handOvers.begin()
  expect(await goneOn([removal])).toEqual([false])
  clock.advance(1)
  expect(await goneOn([removal])).toEqual([true])
})

test('a turn that takes long is no hand-over any more after 100 ms', async () => {
  const clock = new ManualClock()
  const handOvers = new HandOvers(clock)
  handOvers.begin()
  clock.advance(100)
  expect(await goneOn([handOvers.giveWay()])).toEqual([true])
  expect(clock.waiting).toBe(0)
})
