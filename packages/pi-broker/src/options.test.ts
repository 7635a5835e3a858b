import { BodyBudget } from '@sandbox/broker/engine'
import { describe, expect, test } from 'vitest'
import {
  checkPiBrokerOptions,
  PiSandboxBroker,
  type PiSandboxBrokerOptions,
  safeFileName,
  validateImages,
  validateReplyFiles,
} from './index.ts'
import { resolvePiOptions } from './options.ts'

const GOOD: PiSandboxBrokerOptions = {
  model: 'claude-sonnet-5-5',
  oauthToken: () => 'sk-ant-oat01-0123456789',
}
const TOOL = { name: 'clock', description: '', parameters: { type: 'object' }, execute: () => ({ ok: true }) }
const COMPACTION = { engine: 'own', compact: () => undefined }
const server = (name: string) => ({ name, tools: ['a'], open: () => ({}) }) as never

test('CS-17 good options pass, and no token is asked for', () => {
  let asked = 0
  checkPiBrokerOptions({
    ...GOOD,
    oauthToken: () => {
      asked += 1
      return undefined
    },
  })
  expect(asked).toBe(0)
})

test('PB-01 PB-03 CP-01 what is left out', () => {
  const { upstream, ...rest } = resolvePiOptions({ ...GOOD, compaction: COMPACTION })
  expect(upstream.home.base.href).toBe('https://api.anthropic.com/')
  expect(rest).toMatchObject({
    maxCalls: 128,
    maxParallelCalls: 4,
    maxQueuedCalls: 4,
    maxOutputTokens: 128_000,
    idleMs: 120_000,
    compaction: { timeoutMs: 120_000, maxRequestBytes: 32 * 1024 * 1024 },
  })
})

describe('what is refused, with the field’s name', () => {
  test.each<[string, string, object]>([
    ['', 'model', { model: '' }],
    ['', 'model', { model: 'x'.repeat(257) }],
    ['', 'oauthToken', { oauthToken: 'sk-ant-oat01-0123456789' }],
    ['PB-01', 'upstream', { upstream: 'api.anthropic.com' }],
    ['PB-01', 'upstream', { upstream: 'http://api.example' }],
    ['PB-01', 'upstream', { upstream: 'http://127.0.0.1:1' }],
    ['decision 17', 'upstream', { upstream: 'http://api.example', allowHttp: true }],
    ['PB-01', 'upstream', { upstream: 'https://user:pass@api.example' }],
    ['PB-01', 'upstream', { upstream: 'https://api.example/#x' }],
    ['PB-01', 'upstream', { upstream: 'https://api.example/?key=x' }],
    ['PB-01', 'upstream', { upstream: 'https://api.example/?' }],
    ['', 'upstream', { upstream: 5 }],
    ['CS-16', 'authSlot', { authSlot: { kind: 'query', name: 'key' } }],
    ['CS-16', 'authSlot', { authSlot: { kind: 'header', name: 'cookie' } }],
    ['PB-03', 'maxCalls', { maxCalls: 0 }],
    ['PB-03', 'maxCalls', { maxCalls: 1001 }],
    ['PB-03', 'maxOutputTokens', { maxOutputTokens: 1024 }],
    ['PB-03', 'maxOutputTokens', { maxOutputTokens: 200_001 }],
    ['PB-08', 'maxParallelCalls', { maxParallelCalls: 17 }],
    ['W-29', 'maxQueuedCalls', { maxQueuedCalls: -1 }],
    ['LS-05', 'idleMs', { idleMs: 999 }],
    ['W-37', 'betas', { betas: ['a,b'] }],
    ['W-37', 'betas', { betas: 'a' }],
    ['', 'allowFields', { allowFields: [1] }],
    ['', 'setFields', { setFields: { thinking: {} } }],
    ['', 'setFields', { setFields: { x: 1n } }],
    ['', 'bodyBudget', { bodyBudget: {} }],
    ['', 'onCall', { onCall: 'log' }],
    ['', 'onCompaction', { onCompaction: 'log' }],
    ['W-42', 'tools[1].name', { tools: [TOOL, TOOL] }],
    ['W-42', 'tools[0].name', { tools: [{ ...TOOL, name: 'a b' }] }],
    ['W-42', 'tools[0].name', { tools: [{ ...TOOL, name: 'x'.repeat(65) }] }],
    ['', 'tools[0].description', { tools: [{ ...TOOL, description: 'x'.repeat(8193) }] }],
    ['', 'tools[0].parameters', { tools: [{ ...TOOL, parameters: { $ref: 'https://a.example' } }] }],
    ['', 'tools[0].parameters', { tools: [{ ...TOOL, parameters: { pattern: '(', type: 'string' } }] }],
    ['', 'tools[0].parameters', { tools: [{ ...TOOL, parameters: { type: 'object', default: 1n } }] }],
    ['', 'tools[0].execute', { tools: [{ ...TOOL, execute: undefined }] }],
    ['', 'tools', { tools: Array(129).fill(TOOL) }],
    ['PB-02', 'mcp[0]', { mcp: [{ name: 'notes', url: 'https://a.example' }] }],
    ['W-42', 'mcp[1].name', { mcp: [server('a'), server('a')] }],
    ['CP-01', 'compaction.engine', { compaction: { ...COMPACTION, engine: 'a b' } }],
    ['CP-01', 'compaction.engine', { compaction: { ...COMPACTION, engine: 'x'.repeat(101) } }],
    ['CP-01', 'compaction.compact', { compaction: { engine: 'a' } }],
    ['CP-01', 'compaction.timeoutMs', { compaction: { ...COMPACTION, timeoutMs: 999 } }],
    ['CP-01', 'compaction.timeoutMs', { compaction: { ...COMPACTION, timeoutMs: 600_001 } }],
    ['CP-01', 'compaction.maxRequestBytes', { compaction: { ...COMPACTION, maxRequestBytes: 0 } }],
    [
      'CP-01',
      'compaction.maxRequestBytes',
      { compaction: { ...COMPACTION, maxRequestBytes: 96 * 1024 * 1024 + 1 } },
    ],
  ])('%s %s (%#)', (_rule, field, changes) => {
    const made = () => new PiSandboxBroker({ ...GOOD, ...changes })
    expect(made).toThrow(
      expect.objectContaining({ code: 'options_invalid', message: expect.stringContaining(`${field}:`) }),
    )
  })
  test.each([
    { upstream: 'https://gateway.example/anthropic/' },
    { upstream: 'http://localhost:8080', allowHttp: true },
    { upstream: () => undefined },
    { authSlot: { kind: 'header', name: 'x-api-key' } as const },
    { maxCalls: 1, maxOutputTokens: 1025 },
    { maxCalls: 1000, maxOutputTokens: 200_000 },
    { betas: ['context-1m-2025-08-07'] },
    { setFields: { service_tier: 'standard_only' }, allowFields: ['metadata'] },
    { bodyBudget: new BodyBudget({ bytes: 16 * 1024 * 1024 }) },
    // CP-16: a compactor as it is.
    { compaction: { engine: 'pi-jev-compaction', compact: async () => undefined } },
  ])('(%#) passes', (changes) => {
    expect(() => checkPiBrokerOptions({ ...GOOD, ...changes })).not.toThrow()
  })
})

test('MD-01 to MD-03 the checks for hosts throw, and say which one is wrong', () => {
  expect(safeFileName('a b.png')).toBe('a b.png')
  expect(() => safeFileName('../a')).toThrow(TypeError)
  expect(() => validateImages([{ mimeType: 'image/png', data: 'AAAA' }])).not.toThrow()
  expect(() => validateImages([{ mimeType: 'image/png', data: 'AAAA' }, {}])).toThrow('images[1]')
  expect(() => validateReplyFiles([{ name: 'a', data: 'AAAA' }])).not.toThrow()
  expect(() => validateReplyFiles([{ name: '.', data: 'AAAA' }])).toThrow('files[0]')
})
