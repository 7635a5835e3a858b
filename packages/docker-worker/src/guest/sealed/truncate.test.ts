import { expect, test } from 'vitest'
import { jsonBytes } from '../shared/json.ts'
import { CUT_MARKER, truncate } from './truncate.ts'

test('a text that fits stays as it is', () => {
  expect(truncate('x'.repeat(98), 100)).toBe('x'.repeat(98))
})

test('WA-06 a longer text is cut by its size as JSON and ends in a visible marker', () => {
  const cut = truncate('x'.repeat(99), 100)
  expect(cut).toBe('x'.repeat(98 - CUT_MARKER.length) + CUT_MARKER)
  expect(jsonBytes(cut)).toBe(100)
})

test('W-80 never splits a surrogate pair, and uses all the room, whatever the text', () => {
  const samples = ['😀', 'aé', '漢字', '"', '\\', '\n', '\u0001', '\ud800', 'a😀é漢"\n\u0001', '👩‍👩‍👧']
  for (const sample of samples) {
    const text = sample.repeat(200)
    for (let maxBytes = 20; maxBytes < 120; maxBytes += 1) {
      const cut = truncate(text, maxBytes)
      const kept = cut.slice(0, -CUT_MARKER.length)
      expect(cut.endsWith(CUT_MARKER)).toBe(true)
      expect(text.startsWith(kept)).toBe(true)
      expect(jsonBytes(cut)).toBeLessThanOrEqual(maxBytes)
      const [next = ''] = text.slice(kept.length)
      expect(jsonBytes(kept + next + CUT_MARKER), `${sample} ${maxBytes}`).toBeGreaterThan(maxBytes)
      if (isWellFormed(sample)) expect(isWellFormed(kept)).toBe(true)
    }
  }
})

test('a caller measures the JSON around the text', () => {
  const whole = (text: string) => jsonBytes(JSON.stringify({ text }))
  const cut = truncate('"'.repeat(1000), 200, whole)
  expect(whole(cut)).toBeLessThanOrEqual(200)
  expect(whole(`"${cut}`)).toBeGreaterThan(200)
})

function isWellFormed(text: string): boolean {
  return Buffer.from(text).toString() === text
}
