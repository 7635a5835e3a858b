import { expect, test } from 'vitest'
import { ChannelLock } from './channel-lock.ts'

/** Takes the channel and writes it down. */
async function noted<T>(lock: ChannelLock, order: T[], name: T): Promise<() => void> {
  const give = await lock.take('a')
  order.push(name)
  return give
}

const tick = () => new Promise<void>((done) => setImmediate(done))

test('W-70 one holder at a time for a channel, in the order of asking; other channels do not wait', async () => {
  const lock = new ChannelLock()
  const order: string[] = []
  const first = await lock.take('a')
  const second = noted(lock, order, 'second')
  const third = noted(lock, order, 'third')
  const other = await lock.take('b')
  await tick()
  expect(order).toEqual([])
  first()
  first()
  await tick()
  expect(order).toEqual(['second'])
  ;(await second)()
  ;(await third)()
  other()
  ;(await lock.take('a'))()
  expect(order).toEqual(['second', 'third'])
})

test('W-70 somebody who asks as it is given back does not step in before one who waits', async () => {
  const lock = new ChannelLock()
  const order: number[] = []
  const first = await lock.take('a')
  const waiting = noted(lock, order, 1)
  first()
  const late = noted(lock, order, 2)
  ;(await waiting)()
  ;(await late)()
  expect(order).toEqual([1, 2])
})

test('a wait that is called off holds nothing and keeps nobody', async () => {
  const lock = new ChannelLock()
  const first = await lock.take('a')
  const stop = new AbortController()
  const called = lock.take('a', stop.signal)
  const next = lock.take('a')
  stop.abort()
  await expect(called).rejects.toMatchObject({ code: 'aborted' })
  first()
  ;(await next)()
  await expect(lock.take('a', AbortSignal.abort())).rejects.toMatchObject({ code: 'aborted' })
})
