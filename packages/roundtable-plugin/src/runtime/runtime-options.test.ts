import type { ToolSpec } from '@sandbox/protocol'
import { expect, test } from 'vitest'
import { checkLargestTurn, resolveTurnPolicy } from './runtime-options.ts'

const plain = { model: 'm' }

test('RL-01 RL-03 defaults', () => {
  expect(resolveTurnPolicy(plain)).toEqual({
    model: 'm',
    timeZone: 'UTC',
    turnTimeoutMs: 120_000,
    workspaceBytes: 268_435_456,
    keyContact: 'the owner of this bot',
  })
})

test.each([
  ['model', { model: ' ' }],
  ['model', { model: 'm'.repeat(257) }],
  ['timeZone', { ...plain, timeZone: 'Mars/Olympus' }],
  ['timeZone', { ...plain, timeZone: '' }],
  ['turnTimeoutMs', { ...plain, turnTimeoutMs: 999 }],
  ['turnTimeoutMs', { ...plain, turnTimeoutMs: 600_001 }],
  ['turnTimeoutMs', { ...plain, turnTimeoutMs: 1000.5 }],
  ['turnTimeoutMs', { ...plain, turnTimeoutMs: Number.NaN }],
  ['prompt', { ...plain, prompt: 'x'.repeat(8 * 1024 - 1) }],
  ['keyContact', { ...plain, keyContact: ' ' }],
])('RL-01 RL-03 a wrong %s is refused by name: %j', (name, options) => {
  expect(() => resolveTurnPolicy(options)).toThrow(new RegExp(`^${name}: `))
})

test('RL-03 both ends of the timeout are allowed, and a prompt of 8 KiB as JSON', () => {
  expect(resolveTurnPolicy({ ...plain, turnTimeoutMs: 1_000 }).turnTimeoutMs).toBe(1_000)
  expect(resolveTurnPolicy({ ...plain, turnTimeoutMs: 600_000 }).turnTimeoutMs).toBe(600_000)
  expect(resolveTurnPolicy({ ...plain, prompt: 'x'.repeat(8 * 1024 - 2) }).prompt).toHaveLength(8190)
})

const tool = (bytes: number): ToolSpec => ({ name: 'a', description: 'd'.repeat(bytes), parameters: {} })

test('W-69 the largest turn fits with the largest prompt and tools, in the widest characters', () => {
  const policy = resolveTurnPolicy({ model: 'm'.repeat(256), prompt: '\u0001'.repeat(1365) })
  const tools = [...Array(4)].map(() => tool(8_000))
  expect(() => checkLargestTurn(policy, tools)).not.toThrow()
})

test('W-69 tools that a worker would not take are refused, with their size', () => {
  const tools = [...Array(5)].map(() => tool(8_000))
  expect(() => checkLargestTurn(resolveTurnPolicy(plain), tools)).toThrow(
    /described in 402\d\d bytes; 32768 are/,
  )
})
