import { describe, expect, test } from 'vitest'
import { type BrokerOptions, checkBrokerOptions, type HostTool, openSealedBroker } from './index.ts'

const GOOD: BrokerOptions = {
  modelUrl: 'https://api.example/v1/chat',
  model: 'm',
  apiKey: () => 'k'.repeat(20),
}
const TOOL: HostTool = { name: 'echo', description: 'E.', parameters: { type: 'object' }, execute: () => '' }

function problemOf(options: unknown): string | undefined {
  try {
    checkBrokerOptions(options as BrokerOptions)
    return undefined
  } catch (error) {
    expect(error).toMatchObject({ name: 'BrokerError', code: 'options_invalid' })
    return (error as Error).message
  }
}

describe('SB-01 and decision 17 endpoints', () => {
  test.each(['https://a.example', 'https://a.example:8443/v1?x=1', 'https://127.0.0.1/'])(
    '%s',
    (modelUrl) => {
      expect(problemOf({ ...GOOD, modelUrl })).toBeUndefined()
    },
  )
  test.each([
    'nonsense',
    '',
    '/v1',
    'http://api.example',
    'http://127.0.0.1:1',
    'ftp://a.example',
    'file:///etc/passwd',
    'https://user@a.example',
    'https://user:pass@a.example',
    'https://a.example/#f',
    'https://a.example/#',
    undefined,
    7,
  ])('%s is refused', (modelUrl) => {
    expect(problemOf({ ...GOOD, modelUrl })).toMatch(/^modelUrl: /)
  })
  test.each([
    'http://127.0.0.1:1',
    'http://localhost:8080/v1',
    'http://[::1]:8080/',
    'http://127.8.8.8/',
    'http://2130706433/',
  ])('allowHttp admits the loopback host of %s', (modelUrl) => {
    expect(problemOf({ ...GOOD, modelUrl, allowHttp: true })).toBeUndefined()
  })
  test.each([
    'http://api.example',
    'http://127.evil.example',
    'http://10.0.0.1',
    'http://localhost.evil.example',
    'ftp://127.0.0.1',
  ])('allowHttp does not admit %s', (modelUrl) => {
    expect(problemOf({ ...GOOD, modelUrl, allowHttp: true })).toMatch(/^modelUrl: /)
  })
  test('only true switches it on', () => {
    expect(problemOf({ ...GOOD, modelUrl: 'http://localhost', allowHttp: 'false' })).toMatch(/^modelUrl/)
  })
  test('the message does not repeat the URL', () => {
    expect(problemOf({ ...GOOD, modelUrl: 'https://user:hunter2@a.example' })).not.toContain('hunter2')
  })
})

describe('SB-02 numbers', () => {
  const ranges = [
    ['maxCalls', 1, 1000],
    ['maxOutputTokens', 1, 32_768],
    ['maxQueuedCalls', 0, 64],
    ['maxParallelCalls', 1, 16],
  ] as const
  test.each(ranges)('%s from %i to %i', (name, least, most) => {
    for (const value of [least, most]) expect(problemOf({ ...GOOD, [name]: value })).toBeUndefined()
    for (const value of [least - 1, most + 1, 1.5, Number.NaN, Infinity, '5', null]) {
      if (value === null) continue
      expect(problemOf({ ...GOOD, [name]: value })).toBe(
        `${name}: must be a whole number from ${least} to ${most}`,
      )
    }
  })
})

describe('SB-03 tools', () => {
  const tools = (...list: unknown[]) => problemOf({ ...GOOD, tools: list })
  test.each(['', 'Echo', '1x', 'a-b', 'a.b', 'a'.repeat(49), '__proto__', 'é', 7])(
    'the name %s is refused',
    (name) => {
      expect(tools({ ...TOOL, name })).toMatch(/^tools\[0\]\.name: /)
    },
  )
  test('duplicates are refused', () => {
    expect(tools(TOOL, { ...TOOL })).toBe('tools[1].name: "echo" is taken')
  })
  test('a remote reference is refused; $schema is dropped (W-38)', () => {
    expect(tools({ ...TOOL, parameters: { $ref: 'https://evil.example/s' } })).toMatch(
      /^tools\[0\]\.parameters: /,
    )
    const parameters = { $schema: 'https://json-schema.org/draft/2020-12/schema', type: 'object' }
    const broker = openSealedBroker({ ...GOOD, tools: [{ ...TOOL, parameters }] })
    expect(broker.toolSpecs).toEqual([{ name: 'echo', description: 'E.', parameters: { type: 'object' } }])
  })
  test('what is described is a copy', () => {
    const parameters = { type: 'object', properties: {} as Record<string, unknown> }
    const broker = openSealedBroker({ ...GOOD, tools: [{ ...TOOL, parameters }] })
    parameters.properties.late = {}
    expect(broker.toolSpecs[0]?.parameters).toEqual({ type: 'object', properties: {} })
  })
  test('other mistakes name their field', () => {
    expect(tools(null)).toMatch(/^tools\[0\]: /)
    expect(tools({ ...TOOL, description: undefined })).toMatch(/^tools\[0\]\.description: /)
    expect(tools({ ...TOOL, execute: 'x' })).toMatch(/^tools\[0\]\.execute: /)
    expect(tools({ ...TOOL, parameters: [] })).toMatch(/^tools\[0\]\.parameters: /)
    expect(tools({ ...TOOL, parameters: { default: 1n } })).toMatch(/^tools\[0\]\.parameters: /)
    expect(problemOf({ ...GOOD, tools: {} })).toMatch(/^tools: /)
  })
  test('W-69 descriptions over 32 KiB are refused at setup', () => {
    const many = Array.from({ length: 8 }, (_, at) => ({
      ...TOOL,
      name: `t${at}`,
      description: 'x'.repeat(8000),
    }))
    expect(problemOf({ ...GOOD, tools: many })).toMatch(/^tools: .*32768 at most/)
  })
})

describe('the rest', () => {
  test.each([
    ['model', ''],
    ['model', undefined],
    ['apiKey', 'sk-1'],
    ['apiKey', undefined],
    ['onCall', 'x'],
    ['tokenLimitField', 'n'],
    ['renameTokenLimit', 'yes'],
    ['streamUsage', 1],
    ['ownedIds', {}],
    ['credit', { reserve: 1 }],
    ['onReceipt', {}],
    ['authSlot', { kind: 'cookie' }],
    ['authSlot', { kind: 'header', name: 'a b' }],
    ['authSlot', { kind: 'header', name: 'Host' }],
    ['authSlot', { kind: 'header', name: 'content-type' }],
    ['authSlot', { kind: 'query', name: '' }],
    ['authSlot', { kind: 'basic', user: 'a:b' }],
    ['authSlot', 'bearer'],
    ['responsesUrl', 'http://api.example/v1/responses'],
    ['responsesUrl', 'https://user@api.example/v1/responses'],
    ['upstream', 'https://api.example'],
    ['allowFields', 'top_k'],
    ['allowFields', [1]],
    ['setFields', { model: 'other' }],
    ['setFields', { stream: true }],
    ['setFields', { n: 1n }],
  ])('%s as %o is refused and named', (name, value) => {
    expect(problemOf({ ...GOOD, [name]: value })).toContain(name)
  })
  test('no options at all', () => {
    expect(problemOf(undefined)).toMatch(/^options: /)
  })
  test('CS-17 checking asks for no credential', () => {
    let asked = 0
    checkBrokerOptions({ ...GOOD, apiKey: () => `${++asked}` })
    expect(asked).toBe(0)
  })
})
