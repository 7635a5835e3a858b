import fc from 'fast-check'
import { expect, test } from 'vitest'
import { atOnce, PIECE_BYTES } from '../call/in-pieces.ts'
import { largeValue } from './large-value.ts'

const read = (text: string | Uint8Array) => atOnce(largeValue(Buffer.from(text as string)))
/** With the prototypes that JSON.parse gives. */
const plain = (value: unknown): unknown => JSON.parse(JSON.stringify(value))

test('property: as JSON.parse', () => {
  fc.assert(
    fc.property(fc.jsonValue({ maxDepth: 5 }), fc.constantFrom(undefined, 1), (value, indent) => {
      const text = JSON.stringify(value, undefined, indent)
      expect(plain(read(text))).toEqual(JSON.parse(text))
    }),
  )
})

test('names that stand for something else are names', () => {
  const text = '{"__proto__":{"a":1},"constructor":[2],"x":{"__proto__":3}}'
  const value = read(text) as Record<string, unknown>
  expect(JSON.stringify(value)).toBe(text)
  expect(Object.getPrototypeOf(value)).toBeNull()
})

test('a string of several pieces is the same wherever it is cut: characters, escapes, runs of backslashes', () => {
  const parts = ['日', '🎉', 'é', '\\n', '\\\\', '\\u65e5', '\\ud83c\\udf89', '\\"', '\\u005c', 'u', 'x']
  fc.assert(
    fc.property(fc.array(fc.constantFrom(...parts), { maxLength: 12 }), fc.nat(40), (picked, shift) => {
      const middle = picked.join('')
      const text = `{"a":["${'y'.repeat(PIECE_BYTES - shift)}${middle}${'z'.repeat(PIECE_BYTES)}${middle}"]}`
      expect(plain(read(text))).toEqual(JSON.parse(text))
    }),
    { numRuns: 300 },
  )
  const run = `"${'\\\\'.repeat(PIECE_BYTES)}"`
  for (const text of [run, `"x${run.slice(1)}`]) expect(read(text)).toBe(JSON.parse(text))
})

test('numbers', () => {
  expect(read('[1,-0.5e3,12345678901234567890]')).toEqual([1, -500, 12345678901234567000])
  expect(read(`[${'1'.repeat(65)}]`)).toEqual([null])
})

test('probabilities of tokens are left out, and what comes after them is not', () => {
  const text = '{"a":[{"logprobs":{"content":[{"x":[1,{"logprobs":2}]}]},"b":1}],"logprobs":[[]],"c":{"d":2}}'
  expect(plain(read(text))).toEqual({ a: [{ logprobs: null, b: 1 }], logprobs: null, c: { d: 2 } })
  const many = `{"logprobs":[${'0,'.repeat(300_000)}0],"delta":"x"}`
  expect(plain(read(many))).toEqual({ logprobs: null, delta: 'x' })
})

test('what is refused', () => {
  for (const text of [
    '',
    '{',
    '{"a":1,"a":2}',
    '[1]x',
    `${'['.repeat(65)}1`,
    Buffer.from([0x22, 0xff, 0x22]),
  ]) {
    expect(() => read(text)).toThrow('upstream_invalid')
  }
})
