import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { decodeString } from './decode-string.ts'
import { JsonProblem } from './json-problem.ts'
import { JsonReader, type Token, token } from './json-reader.ts'

const utf8 = (text: string) => new Uint8Array(Buffer.from(text))
const kinds = Object.fromEntries(Object.entries(token).map(([name, kind]) => [kind, name]))

interface Read {
  readonly tokens: readonly string[]
  readonly problem?: string
}

/** Every token with its place, or the problem at which reading ended. */
function read(bytes: Uint8Array, allowance = Number.POSITIVE_INFINITY): Read {
  const reader = new JsonReader(bytes)
  const tokens: string[] = []
  try {
    for (;;) {
      const found = reader.next()
      if (found === token.done) return { tokens }
      if (found === token.more) reader.allow(allowance)
      else tokens.push(`${kinds[found]} ${reader.start} ${reader.end}`)
    }
  } catch (error) {
    if (!(error instanceof JsonProblem)) throw error
    return { tokens, problem: error.message }
  }
}

function problem(text: string | Uint8Array): string | undefined {
  return read(typeof text === 'string' ? utf8(text) : text).problem
}

/** The value that a reader's tokens stand for. */
function build(bytes: Uint8Array): unknown {
  const reader = new JsonReader(bytes)
  reader.allow(bytes.length)
  const value = buildNext(reader, reader.next())
  expect(reader.next()).toBe(token.done)
  return value
}

function buildNext(reader: JsonReader, found: Token): unknown {
  const { bytes, start, end, escaped } = reader
  if (found === token.string) return decodeString(bytes, start + 1, end - 1, escaped)
  if (found >= token.number) return JSON.parse(bytes.toString('latin1', start, end))
  if (found === token.arrayStart) {
    const items: unknown[] = []
    for (let next = reader.next(); next !== token.arrayEnd; next = reader.next()) {
      items.push(buildNext(reader, next))
    }
    return items
  }
  const entries: [string, unknown][] = []
  while (reader.next() === token.key) entries.push([reader.name, buildNext(reader, reader.next())])
  return Object.fromEntries(entries)
}

/** What JSON.parse says, and whether a name is there twice: then it has fewer names than the text has colons. */
function oracle(bytes: Uint8Array): boolean {
  let text: string
  let value: unknown
  try {
    text = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes)
    value = JSON.parse(text)
  } catch {
    return false
  }
  const colons = text.replace(/"(?:[^"\\]|\\.)*"/gs, '').split(':').length - 1
  return colons === names(value)
}

function names(value: unknown): number {
  if (typeof value !== 'object' || value === null) return 0
  const below = Object.values(value).reduce((sum: number, one) => sum + names(one), 0)
  return below + (Array.isArray(value) ? 0 : Object.keys(value).length)
}

const space = fc.stringMatching(/^[ \t\r\n]{0,3}$/)
const anyString = fc.oneof(
  fc.string({ unit: 'binary' }),
  fc.string({ unit: 'grapheme' }),
  fc.string({ unit: fc.constantFrom('"', '\\', '\n', '\u0000', '\u007f', 'é', '😀', '\ud800', 'a') }),
)
/** A string as some client may write it: as JSON.stringify does, or every unit as an escape. */
const stringText = fc.tuple(anyString, fc.boolean()).map(([text, escapes]) =>
  escapes
    ? `"${[...text]
        .flatMap((c) => c.split(''))
        .map((unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`)
        .join('')}"`
    : JSON.stringify(text),
)
const numberText = fc.oneof(
  fc.double({ noNaN: true, noDefaultInfinity: true }).map((value) => JSON.stringify(value)),
  fc.constantFrom('0', '-0', '12345678901234567890', '1E5', '1e+5', '0.10', '-1.5e-3'),
)
const jsonText = fc.letrec<{ value: string; list: string; map: string }>((tie) => ({
  value: fc.oneof(
    { maxDepth: 4, withCrossShrink: true },
    fc.oneof(stringText, numberText, fc.constantFrom('true', 'false', 'null')),
    tie('list'),
    tie('map'),
  ),
  list: fc
    .tuple(fc.array(tie('value'), { maxLength: 4 }), space)
    .map(([items, gap]) => `[${gap}${items.join(`${gap},`)}${gap}]`),
  map: fc
    .tuple(fc.array(fc.tuple(stringText, tie('value')), { maxLength: 4 }), space)
    .map(
      ([fields, gap]) => `{${gap}${fields.map(([k, v]) => `${k}${gap}:${gap}${v}`).join(`,${gap}`)}${gap}}`,
    ),
})).value

/** A text that is almost JSON: some of its bytes changed, cut or added. */
const almostJson = fc
  .tuple(
    jsonText,
    fc.array(
      fc.record({
        at: fc.nat(),
        cut: fc.integer({ min: 0, max: 2 }),
        put: fc.array(
          fc.constantFrom(
            ...Buffer.from('"\\{}[]:,0-+.eEu1tfn/ \n\t'),
            0,
            0x1f,
            0x7f,
            0x80,
            0xc3,
            0xed,
            0xef,
            0xff,
          ),
          { maxLength: 2 },
        ),
      }),
      { maxLength: 3 },
    ),
  )
  .map(([text, changes]) => {
    const bytes = [...Buffer.from(text)]
    for (const { at, cut, put } of changes) bytes.splice(at % (bytes.length + 1), cut, ...put)
    return Uint8Array.from(bytes)
  })

describe('JsonReader', () => {
  it('decision 11 property, 2,000 texts: its tokens stand for what JSON.parse makes of the text', () => {
    fc.assert(
      fc.property(jsonText, (text) => {
        fc.pre(oracle(utf8(text)))
        expect(build(utf8(text))).toEqual(JSON.parse(Buffer.from(text).toString()))
      }),
      { numRuns: 2000 },
    )
  })

  it('decision 11 property, 8,000 damaged texts: it accepts exactly what JSON.parse accepts, twice-used names aside', () => {
    let refused = 0
    fc.assert(
      fc.property(almostJson, (bytes) => {
        const found = problem(bytes)
        if (found !== undefined) refused++
        expect({ found, ok: found === undefined }).toEqual({ found, ok: oracle(bytes) })
      }),
      { numRuns: 8000 },
    )
    expect(refused).toBeGreaterThan(800)
    expect(refused).toBeLessThan(7600)
  })

  it('decision 11 property: in pieces of any size it reads the same', () => {
    fc.assert(
      fc.property(almostJson, fc.integer({ min: 1, max: 9 }), (bytes, allowance) => {
        const whole = read(bytes)
        const pieces = read(bytes, allowance)
        // Invalid UTF-8 is found before anything of its piece is read.
        if (whole.problem === 'the text is not UTF-8') expect(pieces.problem).toBeDefined()
        else expect(pieces).toEqual(whole)
      }),
      { numRuns: 2000 },
    )
  })

  it('a string ends where it ends: every length, alignment, and stray bytes around it', () => {
    for (const special of ['', '\\n', '\\"', '\\\\', '\\u0041', '\u0001']) {
      for (let length = 0; length < 600; length += length < 40 ? 1 : 37) {
        for (let shift = 0; shift < 8; shift++) {
          for (const place of [0, length >> 1, length]) {
            const body = `"${'a'.repeat(place)}${special}${'é'.repeat(length - place)}"`
            const around = Buffer.from(`${'"\\\u0001"\\\u0001\\"'.slice(0, shift)}${body}\\"\u0001\\"\u0001"`)
            const size = Buffer.byteLength(body)
            const found = read(around.subarray(shift, shift + size))
            if (special === '\u0001') expect(found.problem).toBe('a string has a control character')
            else expect(found).toEqual({ tokens: [`string 0 ${size}`] })
          }
        }
      }
    }
  })

  it('decision 11 a name may be there once per object, however it is written', () => {
    expect(problem('{"a":1,"a":2}')).toBe('a field is there twice')
    expect(problem('{"a":1,"\\u0061":2}')).toBe('a field is there twice')
    expect(problem('{"__proto__":1,"__proto__":2}')).toBe('a field is there twice')
    expect(problem('{"\\ud800":1,"\\uD800":2}')).toBe('a field is there twice')
    expect(problem('{"a":{"a":1},"b":[{"a":1},{"a":1}]}')).toBeUndefined()
    // Node reads raw bytes and escapes alike; é is not the two signs that its bytes are in Latin-1.
    expect(problem('{"é":1,"\\u00e9":2}')).toBe('a field is there twice')
    expect(problem('{"é":1,"\\u00c3\\u00a9":2}')).toBeUndefined()
  })

  it('decision 11 many names: the set behind them finds every repetition, also of the first ones', () => {
    const many = (extra: string) =>
      `{${[...Array.from({ length: 100 }, (_, i) => `"name${i}"`), extra].map((name) => `${name}:0`).join()}}`
    expect(problem(many('"other"'))).toBeUndefined()
    for (const i of [0, 1, 15, 16, 17, 99]) expect(problem(many(`"name${i}"`))).toBe('a field is there twice')
  })

  it('W-43 64 levels pass, one more does not, and a million do no harm', () => {
    const nested = (depth: number) => `${'['.repeat(depth)}${']'.repeat(depth)}`
    expect(problem(nested(64))).toBeUndefined()
    expect(problem(nested(65))).toBe('the JSON is nested deeper than 64 levels')
    expect(problem('['.repeat(1_000_000))).toBe('the JSON is nested deeper than 64 levels')
    expect(problem('{"a":'.repeat(65))).toBe('the JSON is nested deeper than 64 levels')
  })

  it('at most 65,536 names are open at a time', () => {
    const object = (names: number) => `{${Array.from({ length: names }, (_, i) => `"${i}":0`).join()}}`
    expect(problem(`[${object(40_000)},${object(40_000)}]`)).toBeUndefined()
    expect(problem(object(65_537))).toBe('there are too many fields')
  })

  it.each([
    ['', 'the JSON text ends too early'],
    ['{"a":1', 'the JSON text ends too early'],
    ['[1,]', 'a value is not JSON'],
    ['{"a":1,}', 'a field has no name in quotes'],
    ['{a:1}', 'a field has no name in quotes'],
    ['{"a" 1}', 'a field has no colon'],
    ['[1 2]', 'a comma or a closing bracket is missing'],
    ['[1}', 'a comma or a closing bracket is missing'],
    ['1 2', 'something follows the JSON text'],
    ['01', 'something follows the JSON text'],
    ['+1', 'a value is not JSON'],
    ['1.', 'a number is not written as JSON'],
    ['NaN', 'a value is not JSON'],
    ['"\t"', 'a string has a control character'],
    ['"\\x"', 'a string has an invalid escape'],
    ['"\\u12g4"', 'a string has an invalid escape'],
    ['"abc', 'a string has no end'],
    ['\ufeff{}', 'a value is not JSON'],
    ['\u00a0{}', 'a value is not JSON'],
    ['\u000b{}', 'a value is not JSON'],
    ['[\u000c]', 'a value is not JSON'],
    ['{}\u0000', 'something follows the JSON text'],
  ])('RFC 8259 %j: %s', (text, wanted) => {
    expect(problem(text)).toBe(wanted)
  })

  it.each([
    ['an overlong form', [0x22, 0xc0, 0xaf, 0x22]],
    ['a surrogate', [0x22, 0xed, 0xa0, 0x80, 0x22]],
    ['half a character', [0x22, 0xe2, 0x82, 0x22]],
    ['a stray byte', [0x22, 0x80, 0x22]],
  ])('UTF-8: %s is refused', (_, bytes) => {
    expect(problem(Uint8Array.from(bytes))).toBe('the text is not UTF-8')
    for (let allowance = 1; allowance < 6; allowance++) {
      expect(read(Uint8Array.from(bytes), allowance).problem).toBe('the text is not UTF-8')
    }
  })

  it('issue 4: a name or a number that would be worked on for long is refused, and not read to its end', () => {
    const name = (size: number) => `{"${'x'.repeat(size)}":1}`
    expect(problem(name(65_535))).toBeUndefined()
    expect(problem(name(65_536))).toBe('a name is too long')
    expect(problem(`{"${'\\u0061'.repeat(11_000)}":1}`)).toBe('a name is too long')
    const digits = (count: number) => '1'.repeat(count)
    for (const text of [digits(65_536), `-${digits(65_536)}.${digits(65_536)}e+${digits(65_536)}`]) {
      expect(problem(text)).toBeUndefined()
    }
    for (const text of [digits(65_537), `[0.${digits(65_537)}]`, `1e${digits(65_537)}`]) {
      expect(problem(text)).toBe('a number is too long')
    }
    // What follows was not looked at.
    expect(problem(`${name(1 << 20).slice(0, -4)}`)).toBe('a name is too long')
    expect(problem(`${digits(1 << 20)}x`)).toBe('a number is too long')
  })

  it('T22 characters that are cut by a piece are whole', () => {
    const bytes = utf8(`["${'日本😀é'.repeat(50)}"]`)
    for (let allowance = 1; allowance < 20; allowance++) expect(read(bytes, allowance)).toEqual(read(bytes))
  })
})

describe('what fuzzing found', () => {
  it('T45 a name of one character that is written as an escape is read as written, where the parser of Node 24.21 reads a backslash', () => {
    const text = String.raw`{"input":[{"r\u006fle":"us\u0065r","conve\u0072s\u0061tion":{"http\u0073\u003a//x.ex\u0061mple\u002fY":null,"\u002d ":{"":{"":-1.5e-3,"\\":"https://x.e\u0078ampl\u0065/","\u0023\r\u002f":9007199254740992},"\u0062":[9007199254740992]}}}]}`
    const value = build(utf8(text)) as { input: { conversation: Record<string, object> }[] }
    expect(Object.keys(value.input[0]?.conversation['- '] ?? {})).toEqual(['', 'b'])
  })
})
