import { describe, expect, it } from 'vitest'
import { token } from '../json/json-reader.ts'
import { compiledObject, compiledRule } from './compiled-table.ts'
import { schemaRule } from './schema-table.ts'
import { listOf, objectOf, text } from './table-parts.ts'

describe('compiled tables', () => {
  it('decision 11 a rule is compiled once, and one that leads back to itself ends', () => {
    const compiled = compiledObject(schemaRule)
    expect(compiledObject(schemaRule)).toBe(compiled)
    const inner = compiled.object?.names.get('items')?.rule
    const items = inner?.object?.names.get('items')?.rule
    expect(items?.object === inner?.object).toBe(true)
    expect(items?.array?.items.object === inner?.object).toBe(true)
  })

  it('decision 11 every rule has one shape, so that none is slower to read than the others', () => {
    const rules = [
      'keep',
      'drop',
      { set: 'model' },
      { string: true },
      listOf('keep', 3),
      objectOf({}),
    ] as const
    const shapes = rules.map((rule) => Object.keys(compiledRule(rule)).join())
    expect(new Set(shapes).size).toBe(1)
  })

  it.each([
    ['any', { string: true } as const, Number.MAX_SAFE_INTEGER],
    ['bounded', text(32), 32],
    ['none', { number: true } as const, -1],
    ['by pattern', { string: { maxBytes: 32, pattern: /^a$/ } }, -1],
    ['by list', { string: { oneOf: ['a'] } }, -1],
    ['by start', { string: { start: /^data:/ } }, -1],
    ['by owner', { string: { owned: true } } as const, -1],
  ])('MI-01 strings pass unseen only when nothing but their length matters: %s', (_what, rule, bytes) => {
    expect(compiledRule(rule).stringBytes).toBe(bytes)
  })

  it('MI-01 scalars pass unseen only when any of their kind does', () => {
    const passes = (rule: Parameters<typeof compiledRule>[0]) =>
      [token.null, token.true, token.false, token.number, token.string].filter(
        (kind) => (compiledRule(rule).passes >> kind) & 1,
      )
    expect(passes({ null: true })).toEqual([token.null])
    expect(passes({ boolean: true, number: true })).toEqual([token.true, token.false, token.number])
    expect(passes({ boolean: [false], number: { min: 1 }, string: true })).toEqual([])
    expect(passes('drop')).toEqual([])
  })
})
