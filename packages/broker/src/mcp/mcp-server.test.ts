import { describe, expect, test } from 'vitest'
import { checkBrokerOptions } from '../index.ts'
import { type McpServerOptions, mcpServer } from './index.ts'

const GOOD: McpServerOptions = { name: 'notes', url: 'https://mcp.example/mcp', tools: ['echo'] }

function problemOf(change: object): string | undefined {
  try {
    mcpServer({ ...GOOD, ...change })
    return undefined
  } catch (error) {
    expect(error).toMatchObject({ name: 'BrokerError', code: 'options_invalid' })
    return (error as Error).message
  }
}

describe('PC-01, SB-01 and SB-03 an MCP server', () => {
  test.each<[string, object]>([
    ['a URL with a query', { url: 'https://mcp.example/mcp?v=1' }],
    ['loopback over http, if allowed', { url: 'http://127.0.0.1:1/', allowHttp: true }],
    ['a program', { url: undefined, command: { command: 'node' } }],
    [
      'a program with a token',
      { url: undefined, command: { command: 'node', tokenEnv: 'T' }, token: () => 'x' },
    ],
    ['names of MCP', { name: 'My-Notes_1', tools: ['a.b-c_D'] }],
    ['a header for the token', { authSlot: { kind: 'header', name: 'x-api-key' } }],
  ])('%s', (_, change) => {
    expect(problemOf(change)).toBeUndefined()
  })
  test.each<[string, object, RegExp]>([
    ['no name', { name: '' }, /mcpServer\.name/],
    ['a name with a slash', { name: 'a/b' }, /mcpServer\.name/],
    ['a name that is too long', { name: 'n'.repeat(101) }, /mcpServer\.name/],
    ['http', { url: 'http://mcp.example/' }, /"notes": url/],
    ['http elsewhere, although allowed', { url: 'http://mcp.example/', allowHttp: true }, /"notes": url/],
    ['user info', { url: 'https://me:pw@mcp.example/' }, /"notes": url/],
    ['a fragment', { url: 'https://mcp.example/#a' }, /"notes": url/],
    ['neither URL nor program', { url: undefined }, /"notes": url/],
    ['both', { command: { command: 'node' } }, /"notes": command/],
    ['a program without a name', { url: undefined, command: {} }, /"notes": command/],
    [
      'a token that has no place',
      { url: undefined, command: { command: 'n' }, token: () => 'x' },
      /tokenEnv/,
    ],
    ['no tools', { tools: [] }, /"notes": tools/],
    ['a tool twice', { tools: ['a', 'a'] }, /"notes": tools/],
    ['a tool name with a slash', { tools: ['a/b'] }, /"notes": tools/],
    ['a tool name that is too long', { tools: ['t'.repeat(129)] }, /"notes": tools/],
    ['a token that is a text', { token: 'tok' }, /"notes": token/],
    ['a header of the protocol', { authSlot: { kind: 'header', name: 'Mcp-Session-Id' } }, /authSlot/],
    ['a header that is none', { authSlot: { kind: 'header', name: 'a b' } }, /authSlot/],
  ])('%s is refused', (_, change, problem) => {
    expect(problemOf(change)).toMatch(problem)
  })
  test('no message quotes a URL: it may hold a key', () => {
    expect(problemOf({ url: 'http://mcp.example/?key=sk-123' })).not.toContain('sk-123')
  })
  test('W-02 later changes of the options do not reach the server', () => {
    const tools = ['echo']
    const server = mcpServer({ ...GOOD, tools })
    tools.push('hidden')
    expect(server.tools).toEqual(['echo'])
    expect(Object.isFrozen(server) && Object.isFrozen(server.tools)).toBe(true)
  })
})

describe('SB-03 the mcp option of a sealed broker', () => {
  const options = { modelUrl: 'https://api.example/v1', model: 'm', apiKey: () => 'k' }
  const check = (...mcp: unknown[]) => {
    try {
      checkBrokerOptions({ ...options, mcp: mcp as never })
      return undefined
    } catch (error) {
      return (error as Error).message
    }
  }
  test('takes servers, each name once', () => {
    expect(check(mcpServer(GOOD), mcpServer({ ...GOOD, name: 'other' }))).toBeUndefined()
    expect(check(mcpServer(GOOD), mcpServer(GOOD))).toMatch(/^mcp\[1\]\.name: "notes" is taken/)
  })
  test('a worker’s names are shorter', () => {
    expect(check(mcpServer({ ...GOOD, name: 'My-Notes' }))).toMatch(/^mcp\[0\]: "My-Notes"/)
    expect(check(mcpServer({ ...GOOD, tools: ['get-it'] }))).toMatch(/^mcp\[0\]: "get-it"/)
  })
  test.each([undefined, null, {}, { name: 'notes' }, 'notes'])('%s is no server', (server) => {
    expect(check(server)).toMatch(/^mcp\[0\]: must be made by mcpServer/)
  })
})
