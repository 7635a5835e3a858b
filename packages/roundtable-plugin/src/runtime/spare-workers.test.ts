import { expect, test } from 'vitest'
import { SpareWorkers } from './spare-workers.ts'

function spares() {
  const asked: string[] = []
  const workers = new SpareWorkers({
    warm: (channel) => void asked.push(`warm ${channel}`),
    cool: async (channel) => void asked.push(`cool ${channel}`),
    waiting: () => ['fake:1'],
  })
  return { asked, workers }
}

test('PL-12 a channel that is turned off while its worker waits to be started gets none', async () => {
  const { asked, workers } = spares()
  const starting = Promise.withResolvers<void>()
  workers.warm('fake:1', starting.promise)
  await workers.cool('fake:1')
  starting.resolve()
  await starting.promise
  expect(asked).toEqual(['cool fake:1'])
})

test('PL-12 one that is turned on again in between gets one', async () => {
  const { asked, workers } = spares()
  const starting = Promise.withResolvers<void>()
  workers.warm('fake:1', starting.promise)
  await workers.cool('fake:1')
  workers.warm('fake:1', starting.promise)
  workers.warm('fake:2', starting.promise)
  starting.resolve()
  await starting.promise
  expect(asked).toEqual(['cool fake:1', 'warm fake:1', 'warm fake:2'])
})

test('nothing starts after what failed, and the next call may', async () => {
  const { asked, workers } = spares()
  workers.warm('fake:1', Promise.reject(new TypeError('no engine')))
  await new Promise(setImmediate)
  expect(asked).toEqual([])
  workers.warm('fake:1', Promise.resolve())
  await new Promise(setImmediate)
  expect(asked).toEqual(['warm fake:1'])
})
