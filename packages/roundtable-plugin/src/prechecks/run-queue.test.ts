import { expect, test } from 'vitest'
import { RunQueue } from './run-queue.ts'

const never = new AbortController().signal

/** The names of those that have got a place, in order. */
function entering(queue: RunQueue) {
  const inside: string[] = []
  const enter = (name: string, signal = never) => queue.enter(signal).then(() => void inside.push(name))
  return { inside, enter }
}

const turnOver = () => new Promise((done) => setImmediate(done))

test('PC-09 so many at once, the others in the order of their coming, no more than may wait', async () => {
  const queue = new RunQueue({ maxRunning: 2, maxQueued: 2 })
  const { inside, enter } = entering(queue)
  const all = ['a', 'b', 'c', 'd'].map((name) => enter(name))
  await expect(enter('e')).rejects.toThrow('2 run and 2 wait')
  expect(inside).toEqual(['a', 'b'])
  queue.leave()
  await turnOver()
  expect(inside).toEqual(['a', 'b', 'c'])
  queue.leave()
  await Promise.all(all)
  expect(inside).toEqual(['a', 'b', 'c', 'd'])
  queue.leave()
  queue.leave()
  await enter('f')
  await enter('g')
  expect(inside).toEqual(['a', 'b', 'c', 'd', 'f', 'g'])
})

test('PC-09 who is called off waits no longer, and takes no place', async () => {
  const queue = new RunQueue({ maxRunning: 1, maxQueued: 2 })
  const { inside, enter } = entering(queue)
  const [stop, later] = [new AbortController(), new AbortController()]
  await enter('a')
  const b = enter('b', stop.signal)
  stop.abort('called off')
  await expect(b).rejects.toBe('called off')
  await expect(enter('b', stop.signal)).rejects.toBe('called off')
  // In the moment in which its place comes.
  const c = enter('c', later.signal)
  later.abort('called off')
  queue.leave()
  await expect(c).rejects.toBe('called off')
  await enter('d')
  const e = enter('e')
  await turnOver()
  expect(inside).toEqual(['a', 'd'])
  queue.leave()
  await e
})
