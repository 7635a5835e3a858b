import { expect, test } from 'vitest'
import { parseObject, readBody } from './read-body.ts'

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

test('W-43 nesting is counted outside of strings only, and not by recursion', () => {
  const brackets = '[{'.repeat(100)
  for (const value of [{ a: brackets, [brackets]: 1 }, { a: `\\"${brackets}` }, { a: `${brackets}\\` }]) {
    expect(parseObject(Buffer.from(JSON.stringify(value)))).toEqual(value)
  }
  const nested = (levels: number) => Buffer.from(`${'{"a":'.repeat(levels)}1${'}'.repeat(levels)}`)
  expect(parseObject(nested(64))).toBeTypeOf('object')
  expect(() => parseObject(nested(65))).toThrow('body_invalid')
  expect(() => parseObject(Buffer.from(`{"a":${'['.repeat(500_000)}`))).toThrow('body_invalid')
})
