import { expect, test } from 'vitest'
import { quietly } from './quietly.ts'

test('what a function of somebody else throws, or rejects with, is nobody’s', async () => {
  const unhandled: unknown[] = []
  const note = (reason: unknown) => unhandled.push(reason)
  process.on('unhandledRejection', note)
  quietly(() => {
    throw new TypeError('at once')
  })
  quietly(() => Promise.reject(new TypeError('later')))
  await new Promise((done) => setImmediate(done))
  process.off('unhandledRejection', note)
  expect(unhandled).toEqual([])
})
