import { canary, findSecret } from '@sandbox/testing'
import { describe, expect, test } from 'vitest'
import type { CallReason } from '../src/index.ts'
import { WIRE_LIMITS } from '../src/mcp/http-wire.ts'
import { makeServer } from '../src/mcp/mcp-server.ts'
import { callHeaders } from './support/guest.ts'
import { type HostileScript, hostileServer, rpc, rpcError, toolText } from './support/mcp-servers.ts'
import { modelCall, openRig, turnInput } from './support/rig.ts'

const SSE = { 'content-type': 'text/event-stream' }
const LIMITS = { ...WIRE_LIMITS, silenceMs: 150 }
const BODY = {
  jsonrpc: '2.0',
  id: 7,
  method: 'tools/call',
  params: { name: 'echo', arguments: { text: 'x' } },
}

function event(message: object): string {
  return `event: message\ndata: ${JSON.stringify(message)}\n\n`
}

async function ask(
  script: HostileScript,
  { token = canary(), callMs = 10_000, meanwhile = Promise.resolve() } = {},
) {
  await using server = await hostileServer(script)
  const options = { name: 'notes', url: server.url, tools: ['echo'], allowHttp: true, token: () => token }
  await using rig = await openRig({ mcp: [makeServer(options, LIMITS)] }, { callMs })
  const { nonce } = rig.broker.bind(turnInput())
  using guest = rig.guest()
  const answer = await guest.call({ path: '/mcp/notes', headers: callHeaders(nonce), body: BODY })
  const ended = await rig.reported(({ route }) => route === 'mcp')
  // The turn goes on, whatever the server did.
  expect((await modelCall(rig, nonce)).status).toBe(200)
  await meanwhile
  const received = guest.received.toString()
  return { answer, event: ended, seen: [...server.seen], received }
}

describe('PC-06 and W-35 a hostile server', () => {
  const CASES: [string, CallReason, HostileScript][] = [
    [
      'a redirect',
      'upstream_redirect',
      ({ response }) => void response.writeHead(307, { location: 'http://127.0.0.1:1/steal' }).end(),
    ],
    ['a status', 'upstream_status', ({ response }) => void response.writeHead(503).end('at /srv/private')],
    ['a refusal of the token', 'upstream_status', ({ response }) => void response.writeHead(401).end('no')],
    [
      'JSON without end',
      'upstream_invalid',
      ({ response }) => {
        response.writeHead(200, { 'content-type': 'application/json' })
        flood(response, '{"jsonrpc":"2.0","x":"', 'x'.repeat(65_536))
      },
    ],
    [
      'an event stream of comments without end',
      'upstream_invalid',
      ({ response }) => {
        response.writeHead(200, SSE)
        flood(response, '', `: ${'x'.repeat(65_536)}\n\n`)
      },
    ],
    [
      'one event without end',
      'upstream_invalid',
      ({ response }) => {
        response.writeHead(200, SSE)
        flood(response, 'data: {"', 'x'.repeat(65_536))
      },
    ],
    [
      'a result over 1 MiB',
      'upstream_invalid',
      ({ message }) => rpc(message.id, toolText('"'.repeat(600_000))),
    ],
    ['another id', 'upstream_invalid', ({ message }) => rpc(message.id + 1, toolText('x'))],
    [
      'another id in a stream',
      'upstream_invalid',
      ({ response }) => void response.writeHead(200, SSE).end(event(rpc('7', toolText('x')))),
    ],
    ['no answer at all', 'upstream_invalid', ({ response }) => void response.writeHead(200, SSE).end()],
    ['202 and nothing more', 'upstream_invalid', ({ response }) => void response.writeHead(202).end()],
    [
      'no JSON',
      'upstream_invalid',
      ({ response }) => void response.writeHead(200, { 'content-type': 'application/json' }).end('<html>'),
    ],
    [
      'another content type',
      'upstream_invalid',
      ({ response }) => void response.writeHead(200, { 'content-type': 'text/html' }).end('{}'),
    ],
    [
      'a broken connection',
      'upstream_network',
      ({ response }) => {
        response.writeHead(200, SSE)
        response.write('data: {"jsonrpc"')
        setImmediate(() => response.destroy())
      },
    ],
    [
      'nesting that counts as a hit',
      'reflection',
      ({ message }) => rpc(message.id, { content: [], structuredContent: { a: nested(70) } }),
    ],
    [
      'nesting that no stack holds',
      'upstream_invalid',
      ({ message, response }) =>
        void response
          .writeHead(200, { 'content-type': 'application/json' })
          .end(`{"jsonrpc":"2.0","id":${message.id},"result":${'['.repeat(200_000)}${']'.repeat(200_000)}}`),
    ],
    ['a result that is none', 'upstream_invalid', ({ message }) => rpc(message.id, { content: 'x' })],
  ]
  test.each(CASES)('%s ends the call: %s', async (_, reason, script) => {
    const { answer, event: ended, received } = await ask(script)
    expect([answer.status, ended.reason, ended.status]).toEqual([502, reason, 502])
    expect(received).not.toMatch(/srv|steal|html/)
  })

  test('a stream that never ends is closed with the call’s time', async () => {
    let closed = () => {}
    const gone = new Promise<void>((resolve) => {
      closed = resolve
    })
    const { event: ended } = await ask(
      ({ response }) => {
        response.writeHead(200, SSE)
        response.write(': hello\n\n')
        response.on('close', () => closed())
      },
      { callMs: 400, meanwhile: gone },
    )
    expect(ended.reason).toBe('timeout')
  })

  test('W-16 an answer in a stream that stays open is passed on, and the stream closed', async () => {
    let closed = () => {}
    const gone = new Promise<void>((resolve) => {
      closed = resolve
    })
    const script: HostileScript = ({ message, response }) => {
      response.writeHead(200, SSE)
      response.write(event(rpc(message.id, toolText('here'))))
      response.on('close', () => closed())
    }
    const { answer } = await ask(script, { meanwhile: gone })
    expect(answer.json.result).toEqual(toolText('here'))
  })

  test('requests for sampling, elicitation and roots are refused, and too many end the call', async () => {
    const asks = (count: number): HostileScript => {
      return ({ message, response }) => {
        response.writeHead(200, SSE)
        for (let id = 0; id < count; id += 1) {
          const method = ['sampling/createMessage', 'elicitation/create', 'roots/list'][id % 3]
          const params = { messages: [], maxTokens: 1, message: 'Your key?', requestedSchema: {} }
          response.write(event({ jsonrpc: '2.0', id: `ask-${id}`, method, params }))
        }
        setTimeout(() => response.end(event(rpc(message.id, toolText('done')))), 100)
      }
    }
    const few = await ask(asks(3))
    expect(few.answer.json.result).toEqual(toolText('done'))
    const replies = few.seen.map(({ body }) => body).filter((body) => body.includes('"ask-'))
    expect(replies.map((body) => JSON.parse(body).error?.code)).toEqual([-32601, -32601, -32601])
    const many = await ask(asks(1000))
    expect([many.answer.status, many.event.reason]).toEqual([502, 'upstream_invalid'])
    expect(many.seen.length).toBeLessThanOrEqual(WIRE_LIMITS.requests + 3)
  })

  test('what is not part of a result stays behind', async () => {
    const { answer } = await ask(({ message }) =>
      rpc(message.id, {
        content: [
          { type: 'text', text: 'a', annotations: { audience: ['user'] }, _meta: { x: 1 }, extra: 1 },
          { type: 'image', data: 'aGk=', mimeType: 'image/png', path: '/srv' },
          { type: 'resource', resource: { uri: 'a:b', text: 't', secret: 's' } },
          { type: 'resource_link', uri: 'a:b', name: 'n', more: 1 },
        ],
        structuredContent: { n: 1 },
        isError: false,
        _meta: { host: 'h' },
        more: 1,
      }),
    )
    expect(answer.json).toEqual({
      jsonrpc: '2.0',
      id: 1,
      result: {
        content: [
          { type: 'text', text: 'a' },
          { type: 'image', data: 'aGk=', mimeType: 'image/png' },
          { type: 'resource', resource: { uri: 'a:b', text: 't' } },
          { type: 'resource_link', uri: 'a:b', name: 'n' },
        ],
        structuredContent: { n: 1 },
      },
    })
  })

  test('an error of the protocol is passed on: its code and a short message', async () => {
    const { answer, event: ended } = await ask(({ message }) =>
      rpcError(message.id, -32602, 'x'.repeat(5000)),
    )
    expect([answer.status, ended.reason]).toEqual([200, 'ok'])
    expect(answer.json).toEqual({
      jsonrpc: '2.0',
      id: 1,
      error: { code: -32602, message: expect.any(String) },
    })
    expect(answer.json.error.message.length).toBeLessThan(1100)
  })
})

describe('PC-07 and W-22 [reflect:stopped] a server that gives the token back', () => {
  const token = canary()
  const forms: [string, object][] = [
    ['in a text', toolText(`it is ${token}`)],
    ['in base64', toolText(Buffer.from(`Bearer ${token}`).toString('base64'))],
    ['in JSON inside of a text', toolText(JSON.stringify({ a: JSON.stringify({ token }) }))],
    ['as a key', { content: [], structuredContent: { [token]: 1 } }],
    ['in percent form', toolText(encodeURIComponent(token))],
  ]
  test.each(forms)('%s', async (_, result) => {
    const { answer, event: ended, received } = await ask(({ message }) => rpc(message.id, result), { token })
    expect([answer.status, ended.reason]).toEqual([502, 'reflection'])
    expect(findSecret(received, token)).toEqual([])
  })
  test('in an error', async () => {
    const { received, event: ended } = await ask(({ message }) => rpcError(message.id, -32000, token), {
      token,
    })
    expect([findSecret(received, token), ended.reason]).toEqual([[], 'reflection'])
  })
  test('at the place where an error is cut', async () => {
    const { received, event: ended } = await ask(
      ({ message }) => rpcError(message.id, -32000, 'x'.repeat(1001 - token.length) + token),
      { token },
    )
    expect(ended.reason).toBe('reflection')
    expect(received).not.toContain(token.slice(0, -1))
  })
  test('in the answer of another server: a turn’s secrets are looked for everywhere', async () => {
    const first = await hostileServer(({ message }) => rpc(message.id, toolText('thanks')))
    const second = await hostileServer(({ message }) => rpc(message.id, toolText(token)))
    const common = { tools: ['echo'], allowHttp: true }
    await using rig = await openRig({
      mcp: [
        makeServer({ name: 'first', url: first.url, ...common, token: () => token }, LIMITS),
        makeServer({ name: 'second', url: second.url, ...common }, LIMITS),
      ],
    })
    const { nonce } = rig.broker.bind(turnInput())
    using guest = rig.guest()
    const statuses: number[] = []
    for (const path of ['/mcp/first', '/mcp/second']) {
      statuses.push((await guest.call({ path, headers: callHeaders(nonce), body: BODY })).status)
    }
    expect(statuses).toEqual([200, 502])
    await first[Symbol.asyncDispose]()
    await second[Symbol.asyncDispose]()
  })
})

describe('W-35 a hostile list', () => {
  async function specs(tools: unknown, token = canary()) {
    await using server = await hostileServer(({ message }) => rpc(message.id, { tools }))
    const options = {
      name: 'notes',
      url: server.url,
      tools: ['echo', 'other'],
      allowHttp: true,
      token: () => token,
    }
    await using rig = await openRig({ mcp: [makeServer(options, LIMITS)] }, { listMs: 2_000 })
    rig.broker.bind(turnInput())
    return { shown: await rig.broker.mcpSpecs(), event: rig.events[0] }
  }
  const inputSchema = { type: 'object' }

  test('a token in a description hides the server', async () => {
    const token = canary()
    const { shown, event: told } = await specs([{ name: 'echo', description: token, inputSchema }], token)
    expect([shown, told?.reason]).toEqual([[], 'reflection'])
  })
  test('a token where a description is cut hides it too', async () => {
    const token = canary()
    const description = 'x'.repeat(2049 - token.length) + token
    const { shown, event: told } = await specs([{ name: 'echo', description, inputSchema }], token)
    expect([shown, told?.reason]).toEqual([[], 'reflection'])
  })
  test('a tool with a remote reference is left out, the other one stays', async () => {
    const { shown, event: told } = await specs([
      {
        name: 'echo',
        inputSchema: { ...inputSchema, properties: { a: { $ref: 'https://evil.example/s' } } },
      },
      {
        name: 'other',
        inputSchema: { ...inputSchema, $schema: 'https://json-schema.org/draft/2020-12/schema' },
      },
    ])
    expect(shown[0]?.tools).toEqual([{ name: 'other', description: '', parameters: { type: 'object' } }])
    expect(told?.droppedFields).toEqual(['echo'])
  })
  test('long descriptions are cut, and what does not fit into a turn is left out', async () => {
    const long = { properties: { a: { description: 'd'.repeat(31_000) } } }
    const { shown, event: told } = await specs([
      { name: 'echo', description: 'x'.repeat(100_000), inputSchema },
      { name: 'other', description: 'x', inputSchema: { ...inputSchema, ...long } },
    ])
    expect(shown[0]?.tools.map(({ name, description }) => [name, description.length])).toEqual([
      ['echo', 2048],
    ])
    expect(told?.droppedFields).toEqual(['other'])
  })
  test.each([
    ['no list', 'tools'],
    ['a list of nothing', [null]],
    ['a schema that is none', [{ name: 'echo', inputSchema: 'x' }]],
  ])('%s hides the server', async (_, tools) => {
    const { shown, event: told } = await specs(tools)
    expect([shown, told?.status]).toEqual([[], 502])
  })
  test('pages without end do too', async () => {
    let page = 0
    await using server = await hostileServer(({ message }) =>
      rpc(message.id, { tools: [{ name: `t${page}`, inputSchema }], nextCursor: String(++page) }),
    )
    const options = { name: 'notes', url: server.url, tools: ['echo'], allowHttp: true }
    await using rig = await openRig({ mcp: [makeServer(options, LIMITS)] })
    rig.broker.bind(turnInput())
    expect(await rig.broker.mcpSpecs()).toEqual([])
    expect(page).toBeLessThan(10)
  })
  test('a server that is silent costs the turn no more than the listing’s time', async () => {
    await using server = await hostileServer(() => undefined)
    const options = { name: 'notes', url: server.url, tools: ['echo'], allowHttp: true }
    await using rig = await openRig({ mcp: [makeServer(options, LIMITS)] }, { listMs: 200 })
    rig.broker.bind(turnInput())
    expect(await rig.broker.mcpSpecs()).toEqual([])
    expect(rig.events[0]).toMatchObject({ reason: 'timeout', droppedFields: ['echo'] })
  })
})

function nested(depth: number): unknown {
  let value: unknown = 'x'
  for (let level = 0; level < depth; level += 1) value = [value]
  return value
}

function flood(
  response: { write(text: string): boolean; on(name: string, run: () => void): void },
  first: string,
  more: string,
): void {
  let open = true
  response.on('close', () => {
    open = false
  })
  response.write(first)
  const next = () => {
    if (!open) return
    response.write(more)
    setImmediate(next)
  }
  next()
}
