import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { CredentialError } from '../errors.ts'
import { readJsonc } from './jsonc.ts'

function refusal(text: string): string {
  try {
    readJsonc(text)
  } catch (error) {
    if (CredentialError.isInstance(error)) return error.message
    throw error
  }
  return 'nothing was refused'
}

describe('readJsonc', () => {
  test('W-21 whatever JSON.parse takes is read the same, with comments anywhere between its parts', () => {
    const property = fc.property(
      fc.json(),
      fc.constantFrom('// x\n', '/* "}] */', '\n\t'),
      (json, comment) => {
        const expected = JSON.parse(json)
        const parts = json.match(/"(?:[^"\\]|\\.)*"|[[\]{},:]|[^[\]{},:"]+/g) ?? []
        const commented = comment + parts.join(comment) + comment
        expect(readJsonc(json).value).toEqual(expected)
        expect(readJsonc(commented).value).toEqual(expected)
      },
    )
    fc.assert(property, { numRuns: 300 })
  })

  test('a comma may follow the last element, and text in strings is no comment', () => {
    const text = '\ufeff{ "a": [1, 2,], // "b": 3\n "u": "http://x/*y*/", /* { */ }'
    expect(readJsonc(text).value).toEqual({ a: [1, 2], u: 'http://x/*y*/' })
  })

  test('names like those of Object.prototype are only names', () => {
    const { value } = readJsonc('{ "__proto__": { "x": 1 }, }')
    expect(Object.keys(value as object)).toEqual(['__proto__'])
    expect((value as { x?: number }).x).toBe(undefined)
  })

  test('the line of every part is known, and of what is not there the nearest one around it', () => {
    const text = '// keys\n{\n  "rules": [\n    { "a": 1 },\n    {\n      "b": 2\n    }\n  ]\n}\n'
    const { lineOf } = readJsonc(text)
    expect(lineOf([])).toBe(1)
    expect(lineOf(['rules'])).toBe(3)
    expect(lineOf(['rules', 0, 'a'])).toBe(4)
    expect(lineOf(['rules', 1])).toBe(5)
    expect(lineOf(['rules', 1, 'b'])).toBe(6)
    expect(lineOf(['rules', 1, 'none', 'of', 'these'])).toBe(5)
  })

  test.each([
    ['', 'line 1: a value is missing'],
    ['{\n  "a": 1\n  "b": 2\n}', 'line 3: a comma or } is missing before here'],
    ['{\n  "a" 1 }', 'line 2: a colon after the name is missing'],
    ["{ 'a': 1 }", 'line 1: a name in double quotes is missing'],
    ['[1 2]', 'line 1: a comma or ] is missing before here'],
    ['[,]', 'line 1: a value is missing'],
    ['[\n"sk-oops\n]', 'line 2: a text is not closed on its line'],
    ['[\n"\\x"]', 'line 2: a text has a character or an escape that JSON does not know'],
    ['{\n\n"a": sk-oops }', 'line 3: a value is no text in double quotes'],
    ['{\n"a": 1,\n"oops": {},\n"oops": 1 }', 'line 4: a name is given twice'],
    ['[{ "b": { "oops": 1,\n"o\\u006fps": 2 // x\n} }]', 'line 2: a name is given twice'],
    ['[01]', 'line 1: a value is no text'],
    ['{}\n{}', 'line 2: something follows after the end'],
    ['{}\n/* sk-oops', 'line 2: a comment is not closed'],
    ['[1', 'line 1: a comma or ] is missing before here'],
    ['['.repeat(65), 'nested deeper than 64 levels'],
  ])('%j is refused with its line and without its text', (text, message) => {
    expect(refusal(text)).toContain(message)
    expect(refusal(text)).not.toContain('oops')
  })
})
