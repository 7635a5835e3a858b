import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { tempDir } from '@sandbox/testing'
import { expect, test } from 'vitest'
import { costOf, readPrices } from './prices.ts'

function listOf(text: string) {
  using dir = tempDir()
  const path = join(dir.path, 'prices.json')
  writeFileSync(path, text)
  return readPrices(path)
}

test('no list means that no price is known', () => {
  expect(readPrices('/nowhere/prices.json')).toEqual({ currency: 'USD', models: {} })
})

test('a price is per million tokens', () => {
  const prices = listOf('{ "currency": "EUR", "models": { "m": { "input": 3, "output": 15 } } }')
  expect(prices.currency).toBe('EUR')
  expect(costOf(prices, 'm', { input: 1_000, output: 2_000 })).toBeCloseTo(0.033)
  expect(costOf(prices, 'other', { input: 1, output: 1 })).toBeNull()
  expect(costOf(prices, 'toString', { input: 1, output: 1 })).toBeNull()
  expect(costOf(prices, undefined, { input: 1, output: 1 })).toBeNull()
})

test.each([
  ['{', 'is no JSON'],
  ['[]', 'has no object "models"'],
  [
    '{ "models": { "m": { "input": -1, "output": 1 } } }',
    'needs the numbers "input" and "output" for the model "m"',
  ],
  ['{ "models": { "m": { "input": 1 } } }', 'for the model "m"'],
  ['{ "currency": "<b>", "models": {} }', 'names a "currency"'],
])('%s is refused with what is wrong', (text, problem) => {
  expect(() => listOf(text)).toThrow(problem)
})
