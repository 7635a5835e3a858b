import { PassThrough, Readable } from 'node:stream'
import { expect, test } from 'vitest'
import { ownsMemory, parseObject, readBody } from './read-body.ts'

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

const dripping = {
  async *[Symbol.asyncIterator]() {
    for (let count = 0; count < 20; count += 1) {
      await new Promise((next) => setTimeout(next, 5))
      yield Buffer.from('x')
    }
  },
}

test('one that goes on is, for as long as it takes', async () => {
  const options = { body: dripping, contentLength: undefined, limitBytes: 100, idleMs: 90, signal }
  expect(Buffer.from(await readBody(options)).toString()).toBe('x'.repeat(20))
})

test('LS-05 unless there is a limit for all of it', async () => {
  const options = {
    body: dripping,
    contentLength: undefined,
    limitBytes: 100,
    idleMs: 90,
    wholeMs: 20,
    signal,
  }
  await expect(readBody(options)).rejects.toMatchObject({ reason: 'timeout' })
})

test.each([
  [1, 16_384, true],
  [1, 17_000, false],
  [64, 40_000, true],
])('W-32 pieces of %i byte, %i of them: %s', async (size, count, passes) => {
  const body = Readable.from(Array.from({ length: count }, () => Buffer.alloc(size, 0x20)))
  const reading = readBody({ body, contentLength: undefined, limitBytes: 1e7, signal })
  if (passes) expect((await reading).byteLength).toBe(size * count)
  else await expect(reading).rejects.toMatchObject({ reason: 'body_invalid' })
})

test('W-31 a large body has its memory to itself, with or without an announced length', async () => {
  const one = new Uint8Array(100_000).fill(0x20)
  const body = {
    async *[Symbol.asyncIterator]() {
      yield one
    },
  }
  for (const contentLength of [undefined, one.length]) {
    const bytes = await readBody({ body, contentLength, limitBytes: 1e6, signal })
    expect(ownsMemory(bytes)).toBe(true)
    expect(bytes).toEqual(Buffer.from(one))
    expect(bytes.buffer === one.buffer).toBe(false)
  }
  const small = await readBody({
    body: Readable.from([one.subarray(0, 10)]),
    contentLength: 10,
    limitBytes: 10,
    signal,
  })
  expect(ownsMemory(small)).toBe(false)
})

test('LS-05 a stream that ends, breaks off or was over before is told apart', async () => {
  const read = (body: Readable, contentLength?: number) =>
    readBody({ body, contentLength, limitBytes: 100, signal }).then(
      (bytes) => Buffer.from(bytes).toString(),
      (error) => error.reason,
    )
  expect(await read(Readable.from([Buffer.from('a'), Buffer.from('b')]))).toBe('ab')
  expect(await read(Readable.from([Buffer.from('a')]), 2)).toBe('body_invalid')
  expect(await read(Readable.from([Buffer.from('ab')]), 1)).toBe('body_invalid')
  expect(await read(Readable.from([Buffer.alloc(101)]))).toBe('body_too_large')
  const broken = new PassThrough()
  const reading = read(broken)
  broken.write('a')
  setImmediate(() => broken.destroy())
  expect(await reading).toBe('body_invalid')
  expect(await read(broken)).toBe('body_invalid')
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
