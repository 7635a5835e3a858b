import { setTimeout as sleep } from 'node:timers/promises'
import { describe, expect, it } from 'vitest'
import { PatientReader } from './patient-reader.ts'

/** A stream that gives what it is told to, when it is told to. */
function held() {
  const waiting: PromiseWithResolvers<IteratorResult<Uint8Array, unknown>>[] = []
  let asked = 0
  const chunks: AsyncIterator<Uint8Array, unknown> = {
    next() {
      asked += 1
      const one = Promise.withResolvers<IteratorResult<Uint8Array, unknown>>()
      waiting.push(one)
      return one.promise
    },
  }
  return {
    chunks,
    asked: () => asked,
    give: (byte: number) => waiting.shift()?.resolve({ value: Uint8Array.of(byte) }),
    fail: (error: Error) => waiting.shift()?.reject(error),
  }
}

describe('a reader that notices silence', () => {
  it('LS-06 gives chunks in order, and asks for one when it is asked for one', async () => {
    const { chunks, asked, give } = held()
    const reader = new PatientReader(chunks, 60_000)
    for (let byte = 1; byte <= 3; byte += 1) {
      const next = reader.next()
      expect(asked()).toBe(byte)
      give(byte)
      expect(await next).toEqual({ value: Uint8Array.of(byte) })
    }
    reader.stop()
  })

  it('T16 tells of a silence and does not ask the stream twice for one chunk', async () => {
    const { chunks, asked, give } = held()
    const reader = new PatientReader(chunks, 5)
    expect(await reader.next()).toBeUndefined()
    expect(await reader.next()).toBeUndefined()
    const next = reader.next()
    give(7)
    expect(await next).toEqual({ value: Uint8Array.of(7) })
    expect(asked()).toBe(1)
    reader.stop()
  })

  it('T22 keeps a chunk that comes while nobody waits', async () => {
    const { chunks, give, asked } = held()
    const reader = new PatientReader(chunks, 5)
    expect(await reader.next()).toBeUndefined()
    give(1)
    await sleep(20)
    expect(await reader.next()).toEqual({ value: Uint8Array.of(1) })
    const next = reader.next()
    give(2)
    expect(await next).toEqual({ value: Uint8Array.of(2) })
    expect(asked()).toBe(2)
    reader.stop()
  })

  it('T23 fails as its stream does, whether somebody waits or not', async () => {
    const { chunks, fail } = held()
    const reader = new PatientReader(chunks, 5)
    const next = reader.next()
    fail(new Error('cut'))
    await expect(next).rejects.toThrow('cut')
    expect(await reader.next()).toBeUndefined()
    fail(new Error('late'))
    await sleep(20)
    await expect(reader.next()).rejects.toThrow('late')
    reader.stop()
  })
})
