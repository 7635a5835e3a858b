import { describe, expect, it } from 'vitest'
import { bytesCarry, carriesSecret, largeBytesCarry } from './scan-json.ts'

const SECRET = 'sk-live-0123456789"+/='
const matcher = {
  matches: (text: string) => text.includes(SECRET),
  matchesBytes: (bytes: Uint8Array) => Buffer.from(bytes).includes(SECRET),
}

function nested(levels: number, wrap: (inner: unknown) => unknown, leaf: unknown): unknown {
  let value = leaf
  for (let level = 0; level < levels; level += 1) value = wrap(value)
  return value
}

describe('SB-28 keys and strings of a decoded answer', () => {
  it('a clean answer passes', () => {
    const answer = {
      id: 'chatcmpl-1',
      n: 1,
      yes: true,
      none: null,
      choices: [{ message: { content: 'sk-live' } }],
    }
    expect(carriesSecret(answer, matcher)).toBe(false)
    expect(carriesSecret('C:\\new \\u0041 ends with \\', matcher)).toBe(false)
  })

  it.each([
    ['a bare string', SECRET],
    ['a value', { a: [1, { b: `x${SECRET}y` }] }],
    ['a key', { a: [{ [`x${SECRET}`]: 1 }] }],
    ['a key called __proto__ on the way', JSON.parse(`{"__proto__":{"a":${JSON.stringify(SECRET)}}}`)],
    ['the last of many', [...Array.from({ length: 200_000 }, () => 'x'), SECRET]],
  ])('%s is a hit', (_, value) => {
    expect(carriesSecret(value, matcher)).toBe(true)
  })

  it('an escaped form in the answer text is found, because the scan is after decoding', () => {
    const escaped = [...SECRET].map((c) => `\\u${c.charCodeAt(0).toString(16).padStart(4, '0')}`).join('')
    expect(carriesSecret(JSON.parse(`{"a":"${escaped}"}`), matcher)).toBe(true)
  })

  it('JSON inside a string is searched unescaped, at any level, whole or in part', () => {
    const escaped = [...SECRET].map((c) => `\\u${c.charCodeAt(0).toString(16).padStart(4, '0')}`).join('')
    expect(carriesSecret({ arguments: `{"key":"${escaped}"}` }, matcher)).toBe(true)
    expect(carriesSecret({ arguments: `"key":"${escaped}` }, matcher)).toBe(true)
    let text = JSON.stringify({ key: SECRET })
    for (let level = 0; level < 12; level += 1) text = JSON.stringify({ text })
    expect(carriesSecret([text], matcher)).toBe(true)
  })
})

describe('W-43 depth', () => {
  it('64 levels are searched, deeper counts as a hit', () => {
    const list = (inner: unknown) => [inner]
    const map = (inner: unknown) => ({ a: inner })
    expect(carriesSecret(nested(64, list, 'x'), matcher)).toBe(false)
    expect(carriesSecret(nested(64, list, SECRET), matcher)).toBe(true)
    expect(carriesSecret(nested(65, list, 'x'), matcher)).toBe(true)
    expect(carriesSecret(nested(65, map, 'x'), matcher)).toBe(true)
  })

  it('half a million levels are a hit without a stack overflow', () => {
    expect(
      carriesSecret(
        nested(500_000, (inner) => [inner], 'x'),
        matcher,
      ),
    ).toBe(true)
  })
})

describe('W-17 JSON text as a whole', () => {
  const written = `{"a":{"${SECRET.replaceAll('-', '\\u002d').replaceAll('"', '\\"')}":1,"a":2},"a":3}`
  it.each<[string, string, boolean]>([
    ['a key that comes twice, escaped', written, true],
    ['JSON in JSON in JSON', JSON.stringify({ a: JSON.stringify({ b: written }) }), true],
    ['nothing', JSON.stringify({ a: 'sk-live\\n\\\\' }), false],
  ])('%s', async (_, text, found) => {
    const signal = new AbortController().signal
    expect(bytesCarry(Buffer.from(text), matcher)).toBe(found)
    expect(await largeBytesCarry(Buffer.from(text), matcher, signal)).toBe(found)
  })
  it('a search of large text ends with its call', async () => {
    const signal = AbortSignal.abort(new TypeError('over'))
    await expect(largeBytesCarry(Buffer.from(written), matcher, signal)).rejects.toThrow('over')
  })
})
