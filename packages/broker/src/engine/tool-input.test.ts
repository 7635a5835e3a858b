import { Type } from 'typebox'
import { describe, expect, test } from 'vitest'
import { compileInput } from './tool-input.ts'

const PLAIN = {
  type: 'object',
  properties: {
    title: { type: 'string', minLength: 1 },
    page: { type: 'integer' },
    tags: { type: 'array', items: { $ref: '#/$defs/tag' } },
    place: { type: 'object', properties: { x: { type: 'number' } }, additionalProperties: false },
  },
  required: ['title'],
  $defs: { tag: { enum: ['a', 'b'] } },
}

describe('compileInput', () => {
  const check = compileInput(PLAIN)
  test.each<[string, Record<string, unknown>, string | undefined]>([
    ['what fits', { title: 'x', page: 1, tags: ['a'], place: { x: 1 } }, undefined],
    ['a field that nobody forbids', { title: 'x', more: 1 }, undefined],
    ['a missing field', {}, 'the input: required'],
    ['another type', { title: 1 }, '/title: type'],
    ['a number that is no whole one', { title: 'x', page: 1.5 }, '/page: type'],
    ['an item behind a reference', { title: 'x', tags: ['a', 'c'] }, '/tags/1: enum'],
    ['a forbidden field', { title: 'x', place: { y: 1 } }, '/place: additionalProperties'],
    [
      'a field of Object.prototype in place of an own one',
      JSON.parse('{"__proto__":{"title":"x"}}'),
      'the input: required',
    ],
  ])('%s', (_, input, problem) => {
    expect(check(input)).toBe(problem)
  })

  test('a typebox schema is a schema', () => {
    const typed = compileInput(
      Type.Object({ city: Type.String(), days: Type.Optional(Type.Integer({ maximum: 7 })) }),
    )
    expect(typed({ city: 'Oslo' })).toBeUndefined()
    expect(typed({ city: 'Oslo', days: 8 })).toBe('/days: maximum')
  })

  test('no value, and no name that could do harm in a log, is told', () => {
    const open = compileInput({ type: 'object', additionalProperties: { type: 'string' } })
    const problem = open({ [`a\n\u001b[31m${'x'.repeat(1000)}`]: 1 })
    expect(problem).toMatch(/^\/a\?\?\[31mx+: type$/)
    expect(problem?.length).toBeLessThan(220)
    expect(compileInput(PLAIN)({ title: 'x', page: 'sk-secret' })).not.toContain('sk-secret')
  })

  test('a schema that never ends refuses, and the host goes on', () => {
    expect(compileInput({ $ref: '#' })({})).toBe('the input: $ref')
  })

  test('a pattern that is none is known at once', () => {
    expect(() => compileInput({ type: 'object', properties: { a: { pattern: '(' } } })).toThrow(SyntaxError)
  })
})
