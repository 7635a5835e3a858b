import { createSecretMatcher, Secret } from '@sandbox/credential-scope'
import { describe, expect, it } from 'vitest'
import { bytesCarry, carriesSecret, largeBytesCarry, largeCarriesSecret, MOST_LEVELS } from './scan-json.ts'

const SECRET = 'sk-live-0123456789"+/='
const matcher = {
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

it('issue 4: the texts of a large value are gathered piece by piece, and the call can end meanwhile', async () => {
  const values: object[] = Array.from({ length: 500_000 }, () => ({ a: 'x' }))
  let isRead = false
  values.push({
    get last() {
      isRead = true
      return SECRET
    },
  })
  const signal = new AbortController().signal
  const searched = largeCarriesSecret(values, matcher, signal)
  expect(isRead).toBe(false)
  expect(await searched).toBe(true)
  await expect(largeCarriesSecret(values, matcher, AbortSignal.abort('over'))).rejects.toBe('over')
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

describe('decision 11 levels of escapes', () => {
  /** Five characters make one more level. */
  const chain = (levels: number) => `\\${'u005c'.repeat(levels - 1)}u002d`
  const signal = new AbortController().signal

  /** What a search of a text cost. */
  function counted(text: string) {
    const cost = { levels: 0, bytes: 0, hit: false }
    cost.hit = carriesSecret(text, {
      matchesBytes: (bytes) => {
        cost.levels += 1
        cost.bytes += bytes.length
        return false
      },
    })
    return cost
  }

  it.each([
    ['a chain', chain(50_000)],
    ['many chains', `${chain(60)} `.repeat(1000)],
    ['a run of backslashes', '\\'.repeat(1 << 20)],
  ])('%s costs a bounded number of searches, and what is deeper counts as a hit', async (_, text) => {
    const { levels, bytes, hit } = counted(text)
    expect(hit).toBe(true)
    expect(levels).toBe(MOST_LEVELS + 1)
    expect(bytes).toBeLessThanOrEqual(text.length * (MOST_LEVELS + 1))
    expect(bytesCarry(Buffer.from(text), matcher)).toBe(true)
    expect(await largeBytesCarry(Buffer.from(text), matcher, signal)).toBe(true)
    expect(await largeCarriesSecret([text], matcher, signal)).toBe(true)
  })

  it('all levels up to the bound are searched', async () => {
    expect(counted(chain(MOST_LEVELS)).hit).toBe(false)
    expect(counted(chain(MOST_LEVELS + 1)).hit).toBe(true)
    for (let levels = 1; levels <= MOST_LEVELS; levels += 1) {
      const text = SECRET.replace('-', chain(levels))
      expect(carriesSecret(text, matcher)).toBe(true)
      expect(await largeCarriesSecret(`${' '.repeat(1 << 17)}${text}`, matcher, signal)).toBe(true)
    }
  })

  it('runs of backslashes as people draw them are no hit', async () => {
    const text = `${'\\'.repeat(10_000)} ${'_/\\\\\\'.repeat(1000)}`
    expect(carriesSecret({ text }, matcher)).toBe(false)
    expect(await largeCarriesSecret({ text: text.repeat(4) }, matcher, signal)).toBe(false)
  })

  it('with nothing to look for nothing is searched', async () => {
    const nothing = {
      empty: true,
      matchesBytes: () => {
        throw new TypeError('searched')
      },
    }
    expect(carriesSecret(chain(1000), nothing)).toBe(false)
    expect(await largeCarriesSecret(chain(1000), nothing, signal)).toBe(false)
    expect(bytesCarry(Buffer.from(chain(1000)), nothing)).toBe(false)
    expect(await largeBytesCarry(Buffer.from(chain(1000)), nothing, signal)).toBe(false)
  })

  it('the text that is searched is not changed', () => {
    const bytes = Buffer.from(chain(5))
    expect(bytesCarry(bytes, matcher)).toBe(false)
    expect(bytes.toString()).toBe(chain(5))
  })
})

describe('SB-28 numbers', () => {
  const digits = { matchesBytes: (bytes: Uint8Array) => Buffer.from(bytes).includes('1234567890123456') }
  it('a key of digits only is found in a number', async () => {
    for (const text of [
      '{"id":1234567890123456}',
      '[-1234567890123456]',
      '1.234567890123456e15',
      '{"1234567890123456":0}',
    ]) {
      expect(carriesSecret(JSON.parse(text), digits)).toBe(true)
      expect(await largeCarriesSecret(JSON.parse(text), digits, new AbortController().signal)).toBe(true)
    }
    expect(carriesSecret([12345678, 90123456, '12345678', '90123456'], digits)).toBe(false)
  })

  it('also one beyond 2^53, of which a reader leaves all but the last digits', () => {
    const token = '12345678901234567890'
    const matcher = createSecretMatcher([new Secret({ token, origin: 'https://api.example' })])
    for (const text of [`{"id":${token}}`, `[1.2345678901234567e19]`, `{"a":{"b":-${token}}}`]) {
      expect(carriesSecret(JSON.parse(text), matcher), text).toBe(true)
      expect(bytesCarry(Buffer.from(text), matcher), text).toBe(true)
    }
    expect(carriesSecret([123456789012345, 67890], matcher)).toBe(false)
  })
})
