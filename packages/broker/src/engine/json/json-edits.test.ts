import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { type Edit, editedParts, orderEdits } from './json-edits.ts'

const put = (start: number, end: number, text: string): Edit => ({ start, end, bytes: Buffer.from(text) })
const cut = (start: number, end: number): Edit => ({ start, end })

function edited(text: string, edits: readonly Edit[], span?: { start: number; end: number }): string {
  return Buffer.concat([...editedParts(Buffer.from(text), orderEdits(edits), span)]).toString()
}

describe('edits of a text', () => {
  it.each([
    ['nothing', [], 'abcdef'],
    ['in any order', [put(4, 5, 'X'), cut(0, 2)], 'cdXf'],
    ['between two bytes', [put(3, 3, 'X')], 'abcXdef'],
    ['at the end of what is cut', [put(4, 4, 'X'), cut(2, 4)], 'abXef'],
    ['within what is cut', [put(2, 3, 'X'), put(3, 3, 'Y'), cut(1, 5)], 'af'],
    ['the later of two of one span', [put(1, 3, 'X'), put(1, 3, 'Y')], 'aYdef'],
    ['everything', [cut(0, 6)], ''],
  ] as const)('%s', (_, edits, wanted) => {
    expect(edited('abcdef', edits)).toBe(wanted)
  })

  it('of a part of the text', () => {
    expect(edited('abcdef', [put(2, 3, 'X')], { start: 1, end: 4 })).toBe('bXd')
  })

  it('property: with spans apart it does what one replacement after the other does, from the end', () => {
    const spans = fc.uniqueArray(fc.nat(40), { minLength: 2, maxLength: 12 }).map((places) => {
      const sorted = places.toSorted((a, b) => a - b)
      return Array.from({ length: sorted.length >> 1 }, (_, i) =>
        put(sorted[2 * i] ?? 0, sorted[2 * i + 1] ?? 0, '<>'),
      )
    })
    fc.assert(
      fc.property(
        spans,
        fc.string({ unit: 'grapheme-ascii', minLength: 41, maxLength: 41 }),
        (edits, text) => {
          let wanted = text
          for (const { start, end } of edits.toReversed())
            wanted = `${wanted.slice(0, start)}<>${wanted.slice(end)}`
          expect(edited(text, edits.toReversed())).toBe(wanted)
        },
      ),
      { numRuns: 500 },
    )
  })
})
