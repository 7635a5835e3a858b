import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { PatternSearch } from './pattern-search.ts'
import { PatternStream } from './secret-stream.ts'

const bytes = (text: string) => new Uint8Array(Buffer.from(text, 'latin1'))

/** What the search must agree with: one search per pattern, every place. */
function naiveFound(patterns: readonly string[], data: string): boolean {
  return patterns.some((pattern) => data.includes(pattern))
}

function naiveOpenEnding(patterns: readonly string[], data: string): number {
  for (let size = data.length; size > 0; size--) {
    const ending = data.slice(data.length - size)
    if (patterns.some((pattern) => pattern.length > size && pattern.startsWith(ending))) return size
  }
  return 0
}

/** Few letters, so that near misses, overlaps and patterns inside patterns are the rule. */
const letters = (min: number, max: number) =>
  fc.string({ unit: fc.constantFrom('a', 'b', 'c'), minLength: min, maxLength: max })
const patternSet = fc.array(letters(3, 9), { minLength: 1, maxLength: 6 })

describe('PatternSearch', () => {
  test('W-16 property, 40,000 cases: it finds what a naive search finds', () => {
    fc.assert(
      fc.property(patternSet, letters(0, 40), (patterns, data) => {
        const search = new PatternSearch(patterns.map(bytes))
        expect(search.found(bytes(data))).toBe(naiveFound(patterns, data))
        expect(search.openEnding(bytes(data))).toBe(naiveOpenEnding(patterns, data))
      }),
      { numRuns: 40_000 },
    )
  })

  test('W-15 W-16 property, 40,000 cases: a stream cut anywhere hits when, and holds what, a naive one would', () => {
    fc.assert(
      fc.property(
        patternSet,
        fc.array(letters(0, 12), { maxLength: 8 }),
        fc.integer({ min: 1, max: 4 }),
        (patterns, chunks, holdFrom) => checkStream(patterns, chunks, holdFrom),
      ),
      { numRuns: 40_000 },
    )
  })

  test('any bytes, also with more patterns than a short index holds', () => {
    const patterns = Array.from(
      { length: 70_000 },
      (_, i) => new Uint8Array([255, i & 255, (i >> 8) & 255, i >> 16]),
    )
    const search = new PatternSearch(patterns)
    expect(search.found(new Uint8Array([0, 255, 0x6f, 0x11, 1]))).toBe(true)
    expect(search.found(new Uint8Array([0, 255, 0x71, 0x11, 1]))).toBe(false)
  })

  test('patterns longer than the widest jump', () => {
    const pattern = 'x'.repeat(400) + 'y'.repeat(400)
    const search = new PatternSearch([bytes(pattern)])
    for (const lead of [0, 1, 254, 255, 256, 1000]) {
      expect(search.found(bytes('z'.repeat(lead) + pattern))).toBe(true)
      expect(search.found(bytes('z'.repeat(lead) + pattern.slice(1)))).toBe(false)
    }
  })

  test('without patterns it finds and holds nothing', () => {
    const search = new PatternSearch([])
    expect(search.found(bytes('anything'))).toBe(false)
    expect(search.openEnding(bytes('anything'))).toBe(0)
    expect([search.shortest, search.longest]).toEqual([0, 0])
  })

  test('a pattern under three bytes is a caller’s mistake', () => {
    expect(() => new PatternSearch([bytes('ab')])).toThrow(TypeError)
  })
})

function checkStream(patterns: readonly string[], chunks: readonly string[], holdFrom: number): void {
  const stream = new PatternStream(new PatternSearch(patterns.map(bytes)), holdFrom)
  let seen = ''
  let passed = ''
  for (const chunk of chunks) {
    seen += chunk
    const reused = bytes(chunk)
    passed += Buffer.from(stream.push(reused)).toString('latin1')
    reused.fill(0x7a)
    expect(stream.hit).toBe(naiveFound(patterns, seen))
    if (stream.hit) {
      expect(stream.end().length).toBe(0)
      return
    }
    const open = naiveOpenEnding(patterns, seen)
    if (open < holdFrom) expect(stream.held).toBe(0)
    expect(stream.held).toBeLessThanOrEqual(open)
    if (holdFrom === 1) expect(stream.held).toBe(open)
    expect(passed).toBe(seen.slice(0, seen.length - stream.held))
  }
  expect(passed + Buffer.from(stream.end()).toString('latin1')).toBe(seen)
}
