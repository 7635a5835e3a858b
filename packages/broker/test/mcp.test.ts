import { describe, expect, test } from 'vitest'
import type { McpTokenScope } from '../src/mcp/index.ts'
import { mcpServer } from '../src/mcp/index.ts'
import { callHeaders, type GuestAnswer } from './support/guest.ts'
import { newServer, oldServer, type TestMcpServer } from './support/mcp-servers.ts'
import { openRig, type Rig, turnInput } from './support/rig.ts'

const SERVERS: [string, () => Promise<TestMcpServer>][] = [
  ['2026-07-28, JSON', () => newServer('json')],
  ['2026-07-28, SSE', () => newServer('sse')],
  ['2025-11-25, JSON', () => oldServer('json')],
  ['2025-11-25, SSE', () => oldServer('sse')],
]
const TOOLS = ['echo', 'ask', 'fail']

/** A `tools/call` as our guest writes it. */
export function toolCall(name: string, input: unknown, more: object = {}): object {
  return { jsonrpc: '2.0', id: 7, method: 'tools/call', params: { name, arguments: input }, ...more }
}

async function call(rig: Rig, nonce: string, body: unknown): Promise<GuestAnswer> {
  using guest = rig.guest()
  return await guest.call({ path: '/mcp/notes', headers: callHeaders(nonce), body })
}

describe.each(SERVERS)('T47 a server of %s', (_, open) => {
  test('SB-20 a listed tool is called, and its result rebuilt with id 1', async () => {
    await using server = await open()
    const token = 'tok-notes-0123456789'
    const notes = mcpServer({
      name: 'notes',
      url: server.url,
      tools: TOOLS,
      allowHttp: true,
      token: () => token,
    })
    await using rig = await openRig({ mcp: [notes] })
    const { nonce } = rig.broker.bind(turnInput())
    const more = { url: 'http://evil.example', _meta: { x: 1 }, id: { odd: true } }
    const answer = await call(rig, nonce, toolCall('echo', { text: 'grüße 🎉' }, more))
    expect(answer.json).toEqual({
      jsonrpc: '2.0',
      id: 1,
      result: { content: [{ type: 'text', text: 'grüße 🎉' }] },
    })
    const sent = server.seen.filter(({ body }) => body.includes('tools/call'))
    expect(sent.map(({ headers }) => headers.authorization)).toEqual([`Bearer ${token}`])
    expect(sent[0]?.body).not.toContain('evil')
    expect(await rig.reported(({ route }) => route === 'mcp')).toMatchObject({
      name: 'notes/echo',
      reason: 'ok',
      upstreamStatus: 200,
      fingerprint: expect.any(String),
    })
  })

  test('W-35 the worker is shown the operator’s tools, and no other can be called', async () => {
    await using server = await open()
    const notes = mcpServer({
      name: 'notes',
      url: server.url,
      tools: ['fail', 'echo', 'nowhere'],
      allowHttp: true,
    })
    await using rig = await openRig({ mcp: [notes] })
    const { nonce } = rig.broker.bind(turnInput())
    const specs = await rig.broker.mcpSpecs()
    expect(specs).toEqual([
      {
        name: 'notes',
        tools: [
          expect.objectContaining({ name: 'fail' }),
          {
            name: 'echo',
            description: 'Gives back its text.',
            parameters: expect.objectContaining({ type: 'object', required: ['text'] }),
          },
        ],
      },
    ])
    expect(rig.events[0]).toMatchObject({
      route: 'mcp',
      name: 'notes',
      reason: 'ok',
      droppedFields: ['nowhere'],
    })
    expect((await call(rig, nonce, toolCall('hidden', { text: 'x' }))).status).toBe(403)
    expect(server.seen.some(({ body }) => body.includes('tools/call'))).toBe(false)
  })

  test('a tool’s own failure is for the model to read', async () => {
    await using server = await open()
    const notes = mcpServer({ name: 'notes', url: server.url, tools: TOOLS, allowHttp: true })
    await using rig = await openRig({ mcp: [notes] })
    const { nonce } = rig.broker.bind(turnInput())
    const { json } = await call(rig, nonce, toolCall('fail', { text: 'no' }))
    expect(json.result).toEqual({ content: [{ type: 'text', text: 'failed: no' }], isError: true })
  })

  test('SB-21 without a token no credential is sent; SB-24 nor anything of the guest’s', async () => {
    await using server = await open()
    const notes = mcpServer({ name: 'notes', url: server.url, tools: TOOLS, allowHttp: true })
    await using rig = await openRig({ mcp: [notes] })
    const { nonce } = rig.broker.bind(turnInput())
    expect((await call(rig, nonce, toolCall('echo', { text: 'x' }))).status).toBe(200)
    for (const { headers } of server.seen) {
      const names = Object.keys(headers).filter((name) => !name.startsWith('mcp-'))
      const known = ['host', 'connection', 'content-type', 'accept', 'content-length', 'transfer-encoding']
      expect(names.filter((name) => !known.includes(name))).toEqual([])
    }
  })

  test('a server that asks the client for something is refused', async () => {
    await using server = await open()
    const notes = mcpServer({ name: 'notes', url: server.url, tools: TOOLS, allowHttp: true })
    await using rig = await openRig({ mcp: [notes] }, { callMs: 2_000 })
    const { nonce } = rig.broker.bind(turnInput())
    const { status, json } = await call(rig, nonce, toolCall('ask', { text: 'x' }))
    if (status === 200) expect(JSON.stringify(json)).toMatch(/not support|not found|cannot|failed/i)
    // Where answers are no streams, the server waits for a stream that no client of ours opens.
    else expect(json.error.code).toMatch(/^(upstream_failed|timeout)$/)
    expect(JSON.stringify(json)).not.toContain('the client answered')
  })

  test('W-36 what was opened is closed when the turn ends', async () => {
    await using server = await open()
    const notes = mcpServer({ name: 'notes', url: server.url, tools: TOOLS, allowHttp: true })
    await using rig = await openRig({ mcp: [notes] })
    const turn = rig.broker.bind(turnInput())
    for (let count = 0; count < 3; count += 1) {
      expect((await call(rig, turn.nonce, toolCall('echo', { text: 'x' }))).status).toBe(200)
    }
    expect(server.sessions.size).toBeLessThanOrEqual(1)
    turn.release()
    await rig.broker.stop()
    expect(server.sessions.size).toBe(0)
  })
})

describe('W-08 whose token', () => {
  test('each call asks, for its own channel, speaker and server, and gets a frozen copy', async () => {
    await using server = await newServer('json')
    const asked: McpTokenScope[] = []
    const token = (scope: McpTokenScope) => {
      asked.push(scope)
      return `tok-${scope.server}-${scope.speaker.id}-${asked.length}`
    }
    const common = { url: server.url, tools: TOOLS, allowHttp: true, token }
    const servers = [mcpServer({ name: 'notes', ...common }), mcpServer({ name: 'other', ...common })]
    await using rig = await openRig({ mcp: servers })
    const { nonce } = rig.broker.bind(turnInput())
    using guest = rig.guest()
    for (const name of ['notes', 'other', 'notes']) {
      await guest.call({
        path: `/mcp/${name}`,
        headers: callHeaders(nonce),
        body: toolCall('echo', { text: 'x' }),
      })
    }
    const speaker = { id: 'u-ann', name: 'Ann' }
    expect(asked).toEqual(
      ['notes', 'other', 'notes'].map((name) => ({ channel: 'web:room', speaker, server: name })),
    )
    expect(asked.every((scope) => Object.isFrozen(scope) && Object.isFrozen(scope.speaker))).toBe(true)
    const sent = server.seen.filter(({ body }) => body.includes('tools/call'))
    expect(sent.map(({ headers }) => headers.authorization)).toEqual([
      'Bearer tok-notes-u-ann-1',
      'Bearer tok-other-u-ann-2',
      'Bearer tok-notes-u-ann-3',
    ])
  })

  test.each([
    ['undefined', () => undefined, 'credential_missing'],
    ['an empty text', () => '', 'credential_missing'],
    ['white space', () => '   ', 'credential_invalid'],
    [
      'a throw',
      () => {
        throw new TypeError('secret place')
      },
      'credential_error',
    ],
    [
      'one for another origin',
      () => ({ token: 'tok-0123456789', origin: 'https://a.example' }),
      'credential_invalid',
    ],
  ])('CS-09 %s: nothing is sent', async (_, token, reason) => {
    await using server = await newServer('json')
    const notes = mcpServer({ name: 'notes', url: server.url, tools: TOOLS, allowHttp: true, token })
    await using rig = await openRig({ mcp: [notes] })
    const { nonce } = rig.broker.bind(turnInput())
    const { status } = await call(rig, nonce, toolCall('echo', { text: 'x' }))
    expect([status, rig.events.at(-1)?.reason, server.seen.length]).toEqual([502, reason, 0])
  })

  test('another slot: a header of the server’s own', async () => {
    await using server = await newServer('json')
    const authSlot = { kind: 'header', name: 'x-api-key' } as const
    const token = () => 'tok-0123456789'
    const notes = mcpServer({
      name: 'notes',
      url: server.url,
      tools: TOOLS,
      allowHttp: true,
      token,
      authSlot,
    })
    await using rig = await openRig({ mcp: [notes] })
    const { nonce } = rig.broker.bind(turnInput())
    await call(rig, nonce, toolCall('echo', { text: 'x' }))
    for (const { headers } of server.seen) {
      expect([headers['x-api-key'], headers.authorization]).toEqual(['tok-0123456789', undefined])
    }
  })
})

describe('SB-19 what is no call of a listed tool [call:listed-routes-only]', () => {
  test.each<[string, unknown]>([
    ['another method', { ...toolCall('echo', {}), method: 'resources/read' }],
    ['tools/list', { jsonrpc: '2.0', id: 1, method: 'tools/list' }],
    ['sampling', { ...toolCall('echo', {}), method: 'sampling/createMessage' }],
    ['no method', { params: { name: 'echo', arguments: {} } }],
    ['no params', { method: 'tools/call' }],
    ['params that are a list', { method: 'tools/call', params: [] }],
    ['no name', { method: 'tools/call', params: { arguments: {} } }],
    ['a tool that is not listed', toolCall('hidden', {})],
    ['a name of Object.prototype', toolCall('constructor', {})],
    ['a name that is a list', toolCall(['echo'] as never, {})],
    ['no arguments', { method: 'tools/call', params: { name: 'echo' } }],
    ['arguments that are a list', toolCall('echo', [])],
    ['arguments that are null', toolCall('echo', null)],
    ['arguments that are a text', toolCall('echo', '{}')],
  ])('%s is 403, without a token and without a request', async (_, body) => {
    await using server = await newServer('json')
    let asked = 0
    const token = () => `tok-0123456789-${++asked}`
    const notes = mcpServer({ name: 'notes', url: server.url, tools: TOOLS, allowHttp: true, token })
    await using rig = await openRig({ mcp: [notes] })
    const { nonce } = rig.broker.bind(turnInput())
    const { status, json } = await call(rig, nonce, body)
    expect([status, json.error.code, asked, server.seen.length]).toEqual([403, 'mcp_refused', 0, 0])
  })

  test('SB-16 a batch, and what is no JSON, is 400; SB-10 another server is 404', async () => {
    await using server = await newServer('json')
    const notes = mcpServer({ name: 'notes', url: server.url, tools: TOOLS, allowHttp: true })
    await using rig = await openRig({ mcp: [notes] })
    const { nonce } = rig.broker.bind(turnInput())
    expect((await call(rig, nonce, [toolCall('echo', {})])).status).toBe(400)
    expect((await call(rig, nonce, '{')).status).toBe(400)
    using guest = rig.guest()
    for (const path of ['/mcp/other', '/mcp/', '/mcp/notes/x', '/mcp/%6eotes', '/mcp/constructor']) {
      const answer = await guest.call({ path, headers: callHeaders(nonce), body: toolCall('echo', {}) })
      expect([path, answer.status]).toEqual([path, 404])
    }
    expect(server.seen).toEqual([])
  })
})

describe('T48 a session that its server forgot', () => {
  test.each(['json', 'sse'] as const)(
    '%s: a fresh one is opened, and the call is made once',
    async (mode) => {
      await using server = await oldServer(mode)
      const notes = mcpServer({ name: 'notes', url: server.url, tools: TOOLS, allowHttp: true })
      await using rig = await openRig({ mcp: [notes] })
      const { nonce } = rig.broker.bind(turnInput())
      expect((await call(rig, nonce, toolCall('echo', { text: 'one' }))).status).toBe(200)
      server.sessions.clear()
      const { json } = await call(rig, nonce, toolCall('echo', { text: 'two' }))
      expect(json.result.content[0].text).toBe('two')
      expect(server.sessions.size).toBe(1)
    },
  )
})

test('W-27 an observer that rejects when servers are listed ends neither the turn nor the process', async () => {
  const unhandled: unknown[] = []
  const note = (reason: unknown) => unhandled.push(reason)
  process.on('unhandledRejection', note)
  await using server = await newServer('json')
  const notes = mcpServer({ name: 'notes', url: server.url, tools: ['echo'], allowHttp: true })
  const onCall = () => Promise.reject(new TypeError('observer')) as never
  await using rig = await openRig({ mcp: [notes], onCall })
  rig.broker.bind(turnInput())
  expect(await rig.broker.mcpSpecs()).toHaveLength(1)
  await new Promise((done) => setImmediate(done))
  process.off('unhandledRejection', note)
  expect(unhandled).toEqual([])
})
