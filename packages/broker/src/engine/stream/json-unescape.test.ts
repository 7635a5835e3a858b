import fc from 'fast-check'
import { expect, test } from 'vitest'
import { unescaped } from '../reflection/scan-json.ts'
import { JsonUnescape } from './json-unescape.ts'

/** Text that is full of escapes, whole and broken. */
const almostJson = fc
  .array(
    fc.constantFrom('\\', '\\\\', '\\"', '\\n', '\\u002d', '\\u00', 'u', '0', '4', '1', 'x', '"', '🎉'),
    { maxLength: 30 },
  )
  .map((parts) => parts.join(''))

test('W-17 property: in pieces of any size it reads as in one', () => {
  fc.assert(
    fc.property(almostJson, fc.integer({ min: 1, max: 7 }), (text, step) => {
      const reader = new JsonUnescape()
      let out = ''
      // The end makes what is open at the end of the text complete.
      const whole = `${text}....`
      for (let at = 0; at < whole.length; at += step) out += reader.push(whole.slice(at, at + step))
      expect(out).toBe(unescaped(whole))
    }),
  )
})

test('an escape is not waited for when its backslash is escaped itself', () => {
  const reader = new JsonUnescape()
  expect(reader.push('a\\\\')).toBe('a\\')
  expect(reader.push('u002d')).toBe('u002d')
})
