import { describe, expect, it } from 'vitest'
import { localSchema, schemaProblem } from './tool-schema.ts'

const REMOTE = 'https://schemas.example/evil.json'

function nested(levels: number, wrap: (inner: unknown) => unknown, leaf: unknown): unknown {
  let value = leaf
  for (let level = 0; level < levels; level += 1) value = wrap(value)
  return value
}

describe('references', () => {
  it.each(['$ref', '$dynamicRef', '$recursiveRef'])(
    'MI-08 a remote %s is refused, a local one passes',
    (name) => {
      expect(schemaProblem({ [name]: REMOTE })).toMatch(name)
      expect(schemaProblem({ [name]: 'other.json#/a' })).toMatch(name)
      expect(schemaProblem({ [name]: 7 })).toMatch(name)
      expect(schemaProblem({ [name]: null })).toMatch(name)
      expect(schemaProblem({ [name]: '#' })).toBeUndefined()
    },
  )

  it.each(['$schema', '$id'])('MI-08 %s must be a string', (name) => {
    expect(schemaProblem({ [name]: { a: 1 } })).toMatch(name)
    expect(schemaProblem({ [name]: '#here' })).toBeUndefined()
  })

  it('MI-09 $vocabulary has local keys only', () => {
    expect(schemaProblem({ $vocabulary: { '#a': true } })).toBeUndefined()
    expect(schemaProblem({ $vocabulary: { [REMOTE]: true } })).toMatch('$vocabulary')
    expect(schemaProblem({ $vocabulary: [] })).toMatch('$vocabulary')
    expect(schemaProblem({ $vocabulary: null })).toMatch('$vocabulary')
  })
})

describe('MI-10 the check reaches every schema position', () => {
  const bad = { $ref: REMOTE }
  const maps = ['properties', 'patternProperties', '$defs', 'definitions', 'dependentSchemas', 'dependencies']
  const lists = ['allOf', 'anyOf', 'oneOf', 'prefixItems']
  const either = [
    'items',
    'contains',
    'additionalProperties',
    'unevaluatedProperties',
    'unevaluatedItems',
    'propertyNames',
    'not',
    'if',
    'then',
    'else',
    'contentSchema',
    'additionalItems',
  ]

  it.each(maps)('map %s', (key) => {
    expect(schemaProblem({ [key]: { a: true, b: { [key]: { c: bad } } } })).toMatch('$ref')
    expect(schemaProblem({ [key]: { a: { type: 'string' } } })).toBeUndefined()
    expect(schemaProblem({ [key]: [bad] })).toMatch(key)
    expect(schemaProblem({ [key]: null })).toMatch(key)
  })

  it.each(lists)('list %s', (key) => {
    expect(schemaProblem({ [key]: [true, { [key]: [bad] }] })).toMatch('$ref')
    expect(schemaProblem({ [key]: [{ type: 'string' }] })).toBeUndefined()
    expect(schemaProblem({ [key]: bad })).toMatch(key)
  })

  it.each(either)('single or list %s', (key) => {
    expect(schemaProblem({ [key]: { [key]: bad } })).toMatch('$ref')
    expect(schemaProblem({ [key]: [true, bad] })).toMatch('$ref')
    expect(schemaProblem({ [key]: false })).toBeUndefined()
  })

  it('dependencies: lists of names pass, schemas are checked', () => {
    expect(schemaProblem({ dependencies: { a: ['b', 'c'] } })).toBeUndefined()
    expect(schemaProblem({ dependencies: { a: ['b'], d: bad } })).toMatch('$ref')
  })
})

describe('MI-11 names and data are no keywords', () => {
  it('a property called $ref, $id or constructor is a name', () => {
    const schema = JSON.parse(
      `{"properties":{"$ref":{"type":"string"},"$id":{"const":"${REMOTE}"},"constructor":{},"__proto__":{"type":"null"}}}`,
    )
    expect(schemaProblem(schema)).toBeUndefined()
    expect(localSchema(schema)).toEqual({ schema, dropped: [] })
  })

  it('enum, const, default and unknown keywords are data', () => {
    const data = { $ref: REMOTE, $schema: REMOTE }
    const schema = { enum: [data], const: data, default: data, examples: [data], 'x-mine': data }
    expect(schemaProblem(schema)).toBeUndefined()
    expect(localSchema(schema).schema).toBe(schema)
  })

  it('a local pointer passes, also to what is not there and with escapes', () => {
    const schema = { $defs: { 'a/b': { type: 'string' } }, $ref: '#/$defs/a~1b' }
    expect(schemaProblem(schema)).toBeUndefined()
    expect(schemaProblem({ $ref: '#/$defs/none' })).toBeUndefined()
    expect(schemaProblem({ $ref: '#/%E0%A4%A' })).toBeUndefined()
    expect(schemaProblem({ $ref: '#/constructor/prototype' })).toBeUndefined()
  })

  it('what a local pointer names is a schema, so a remote reference cannot hide in data', () => {
    const hidden = { $ref: REMOTE }
    expect(schemaProblem({ $ref: '#/const/a', const: { a: hidden } })).toMatch('$ref')
    expect(schemaProblem({ $ref: '#/enum/0', enum: [hidden] })).toMatch('$ref')
    expect(schemaProblem({ items: { $ref: '#/x-%6Dine' }, 'x-mine': { not: hidden } })).toMatch('$ref')
  })
})

it('MI-12 booleans are schemas, other values are not', () => {
  expect(schemaProblem(true)).toBeUndefined()
  for (const value of [null, 1, 'x', [], undefined]) expect(schemaProblem(value)).toBeTypeOf('string')
  expect(schemaProblem({ properties: { a: 'string' } })).toBeTypeOf('string')
  expect(schemaProblem({ anyOf: [[true]] })).toBeTypeOf('string')
})

describe('W-43 depth', () => {
  it('64 levels pass, 65 do not, in schemas and in data', () => {
    const wrap = (inner: unknown) => ({ not: inner })
    expect(schemaProblem(nested(63, wrap, {}))).toBeUndefined()
    expect(schemaProblem(nested(64, wrap, {}))).toMatch('64')
    expect(schemaProblem({ const: nested(63, (inner) => [inner], 1) })).toBeUndefined()
    expect(schemaProblem({ const: nested(64, (inner) => [inner], 1) })).toMatch('64')
  })

  it('half a million levels are refused without a stack overflow, a cycle too', () => {
    expect(schemaProblem({ const: nested(500_000, (inner) => [inner], 1) })).toMatch('64')
    const deep = nested(500_000, (inner) => ({ $schema: REMOTE, not: inner }), true)
    expect(schemaProblem(deep)).toMatch('64')
    expect(localSchema(deep).dropped).toEqual(['$schema'])
    const cycle: Record<string, unknown> = { $id: REMOTE }
    cycle.not = cycle
    expect(schemaProblem(cycle)).toMatch('64')
    expect(localSchema(cycle).dropped).toEqual(['$id'])
  })

  it('a reference to itself ends', () => {
    expect(schemaProblem({ $ref: '#', $defs: { a: { $ref: '#/$defs/a' } } })).toBeUndefined()
  })
})

it('issue 4: more objects and lists than are looked at in a few milliseconds are a problem', () => {
  const parts = (count: number) => ({ anyOf: Array.from({ length: count - 2 }, () => ({})) })
  expect(schemaProblem(parts(16_384))).toBeUndefined()
  expect(schemaProblem(parts(16_385))).toMatch('16384')
  expect(schemaProblem({ enum: Array.from({ length: 20_000 }, () => []) })).toMatch('16384')
})

describe('W-38 a dialect URL is no reason to refuse', () => {
  const schema = {
    $schema: 'http://json-schema.org/draft-07/schema#',
    $id: REMOTE,
    type: 'object',
    properties: {
      $id: { const: REMOTE },
      a: { $id: 'a.json', items: [{ $schema: REMOTE, type: 'string' }] },
    },
    $defs: { b: { $id: '#b', type: 'number' } },
    enum: [{ $schema: REMOTE, list: [1, [2]] }],
  }

  it('remote $schema and $id are taken out wherever they are keywords, the rest stays', () => {
    const before = structuredClone(schema)
    expect(schemaProblem(schema)).toBeUndefined()
    const local = localSchema(schema)
    expect(local.dropped).toEqual(['$schema', '$id'])
    expect(local.schema).toEqual({
      type: 'object',
      properties: { $id: { const: REMOTE }, a: { items: [{ type: 'string' }] } },
      $defs: { b: { $id: '#b', type: 'number' } },
      enum: [{ $schema: REMOTE, list: [1, [2]] }],
    })
    expect(Object.keys(local.schema as object)).toEqual(['type', 'properties', '$defs', 'enum'])
    expect(schema).toEqual(before)
  })

  it('a copy keeps a property called __proto__ and touches no prototype', () => {
    const text = `{"$schema":"${REMOTE}","properties":{"__proto__":{"type":"null"}}}`
    const { schema: copy } = localSchema(JSON.parse(text))
    expect(JSON.stringify(copy)).toBe('{"properties":{"__proto__":{"type":"null"}}}')
    expect(Object.getPrototypeOf((copy as { properties: object }).properties)).toBe(Object.prototype)
  })

  it('a remote reference next to it is still refused', () => {
    expect(schemaProblem({ $schema: REMOTE, properties: { a: { $ref: REMOTE } } })).toMatch('$ref')
  })
})
