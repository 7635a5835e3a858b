import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client'
import { createMcpHandler, fromJsonSchema, McpServer } from '@modelcontextprotocol/server'
import { type McpServerOptions, mcpServer } from '@sandbox/broker/mcp'
import { openForwarder, type SeenRequest, scriptedUpstream } from '@sandbox/testing'
import { describe, expect, test } from 'vitest'
import { call, context, openRig, type Rig } from './support/rig.ts'

const INPUT = { type: 'object', properties: { text: { type: 'string' } }, required: ['text'] } as const

/** The SDK's own server, for both eras of the protocol. */
async function openServer(): Promise<
  AsyncDisposable & { readonly url: string; readonly seen: SeenRequest[] }
> {
  const handler = createMcpHandler(() => {
    const server = new McpServer({ name: 'notes', version: '1' })
    for (const name of ['echo', 'fail', 'hidden']) {
      const config = { description: `It is ${name}.`, inputSchema: fromJsonSchema<{ text: string }>(INPUT) }
      server.registerTool(name, config, ({ text }) => ({
        content: [{ type: 'text', text, _meta: { debug: 1 } }],
        isError: name === 'fail',
        _meta: { host: 'internal' },
      }))
    }
    return server
  })
  const upstream = await scriptedUpstream(async (seen, response) => {
    const answer = await handler.fetch(
      new Request(`http://127.0.0.1${seen.url}`, {
        method: seen.method,
        headers: Object.entries(seen.headers).map(
          ([name, value]) => [name, String(value)] as [string, string],
        ),
        ...(seen.method === 'POST' ? { body: seen.body } : {}),
      }),
    )
    response.writeHead(answer.status, Object.fromEntries(answer.headers)).end(await answer.text())
  })
  return {
    url: `${upstream.url}/mcp`,
    seen: upstream.seen,
    [Symbol.asyncDispose]: () => upstream[Symbol.asyncDispose](),
  }
}

const notes = (url: string, changes: Partial<McpServerOptions> = {}) =>
  mcpServer({ name: 'Notes-1', url, tools: ['echo', 'fail', 'nowhere'], allowHttp: true, ...changes })

const rpc = (method: string, params?: object, id: unknown = 'a-1') => ({
  jsonrpc: '2.0',
  ...(id === undefined ? {} : { id }),
  method,
  ...(params === undefined ? {} : { params }),
})
const post = (rig: Rig, nonce: string | undefined, body: unknown) =>
  call(rig, nonce, { path: '/mcp/Notes-1', body })

describe('PB-14 and PB-15 what may be asked', () => {
  test('the handshake, ping, the list and a listed tool; the guest’s id comes back', async () => {
    await using server = await openServer()
    await using rig = await openRig({ mcp: [notes(server.url)] })
    const { nonce } = rig.broker.bind(context())
    const hello = await post(
      rig,
      nonce,
      rpc('initialize', { protocolVersion: '2025-06-18', capabilities: { sampling: {} } }),
    )
    expect(hello.json).toEqual({
      jsonrpc: '2.0',
      id: 'a-1',
      result: {
        protocolVersion: '2025-06-18',
        capabilities: { tools: {} },
        serverInfo: { name: 'Notes-1', version: '1' },
      },
    })
    const noted = await post(rig, nonce, { jsonrpc: '2.0', method: 'notifications/initialized' })
    expect([noted.status, noted.text]).toEqual([202, ''])
    expect((await post(rig, nonce, rpc('ping', undefined, 7))).json).toEqual({
      jsonrpc: '2.0',
      id: 7,
      result: {},
    })
    expect(server.seen).toHaveLength(0)
    const list = await post(rig, nonce, rpc('tools/list'))
    expect(list.json.result.tools.map((tool: { name: string }) => tool.name)).toEqual(['echo', 'fail'])
    expect(list.json.result.tools[0]).toMatchObject({ description: 'It is echo.', inputSchema: INPUT })
    const called = await post(
      rig,
      nonce,
      rpc('tools/call', { name: 'echo', arguments: { text: 'grüße' }, _meta: { x: 1 } }),
    )
    expect(called.json).toEqual({
      jsonrpc: '2.0',
      id: 'a-1',
      result: { content: [{ type: 'text', text: 'grüße' }] },
    })
    expect(
      (await post(rig, nonce, rpc('tools/call', { name: 'fail', arguments: { text: 'x' } }))).json.result,
    ).toEqual({
      content: [{ type: 'text', text: 'x' }],
      isError: true,
    })
    expect((await rig.reported(({ name }) => name === 'Notes-1/echo')).reason).toBe('ok')
  })

  test.each([
    ['an unlisted tool', rpc('tools/call', { name: 'hidden', arguments: { text: 'x' } })],
    ['resources', rpc('resources/read', { uri: 'file:///etc/passwd' })],
    ['prompts', rpc('prompts/get', { name: 'x' })],
    ['sampling', rpc('sampling/createMessage', {})],
    ['arguments that are no object', rpc('tools/call', { name: 'echo', arguments: [] })],
    ['params that are no object', { ...rpc('tools/list'), params: [] }],
    ['an id that is neither text nor number', rpc('ping', undefined, { odd: true })],
    ['an id that is too long', rpc('ping', undefined, 'x'.repeat(257))],
    ['no id', { jsonrpc: '2.0', method: 'tools/list' }],
    ['another version of JSON-RPC', { ...rpc('ping'), jsonrpc: '1.0' }],
    ['no method', { jsonrpc: '2.0', id: 1 }],
  ])('W-35 %s is 403, and the server hears nothing', async (_what, body) => {
    await using server = await openServer()
    await using rig = await openRig({ mcp: [notes(server.url)] })
    const { nonce } = rig.broker.bind(context())
    const answer = await post(rig, nonce, body)
    expect([answer.status, answer.json.error.code]).toEqual([403, 'mcp_refused'])
    expect(server.seen).toHaveLength(0)
  })

  test('PB-15 a batch is 400; another server is 404', async () => {
    await using server = await openServer()
    await using rig = await openRig({ mcp: [notes(server.url)] })
    const { nonce } = rig.broker.bind(context())
    expect((await post(rig, nonce, [rpc('ping')])).status).toBe(400)
    expect((await call(rig, nonce, { path: '/mcp/notes-1', body: rpc('ping') })).status).toBe(404)
    expect((await call(rig, nonce, { path: '/mcp/Notes-1', method: 'GET' })).status).toBe(404)
  })
})

describe('PB-17 and W-08 tokens', () => {
  test('a token for the channel, the speaker and the server, before each call; the model’s is not asked for', async () => {
    await using server = await openServer()
    await using other = await openServer()
    const asked: object[] = []
    const token = (scope: { server: string; speaker: { id: string } }) => {
      asked.push(structuredClone(scope))
      return `tok-${scope.server}-${scope.speaker.id}-0123456789`
    }
    await using rig = await openRig({
      mcp: [notes(server.url, { token }), notes(other.url, { name: 'other', token })],
      oauthToken: () => {
        throw new TypeError('not for MCP')
      },
    })
    const { nonce } = rig.broker.bind(context())
    const echo = rpc('tools/call', { name: 'echo', arguments: { text: 'x' } })
    expect((await post(rig, nonce, echo)).status).toBe(200)
    expect((await call(rig, nonce, { path: '/mcp/other', body: echo })).status).toBe(200)
    const scope = { channel: 'web:room', speaker: { id: 'u-ann', name: 'Ann' } }
    expect(asked).toEqual([
      { ...scope, server: 'Notes-1' },
      { ...scope, server: 'other' },
    ])
    const sent = (seen: readonly SeenRequest[]) => new Set(seen.map(({ headers }) => headers.authorization))
    expect([...sent(server.seen)]).toEqual(['Bearer tok-Notes-1-u-ann-0123456789'])
    expect([...sent(other.seen)]).toEqual(['Bearer tok-other-u-ann-0123456789'])
  })

  test('without one the call fails, and nothing is sent', async () => {
    await using server = await openServer()
    await using rig = await openRig({ mcp: [notes(server.url, { token: () => undefined })] })
    const { nonce } = rig.broker.bind(context())
    const answer = await post(rig, nonce, rpc('tools/call', { name: 'echo', arguments: { text: 'x' } }))
    expect([answer.status, answer.json.error.code]).toEqual([502, 'no_credential'])
    expect(server.seen).toHaveLength(0)
  })

  test('W-22 an answer that carries a token of the turn is refused', async () => {
    await using server = await openServer()
    const token = 'tok-notes-0123456789'
    await using rig = await openRig({ mcp: [notes(server.url, { token: () => token })] })
    const { nonce } = rig.broker.bind(context())
    const answer = await post(
      rig,
      nonce,
      rpc('tools/call', { name: 'echo', arguments: { text: `x${token}` } }),
    )
    expect([answer.status, answer.text.includes(token)]).toEqual([502, false])
  })
})

describe('PB-18 to PB-20 and W-34: no MCP outside a turn', () => {
  test('PB-19 there is no window before the first turn, between turns or after hello, not even for lists', async () => {
    await using server = await openServer()
    let asked = 0
    const token = () => {
      asked += 1
      return 'tok-notes-0123456789'
    }
    await using rig = await openRig({ mcp: [notes(server.url, { token })] })
    const methods = ['initialize', 'tools/list', 'ping', 'tools/call']
    const all410 = async (nonce: string | undefined) => {
      for (const method of methods) expect((await post(rig, nonce, rpc(method))).status).toBe(410)
    }
    await all410(undefined)
    const bound = rig.broker.bind(context())
    expect((await post(rig, bound.nonce, rpc('tools/list'))).status).toBe(200)
    bound.release()
    const { length } = server.seen
    await all410(bound.nonce)
    expect([asked, server.seen.length]).toEqual([1, length])
  })

  test('decision 5 the turn brings the descriptions, asked for as its speaker', async () => {
    await using server = await openServer()
    const speakers: string[] = []
    const token = ({ speaker }: { speaker: { id: string } }) => {
      speakers.push(speaker.id)
      return 'tok-notes-0123456789'
    }
    await using rig = await openRig({ mcp: [notes(server.url, { token })] })
    await expect(rig.broker.mcpSpecs()).rejects.toMatchObject({ code: 'turn_invalid' })
    const bound = rig.broker.bind(context({ speaker: { id: 'u-bob', name: 'Bob' } }))
    expect(await rig.broker.mcpSpecs()).toEqual([
      {
        name: 'Notes-1',
        tools: [
          { name: 'echo', description: 'It is echo.', parameters: expect.objectContaining(INPUT) },
          expect.objectContaining({ name: 'fail' }),
        ],
      },
    ])
    expect(speakers).toEqual(['u-bob'])
    bound.release()
    await expect(rig.broker.mcpSpecs()).rejects.toMatchObject({ code: 'turn_invalid' })
  })

  test('decision 5 a list is kept for a while, for the speaker who was shown it and nobody else', async () => {
    await using server = await openServer()
    const asked: string[] = []
    const token = ({ speaker }: { speaker: { id: string } }) => {
      asked.push(speaker.id)
      return 'tok-notes-0123456789'
    }
    for (const [listKeptMs, expected] of [
      [60_000, ['u-bob', 'u-eve']],
      [0, ['u-bob', 'u-eve', 'u-bob', 'u-bob']],
    ] as const) {
      asked.length = 0
      await using rig = await openRig({ mcp: [notes(server.url, { token })] }, { listKeptMs })
      const lists: unknown[] = []
      for (const id of ['u-bob', 'u-eve', 'u-bob', 'u-bob']) {
        const bound = rig.broker.bind(context({ speaker: { id, name: 'x' } }))
        lists.push(await rig.broker.mcpSpecs())
        bound.release()
      }
      expect(asked).toEqual(expected)
      for (const list of lists) expect(list).toEqual(lists[0])
    }
  })

  test('a list in which a server is missing is asked for again', async () => {
    await using server = await openServer()
    let refused = true
    const token = () => (refused ? undefined : 'tok-notes-0123456789')
    const other = notes(server.url, { name: 'other' })
    await using rig = await openRig({ mcp: [notes(server.url, { token }), other] })
    rig.broker.bind(context())
    expect(await rig.broker.mcpSpecs()).toMatchObject([{ name: 'other' }])
    refused = false
    expect(await rig.broker.mcpSpecs()).toMatchObject([{ name: 'Notes-1' }, { name: 'other' }])
  })
})

test('PB-16 W-36 T47 the official client works through the broker; the session with the server is the host’s', async () => {
  await using server = await openServer()
  await using rig = await openRig({ mcp: [notes(server.url)] })
  await using forwarder = await openForwarder(rig.path)
  const { nonce } = rig.broker.bind(context())
  const client = new Client({ name: 'guest', version: '1' }, { versionNegotiation: { mode: 'auto' } })
  const transport = new StreamableHTTPClientTransport(new URL(`${forwarder.url}/mcp/Notes-1`), {
    requestInit: { headers: { 'x-sandbox-turn': nonce, 'mcp-session-id': 'guest-1' } },
  })
  await client.connect(transport)
  expect((await client.listTools()).tools.map(({ name }) => name)).toEqual(['echo', 'fail'])
  const answer = await client.callTool({ name: 'echo', arguments: { text: 'hi' } })
  expect(answer.content).toEqual([{ type: 'text', text: 'hi' }])
  await expect(client.callTool({ name: 'hidden', arguments: { text: 'hi' } })).rejects.toThrow()
  await client.close()
  for (const { headers } of server.seen) expect(headers['mcp-session-id']).not.toBe('guest-1')
})
