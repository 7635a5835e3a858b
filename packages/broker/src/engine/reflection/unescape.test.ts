import fc from 'fast-check'
import { expect, test } from 'vitest'
import { atOnce, PIECE_BYTES } from '../call/in-pieces.ts'
import { Unescape, unescaping } from './unescape.ts'

const unescaped = (bytes: Uint8Array, memory?: Uint8Array) => atOnce(unescaping(bytes, memory))

/** Text that is full of escapes, whole and broken. */
const almostJson = fc
  .array(
    fc.constantFrom(
      '\\',
      '\\\\',
      '\\"',
      '\\n',
      '\\u002d',
      '\\u00E9',
      '\\u65e5',
      '\\u00',
      'u',
      '0',
      '4',
      '1',
      'x',
      '"',
      '🎉',
    ),
    { maxLength: 30 },
  )
  .map((parts) => parts.join(''))

const text = (bytes: Uint8Array) => Buffer.from(bytes).toString()

test('W-17 property: what JSON.parse makes of a string', () => {
  fc.assert(
    fc.property(fc.string({ unit: 'binary' }), (value) => {
      const inner = JSON.stringify(value).slice(1, -1)
      const written = [...inner].map((char) => (char === 'a' ? '\\u0061' : char)).join('')
      expect(text(unescaped(Buffer.from(written)) ?? Buffer.from(written))).toBe(
        Buffer.from(value).toString(),
      )
    }),
  )
})

test('W-17 property: in pieces of any size it reads as in one', () => {
  fc.assert(
    fc.property(almostJson, fc.integer({ min: 1, max: 7 }), (part, step) => {
      // The end makes what is open at the end of the text complete.
      const whole = Buffer.from(`${part}....`)
      const reader = new Unescape()
      const pieces: Uint8Array[] = []
      for (let at = 0; at < whole.length; at += step) pieces.push(reader.push(whole.subarray(at, at + step)))
      expect(text(Buffer.concat(pieces))).toBe(text(unescaped(whole) ?? whole))
    }),
  )
})

test('characters beyond ASCII come out as UTF-8', () => {
  const read = unescaped(Buffer.from('\\u002d \\u00e9 \\u07ff \\u0800 \\u65E5'))
  expect(text(read ?? Buffer.of())).toBe('- é \u07ff \u0800 日')
})

test('an escape is not waited for when its backslash is escaped itself', () => {
  const reader = new Unescape()
  expect(text(reader.push(Buffer.from('a\\\\')))).toBe('a\\')
  expect(text(reader.push(Buffer.from('u002d')))).toBe('u002d')
})

test('what is broken stays as it is, but for its backslash', () => {
  for (const [given, read] of [
    ['\\uZZ', 'uZZ'],
    ['\\u00', '\\u00'],
    ['\\', '\\'],
    ['\\x\\u002d\\', 'x-\\'],
  ] as const) {
    expect(text(unescaped(Buffer.from(given)) ?? ([] as never))).toBe(read)
  }
  expect(unescaped(Buffer.from('plain'))).toBeUndefined()
})

test('text of several pieces reads as in one, wherever an escape is cut, also within its own memory', () => {
  const value = `x${'\\n"é日🎉'.repeat(40_000)}`
  for (const [level, cut] of [
    [JSON.stringify(value), 0],
    [[...JSON.stringify(value)].map((char) => (char === 'n' ? '\\u006e' : char)).join(''), 7],
  ] as const) {
    for (let shift = 0; shift < 8; shift += 1) {
      const inner = Buffer.from(`${'y'.repeat(PIECE_BYTES - cut - shift)}${level.slice(1, -1)}`)
      const whole = Buffer.from(`"${inner}"`)
      const expected = JSON.parse(whole.toString()) as string
      expect(text(unescaped(inner) ?? inner)).toBe(expected)
      expect(text(unescaped(inner, inner) ?? inner)).toBe(expected)
    }
  }
})
