import { expect, test } from 'vitest'
import { readBody } from './read-body.ts'

const signal = new AbortController().signal

test('LS-05 and W-32 a body that falls silent is not waited for', async () => {
  const left = new AbortController()
  const body = {
    async *[Symbol.asyncIterator]() {
      yield Buffer.from('{')
      await new Promise((done) => left.signal.addEventListener('abort', done))
    },
  }
  const options = { body, contentLength: undefined, limitBytes: 100, idleMs: 20, signal }
  await expect(readBody(options)).rejects.toMatchObject({ reason: 'timeout' })
  left.abort()
})

test('one that goes on is, for as long as it takes', async () => {
  const body = {
    async *[Symbol.asyncIterator]() {
      for (let count = 0; count < 20; count += 1) {
        await new Promise((next) => setTimeout(next, 5))
        yield Buffer.from('x')
      }
    },
  }
  const options = { body, contentLength: undefined, limitBytes: 100, idleMs: 90, signal }
  expect(Buffer.from(await readBody(options)).toString()).toBe('x'.repeat(20))
})
