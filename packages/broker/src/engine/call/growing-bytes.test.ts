import { expect, test } from 'vitest'
import { EventReader } from '../stream/event-reader.ts'
import { GrowingBytes } from './growing-bytes.ts'

const MIB = 1024 * 1024
const PIECES = 500_000

test('pieces of any size come out as one', () => {
  for (const room of [1, 7, 100]) {
    const bytes = new GrowingBytes(room, 200)
    const pieces = [0, 1, 2, 3, 5, 8, 13, 21, 34, 0, 55].map((size, at) => Buffer.alloc(size, at + 65))
    for (const piece of pieces) bytes.add(piece)
    expect(bytes.bytes).toEqual(Buffer.concat(pieces))
  }
})

test('issue 4: no more than a mebibyte is ever moved: that would hold up the host', () => {
  const bytes = new GrowingBytes(64 * 1024, 32 * MIB)
  const places = new Map<ArrayBufferLike, number>()
  for (let at = 0; at < 20; at += 1) {
    bytes.add(Buffer.alloc(MIB / 2, at))
    const { buffer, byteLength } = bytes.bytes
    places.set(buffer, byteLength)
  }
  // What was there when the last of its places was left.
  expect([...places.values()].at(-2)).toBeLessThanOrEqual(MIB)
  expect(bytes.bytes.subarray(-1)).toEqual(Buffer.of(19))
})

test('W-31 an event that comes byte by byte takes no more than a few times its size', () => {
  const reader = new EventReader({ eventBytes: MIB })
  reader.push(Buffer.from('data: '))
  const before = memory()
  for (let at = 0; at < PIECES; at += 1) reader.push(Buffer.alloc(1, 0x61))
  expect(memory() - before).toBeLessThan(60 * MIB)
  const [event] = reader.push(Buffer.from('\n\n'))
  expect(event?.bytes.byteLength).toBe('data: \n\n'.length + PIECES)
})

/** What lives in this process; of garbage, at most what the collector lets lie. */
function memory(): number {
  const { heapUsed, external } = process.memoryUsage()
  return heapUsed + external
}
