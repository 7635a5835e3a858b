import { encodingsOf, findSecret } from '@sandbox/testing'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { createSecretMatcher, Secret } from './index.ts'
import { secretPatterns } from './secret-patterns.ts'

const origin = 'https://api.example.com'
const token = 'sk-canary-0123456789+/=&"<e>\'~!*() x'
const secret = new Secret({ token, origin })
const matcher = createSecretMatcher([secret])
const specials = `+/=&"<>'~!*() %\\.,;:?@#$^{}[]|\`_-`

const base64 = (text: string) => Buffer.from(text, 'latin1').toString('base64')
const url = (text: string) => text.replaceAll('+', '-').replaceAll('/', '_')
const each = (make: (code: number) => string) => [...token].map((c) => make(c.charCodeAt(0))).join('')
const hex = (code: number) => code.toString(16).padStart(2, '0')
const percent = (char: string) => `%${hex(char.charCodeAt(0)).toUpperCase()}`
const named = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;' } as Record<string, string>

/** The encodings of another hand; base64 as it is inside longer data, since only there its edges are right. */
function formsOf(plain: string, lead = 'le', tail = 't'): [name: string, form: Buffer][] {
  const others = [...encodingsOf(plain)].filter(([name]) => !name.startsWith('base64'))
  const embedded = [lead, `${lead}-`, `${lead}--`].flatMap((before): [string, Buffer][] => [
    [`base64 after ${before.length}`, Buffer.from(base64(before + plain + tail))],
    [`base64url after ${before.length}`, Buffer.from(url(base64(before + plain + tail)))],
  ])
  return [...others, ...embedded]
}

describe('encodings', () => {
  test.each<[string, string]>([
    ['raw', token],
    ['percent', encodeURIComponent(token)],
    ['percent, lower case', encodeURIComponent(token).replace(/%../g, (c) => c.toLowerCase())],
    ['percent as Python writes a path', encodeURI(token).replace(/[^A-Za-z0-9%_.~/-]/g, percent)],
    [
      'percent as Python writes a form',
      encodeURIComponent(token)
        .replace(/[!'()*]/g, percent)
        .replaceAll('%20', '+'),
    ],
    ['percent as URLSearchParams writes it', new URLSearchParams({ k: token }).toString().slice(2)],
    ['percent of every character', each((c) => `%${hex(c).toUpperCase()}`)],
    ['percent of every character, lower case', each((c) => `%${hex(c)}`)],
    ['a URI', encodeURI(token)],
    ['hex', each(hex)],
    ['hex, upper case', each(hex).toUpperCase()],
    ['JSON', JSON.stringify(token)],
    ['JSON with escaped slashes', JSON.stringify(token).replaceAll('/', '\\/')],
    [
      'JSON that is safe in HTML',
      JSON.stringify(token).replace(/[<>&]/g, (c) => `\\u00${hex(c.charCodeAt(0))}`),
    ],
    ['JSON, every character escaped', each((c) => `\\u00${hex(c)}`)],
    ['JSON, every character escaped, upper case', each((c) => `\\u00${hex(c).toUpperCase()}`)],
    ['JSON, a dash escaped (W-17)', token.replace(/[^0-9A-Za-z]/g, (c) => `\\u00${hex(c.charCodeAt(0))}`)],
    ['HTML', token.replace(/[&<>"']/g, (c) => named[c] ?? '&#39;')],
    ['HTML text', token.replace(/[&<>]/g, (c) => named[c] ?? c)],
    ['HTML with bare apostrophes', token.replace(/[&<>"]/g, (c) => named[c] ?? c)],
    [
      'HTML as Go writes it',
      token.replace(/[&<>"']/g, (c) => ({ '"': '&#34;', "'": '&#39;' })[c] ?? named[c] ?? c),
    ],
    ['HTML with &apos;', token.replace(/[&<>"']/g, (c) => named[c] ?? '&apos;')],
    ['HTML with &#x27;', token.replace(/[&<>"']/g, (c) => named[c] ?? '&#x27;')],
    ['HTML, decimal', each((c) => `&#${c};`)],
    ['HTML, hex', each((c) => `&#x${hex(c)};`)],
    ['HTML, hex, upper case', each((c) => `&#x${hex(c).toUpperCase()};`)],
    ['base64 of a header', base64(`Bearer ${token}`)],
    ['base64 of basic credentials', base64(`user:${token}`)],
    ['base64url inside JSON', url(base64(`{"key":"${token}","more":1}`))],
    ['base64 at alignment 0', base64(`${token}tail`)],
    ['base64 at alignment 1', base64(`x${token}t`)],
    ['base64 at alignment 2', base64(`xx${token}ta`)],
    ['base64 of nothing else', base64(token)],
  ])('W-19 W-20 SB-28 %s', (_what, text) => {
    expect(matcher.matches(text)).toBe(true)
    expect(matcher.matches(`before ${text} after`)).toBe(true)
    expect(matcher.matchesBytes(Buffer.from(`before ${text} after`))).toBe(true)
  })

  test('W-20 UTF-16, both byte orders', () => {
    const little = Buffer.from(`before ${token} after`, 'utf16le')
    expect(matcher.matchesBytes(little)).toBe(true)
    expect(matcher.matchesBytes(Buffer.from(little).swap16())).toBe(true)
    expect(matcher.matchesBytes(Buffer.from(token, 'utf16le'))).toBe(true)
    expect(matcher.matchesBytes(Buffer.from(token, 'utf16le').swap16())).toBe(true)
  })

  test('W-20 all that an encoder list written by somebody else finds', () => {
    for (const [name, form] of formsOf(token))
      expect([name, matcher.matchesBytes(form)]).toEqual([name, true])
  })

  test('W-19 unstable edges of base64 are not part of a pattern', () => {
    const forms = secretPatterns('abcdefgh').filter(({ encoding }) => encoding.startsWith('base64+'))
    expect(forms.map(({ bytes }) => bytes.toString())).toEqual(['YWJjZGVmZ2', 'FiY2RlZmdo', 'hYmNkZWZna'])
  })

  test('SB-28 a token of digits alone, as readers of JSON round it', () => {
    for (const digits of ['12345678901234567890', '90071992547409931', '9876543210'.repeat(4)]) {
      const { matches } = createSecretMatcher([new Secret({ token: digits, origin })])
      const rounded = JSON.parse(digits) as number
      const exponent = rounded.toExponential()
      const forms = [digits, String(rounded), exponent, exponent.toUpperCase(), exponent.replace('+', '')]
      for (const form of forms) expect(matches(`{"n":${form}}`), `${digits} as ${form}`).toBe(true)
      expect(matches(`{"n":${rounded / 7}}`), digits).toBe(false)
    }
    // What a reader gives back whole needs no other form, what it cannot hold has none, and short ones say nothing.
    for (const digits of [
      '9007199254740991',
      '0123456789012345678901',
      '9'.repeat(400),
      `1${'0'.repeat(30)}7`,
    ]) {
      expect(secretPatterns(digits).filter(({ encoding }) => encoding.startsWith('number'))).toEqual([])
    }
  })

  test('no form is listed twice', () => {
    for (const plain of ['abcdefgh01234567', token]) {
      const forms = secretPatterns(plain).map(({ bytes }) => bytes.toString('latin1'))
      expect(new Set(forms).size).toBe(forms.length)
    }
  })

  test('W-23 no form of the shortest credential is short enough to turn up by chance', () => {
    for (const plain of ['abcdefgh', 'a/+=&"<>']) {
      expect(Math.min(...secretPatterns(plain).map(({ bytes }) => bytes.length))).toBeGreaterThanOrEqual(8)
    }
  })
})

describe('createSecretMatcher', () => {
  test('what is no secret does not match', () => {
    for (const text of ['', 'sk-canary', token.slice(1), token.slice(0, -1), 'x'.repeat(100_000)]) {
      expect(matcher.matches(text)).toBe(false)
      expect(matcher.matchesBytes(Buffer.from(text))).toBe(false)
    }
  })

  test('text of any length and script', () => {
    for (const lead of ['é'.repeat(10), '𝒳'.repeat(40_000), 'x'.repeat(1_000_000)]) {
      expect(matcher.matches(lead + token)).toBe(true)
      expect(matcher.matches(lead)).toBe(false)
    }
    // Each of these characters ends in the byte of the token's character.
    expect(
      matcher.matches([...token].map((c) => String.fromCharCode(c.charCodeAt(0) + 0x100)).join('')),
    ).toBe(false)
  })

  test('W-22 every secret of a set is found, and no secret that is not in it', () => {
    const secrets = Array.from(
      { length: 64 },
      (_, i) => new Secret({ token: `sk-number-${i}-${'z'.repeat(i)}`, origin }),
    )
    const all = createSecretMatcher(secrets)
    for (let i = 0; i < 64; i++) expect(all.matches(`x sk-number-${i}-${'z'.repeat(i)} x`)).toBe(true)
    expect(all.matches('sk-number-64-')).toBe(false)
    expect(createSecretMatcher(secrets.slice(1)).matches('sk-number-0-')).toBe(false)
  })

  test('without secrets nothing matches and a stream passes all', () => {
    const none = createSecretMatcher([])
    expect([none.empty, matcher.empty]).toEqual([true, false])
    expect(none.matches(token)).toBe(false)
    const stream = none.stream()
    expect(Buffer.from(stream.push(Buffer.from(token))).toString()).toBe(token)
    expect(stream.end().length).toBe(0)
  })

  test('a set is a set: order and doubles do not count, and many sets do not mix', () => {
    const make = (name: string) => new Secret({ token: `sk-${name}-12345678`, origin })
    for (let i = 0; i < 40; i++) {
      const pair = createSecretMatcher([make(`b${i}`), make(`a${i}`), make(`b${i}`)])
      expect(pair.matches(`sk-a${i}-12345678`)).toBe(true)
      expect(pair.matches(`sk-b${i}-12345678`)).toBe(true)
      expect(pair.matches(`sk-a${i + 1}-12345678`)).toBe(false)
    }
  })
})

describe('streams', () => {
  const wire = Buffer.from(`data: {"text":"${token}"}\n\n`)

  test('W-15 W-16 plain text is passed on at once and whole', () => {
    const stream = matcher.stream()
    const chunk = Buffer.from('event: ping\ndata: {}\n\n')
    expect(Buffer.from(stream.push(chunk))).toEqual(chunk)
    expect(stream.held).toBe(0)
  })

  test('T35 a secret in 2, 3 or 17 pieces is stopped before its first byte', () => {
    for (const pieces of [2, 3, 17, wire.length]) {
      const stream = matcher.stream()
      let passed = ''
      const size = Math.ceil(wire.length / pieces)
      for (let at = 0; at < wire.length; at += size) {
        passed += Buffer.from(stream.push(wire.subarray(at, at + size))).toString()
      }
      passed += Buffer.from(stream.end()).toString()
      expect(stream.hit).toBe(true)
      expect('data: {"text":"'.startsWith(passed)).toBe(true)
    }
  })

  test('W-24 after a hit nothing passes any more', () => {
    const stream = matcher.stream()
    stream.push(wire)
    expect(stream.push(Buffer.from('more')).length).toBe(0)
    expect([stream.hit, stream.held, stream.end().length]).toEqual([true, 0, 0])
  })

  test('decision 18: with holdFromBytes, short endings pass and a secret after them is still found', () => {
    const stream = matcher.stream({ holdFromBytes: 8 })
    expect(Buffer.from(stream.push(Buffer.from(`a ${token.slice(0, 7)}`))).toString()).toBe(
      `a ${token.slice(0, 7)}`,
    )
    expect(stream.push(Buffer.from(token.slice(7, 8))).length).toBe(0)
    expect(stream.held).toBe(1)
    expect(stream.push(Buffer.from(token.slice(8))).length).toBe(0)
    expect(stream.hit).toBe(true)
  })

  test('an ending that was no secret after all is passed on in order', () => {
    const stream = matcher.stream()
    const text = `${token.slice(0, 20)}${token.slice(0, 20)}-other`
    const out = [...text].map((c) => Buffer.from(stream.push(Buffer.from(c))).toString()).join('')
    expect(out + Buffer.from(stream.end()).toString()).toBe(text)
    expect(stream.hit).toBe(false)
  })

  test('a bad holdFromBytes is a caller’s mistake', () => {
    for (const holdFromBytes of [0, 1.5, Number.NaN]) {
      expect(() => matcher.stream({ holdFromBytes })).toThrow(TypeError)
    }
  })

  const secrets = fc
    .string({
      unit: fc.constantFrom(...'abcXYZ0189', ...specials),
      minLength: 8,
      maxLength: 40,
    })
    .filter((text) => text.trim().length >= 8)
  const plan = fc.record({
    secret: secrets,
    lead: fc.string({ maxLength: 20 }),
    tail: fc.string({ maxLength: 20 }),
    cuts: fc.array(fc.nat(200), { minLength: 24, maxLength: 24 }),
  })

  test('W-15 W-16 W-19 W-20 property, 40,000 cases: any secret, in any encoding, cut anywhere', () => {
    let cases = 0
    fc.assert(
      fc.property(plan, ({ secret: raw, lead, tail, cuts }) => {
        const plain = raw.trim()
        const own = createSecretMatcher([new Secret({ token: plain, origin })])
        for (const [name, form] of formsOf(plain, lead, tail)) {
          const data = Buffer.concat([Buffer.from(lead), form, Buffer.from(tail)])
          const stream = own.stream()
          const passed: Uint8Array[] = []
          let from = 0
          for (const to of [...cuts, data.length].sort((a, b) => a - b)) {
            if (to > data.length) continue
            passed.push(stream.push(data.subarray(from, to)))
            from = Math.max(from, to)
          }
          passed.push(stream.end())
          expect([plain, name, stream.hit]).toEqual([plain, name, true])
          expect(findSecret(Buffer.concat(passed), plain)).toEqual([])
          cases += 1
        }
      }),
      { numRuns: 2_700 },
    )
    expect(cases).toBeGreaterThan(40_000)
  })
})
