import { limits, MESSAGE_TABLE, SEALED_PLACEHOLDER } from '@sandbox/protocol'
import { describe, expect, test } from 'vitest'
import type { CallReason } from '../src/index.ts'
import { callHeaders, type GuestRequest } from './support/guest.ts'
import { MODEL_BODY, modelCall, openRig, type Rig, turnInput } from './support/rig.ts'

const TOOL = {
  name: 'echo',
  description: 'Echoes.',
  parameters: { type: 'object' },
  execute: (input: Record<string, unknown>) => JSON.stringify(input),
}

async function refused(rig: Rig, request: GuestRequest) {
  using guest = rig.guest()
  const answer = await guest.call(request)
  const event = await rig.reported((seen) => seen.reason !== 'ok')
  return { status: answer.status, code: answer.json?.error?.code, reason: event.reason, answer }
}

describe('SB-05 the order of the checks [call:bounded]', () => {
  const wrong = {
    method: 'GET',
    path: '/nowhere?x=1',
    header: { cookie: 'a=b' },
    credential: { authorization: 'Bearer mine' },
    host: { host: 'evil' },
  }
  const rows: [CallReason, number, GuestRequest][] = [
    [
      'not_found',
      404,
      { method: 'GET', path: '/model', headers: { ...wrong.header, ...wrong.credential, ...wrong.host } },
    ],
    [
      'header_refused',
      403,
      { path: '/nowhere', headers: { ...wrong.header, ...wrong.credential, ...wrong.host } },
    ],
    ['credential_refused', 403, { path: '/nowhere', headers: { ...wrong.credential, ...wrong.host } }],
    ['host_refused', 403, { path: '/nowhere', headers: wrong.host }],
    ['not_found', 404, { path: '/nowhere' }],
    ['nonce_refused', 410, { path: '/model', body: 'not json' }],
  ]
  test.each(rows)('%s comes before all that is wrong later (%i)', async (reason, status, request) => {
    await using rig = await openRig()
    rig.broker.bind(turnInput())
    expect(await refused(rig, request)).toMatchObject({ status, reason })
    expect(rig.upstream.seen).toEqual([])
  })

  test('SB-13 refusals before the budget spend nothing; every admitted call spends one, whatever comes of it', async () => {
    await using rig = await openRig({ maxCalls: 2, tools: [TOOL] })
    const { nonce } = rig.broker.bind(turnInput())
    using guest = rig.guest()
    for (const request of [
      { path: '/model?x', headers: callHeaders(nonce) },
      { path: '/model', headers: { ...callHeaders(nonce), cookie: 'a=b' } },
      { path: '/model', headers: { ...callHeaders(nonce), authorization: 'Bearer x' } },
      { path: '/model', headers: { ...callHeaders(nonce), host: 'evil' } },
      { path: '/tools/none', headers: callHeaders(nonce) },
      { path: '/model', headers: callHeaders('0'.repeat(64)) },
    ]) {
      expect((await guest.call(request)).status).toBeGreaterThanOrEqual(400)
    }
    const call = (body: unknown) => guest.call({ path: '/tools/echo', headers: callHeaders(nonce), body })
    expect((await call('not json')).status).toBe(400)
    expect((await call({ a: 1 })).status).toBe(200)
    const last = await call({ a: 1 })
    expect(last.status).toBe(429)
    expect(last.json.error.code).toBe('budget_spent')
    expect(last.headers['x-should-retry']).toBe('false')
  })
})

describe('SB-06 method and query', () => {
  test.each(['GET', 'PUT', 'DELETE', 'HEAD', 'OPTIONS', 'PATCH'])('%s is 404', async (method) => {
    await using rig = await openRig()
    const { nonce } = rig.broker.bind(turnInput())
    using guest = rig.guest()
    guest.send({ method, path: '/model', headers: callHeaders(nonce) })
    expect((await rig.reported(() => true)).reason).toBe('not_found')
  })
  test.each(['/model?', '/model?beta=true', '/model#', '/model#a', '/tools/echo?x', '/nowhere?x'])(
    '%s is 404',
    async (path) => {
      await using rig = await openRig({ tools: [TOOL] })
      const { nonce } = rig.broker.bind(turnInput())
      expect(await refused(rig, { path, headers: callHeaders(nonce) })).toMatchObject({ status: 404 })
    },
  )
})

describe('SB-07 headers [call:no-guest-headers]', () => {
  const names = [
    'connection',
    'keep-alive',
    'proxy-authenticate',
    'proxy-authorization',
    'te',
    'trailer',
    'upgrade',
    'expect',
    'x-api-key',
    'api-key',
    'x-goog-api-key',
    'cookie',
    'forwarded',
    'x-forwarded-host',
    'x-forwarded-for',
    'x-forwarded-proto',
    'x-provider-token',
    'content-encoding',
    'x-sandbox-worker',
    'constructor',
  ]
  test.each(names)('T32 %s is refused and nothing is forwarded', async (name) => {
    await using rig = await openRig()
    const { nonce } = rig.broker.bind(turnInput())
    const headers = { ...callHeaders(nonce), [name]: 'value' }
    const found = await refused(rig, { path: '/model', headers, body: MODEL_BODY })
    expect(found).toMatchObject({ status: 403, code: 'header_refused', reason: 'header_refused' })
    expect(rig.upstream.seen).toEqual([])
  })

  test('transfer-encoding is refused', async () => {
    await using rig = await openRig()
    const { nonce } = rig.broker.bind(turnInput())
    using guest = rig.guest()
    guest.write(
      `POST /model HTTP/1.1\r\nhost: broker\r\nx-sandbox-turn: ${nonce}\r\ntransfer-encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n`,
    )
    expect((await guest.answer())?.json.error.code).toBe('header_refused')
  })

  test('every listed header is admitted, in any letter case', async () => {
    await using rig = await openRig()
    const { nonce } = rig.broker.bind(turnInput())
    using guest = rig.guest()
    const answer = await guest.call({
      path: '/model',
      headers: {
        'X-Sandbox-Turn': nonce,
        Authorization: `Bearer ${SEALED_PLACEHOLDER}`,
        'Content-Type': 'application/json',
        Accept: '*/*',
        'Accept-Encoding': 'gzip',
        'User-Agent': 'guest',
      },
      body: MODEL_BODY,
    })
    expect(answer.status).toBe(200)
  })

  test('a listed header that comes twice is refused', async () => {
    await using rig = await openRig()
    const { nonce } = rig.broker.bind(turnInput())
    using guest = rig.guest()
    guest.write(
      `POST /model HTTP/1.1\r\nhost: broker\r\nx-sandbox-turn: ${nonce}\r\nx-sandbox-turn: ${nonce}\r\ncontent-length: 2\r\n\r\n{}`,
    )
    expect((await guest.answer())?.json.error.code).toBe('header_refused')
  })
})

describe('SB-08 and SB-09 credential and host', () => {
  test.each([
    'Bearer x',
    `bearer ${SEALED_PLACEHOLDER}`,
    SEALED_PLACEHOLDER,
    `Bearer ${SEALED_PLACEHOLDER} `,
    '',
  ])('SB-08 authorization "%s"', async (authorization) => {
    await using rig = await openRig()
    const { nonce } = rig.broker.bind(turnInput())
    const headers = { ...callHeaders(nonce), authorization }
    const trimmed = authorization.trim() === `Bearer ${SEALED_PLACEHOLDER}`
    const answer = await modelWith(rig, headers)
    expect(answer.status).toBe(trimmed ? 200 : 403)
    if (!trimmed) expect(answer.json.error.code).toBe('credential_refused')
  })
  test('SB-08 no authorization at all is fine', async () => {
    await using rig = await openRig()
    const { nonce } = rig.broker.bind(turnInput())
    expect((await modelWith(rig, { 'x-sandbox-turn': nonce })).status).toBe(200)
  })
  test.each(['evil', 'Broker', 'broker:80', 'broker.', ''])('SB-09 host "%s"', async (host) => {
    await using rig = await openRig()
    const { nonce } = rig.broker.bind(turnInput())
    const answer = await modelWith(rig, { ...callHeaders(nonce), host })
    expect(answer.status).toBe(403)
    expect(answer.json.error.code).toBe('host_refused')
  })
  test('SB-09 no host at all is fine', async () => {
    await using rig = await openRig()
    const { nonce } = rig.broker.bind(turnInput())
    using guest = rig.guest()
    const body = JSON.stringify(MODEL_BODY)
    guest.write(
      `POST /model HTTP/1.1\r\nx-sandbox-turn: ${nonce}\r\ncontent-length: ${body.length}\r\n\r\n${body}`,
    )
    expect((await guest.answer())?.status).toBe(200)
  })
  async function modelWith(rig: Rig, headers: Record<string, string>) {
    using guest = rig.guest()
    return await guest.call({ path: '/model', headers, body: MODEL_BODY })
  }
})

test.each([
  '/',
  '/health',
  '/Model',
  '/model/',
  '/model/x',
  '//model',
  '/x/../model',
  '/%6dodel',
  '/tools',
  '/tools/',
  '/tools/ech%6f',
  '/tools/echo/',
  '/tools/constructor',
  '/tools/__proto__',
  '/tools/toString',
  '/mcp/echo',
  '/v1/messages',
  '/v1/responses',
  '/v1/chat/completions/',
  '/v1/models',
  '/worker',
  '/worker/',
  '/worker/config',
  '/worker/heartbeat',
])('SB-10 %s is 404 [call:listed-routes-only]', async (path) => {
  await using rig = await openRig({ tools: [TOOL] })
  const { nonce } = rig.broker.bind(turnInput())
  const found = await refused(rig, { path, headers: callHeaders(nonce), body: MODEL_BODY })
  expect(found).toMatchObject({ status: 404, code: 'not_found' })
  expect(rig.upstream.seen).toEqual([])
})

describe('W-01 and SB-11 whose turn [turn:nonce-required]', () => {
  test('before bind every call is 410, and the getter is not asked', async () => {
    let asked = 0
    await using rig = await openRig({ apiKey: () => `${++asked}`.repeat(20) })
    const answer = await modelCall(rig, 'f'.repeat(64))
    expect(answer.status).toBe(410)
    expect(asked).toBe(0)
  })
  test('a wrong, a missing and a near nonce are 410 alike, and spend nothing', async () => {
    let asked = 0
    await using rig = await openRig({ maxCalls: 1, apiKey: () => `${++asked}`.repeat(20) })
    const { nonce } = rig.broker.bind(turnInput())
    const near = `${nonce.slice(0, -1)}${nonce.endsWith('0') ? '1' : '0'}`
    const texts = new Set<string>()
    for (const wrong of ['f'.repeat(64), near, nonce.slice(1), `${nonce}0`]) {
      const answer = await modelCall(rig, wrong)
      expect(answer.status).toBe(410)
      texts.add(answer.text)
    }
    using guest = rig.guest()
    const missing = await guest.call({ path: '/model', body: MODEL_BODY })
    expect(missing.status).toBe(410)
    texts.add(missing.text)
    expect(texts.size).toBe(1)
    expect(asked).toBe(0)
    expect((await modelCall(rig, nonce)).status).toBe(200)
    expect(asked).toBe(1)
  })
  test('SB-11 after release, and after the signal fired, every call is 410', async () => {
    for (const end of ['release', 'signal'] as const) {
      await using rig = await openRig()
      const control = new AbortController()
      const bound = rig.broker.bind(turnInput({ signal: control.signal }))
      expect((await modelCall(rig, bound.nonce)).status).toBe(200)
      if (end === 'release') bound.release()
      else control.abort()
      bound.release()
      const answer = await modelCall(rig, bound.nonce)
      expect(answer.status).toBe(410)
      expect(answer.json.error.code).toBe('turn_over')
      expect(rig.upstream.seen).toHaveLength(1)
    }
  })
  test('SB-11 a turn whose signal had fired before bind is over at once', async () => {
    await using rig = await openRig()
    const { nonce } = rig.broker.bind(turnInput({ signal: AbortSignal.abort() }))
    expect((await modelCall(rig, nonce)).status).toBe(410)
  })
  test('SB-31 a second bind throws, also after the first turn is over', async () => {
    await using rig = await openRig()
    const bound = rig.broker.bind(turnInput())
    expect(() => rig.broker.bind(turnInput())).toThrow(expect.objectContaining({ code: 'already_bound' }))
    bound.release()
    expect(() => rig.broker.bind(turnInput())).toThrow(expect.objectContaining({ code: 'already_bound' }))
  })
  test('two turns never share a nonce', async () => {
    const seen = new Set<string>()
    for (let count = 0; count < 4; count += 1) {
      await using rig = await openRig()
      seen.add(rig.broker.bind(turnInput()).nonce)
    }
    expect(seen.size).toBe(4)
  })
})

describe('SB-15, SB-16, W-30 bodies [call:bounded]', () => {
  async function post(body: string, headers: Record<string, string> = {}) {
    const rig = await openRig({ tools: [TOOL] })
    const { nonce } = rig.broker.bind(turnInput())
    const guest = rig.guest()
    guest.send({ path: '/tools/echo', headers: { ...callHeaders(nonce), ...headers }, body })
    const answer = await guest.answer()
    const event = await rig.reported(() => true)
    await rig[Symbol.asyncDispose]()
    return { answer, event }
  }
  const LIMIT = limits.SEALED_CALL_BODY_BYTES
  const sized = (size: number) => `{"a":"${'x'.repeat(size - 8)}"}`

  test('the largest body passes', async () => {
    const { answer, event } = await post(sized(LIMIT))
    expect(answer?.status).toBe(200)
    expect(event.requestBytes).toBe(LIMIT)
  })
  test('one byte more is 413, read or not', async () => {
    const { answer, event } = await post(sized(LIMIT + 1))
    expect(answer?.status).toBe(413)
    expect(answer?.headers['x-should-retry']).toBe('false')
    expect(answer?.headers.connection).toBe('close')
    expect(event).toMatchObject({ reason: 'body_too_large', requestBytes: 0 })
  })
  test('W-30 an announced length over the limit is refused before any of it arrives', async () => {
    await using rig = await openRig({ tools: [TOOL] })
    const { nonce } = rig.broker.bind(turnInput())
    using guest = rig.guest()
    guest.write(
      `POST /tools/echo HTTP/1.1\r\nx-sandbox-turn: ${nonce}\r\ncontent-length: 99999999999\r\n\r\n`,
    )
    expect((await guest.answer())?.status).toBe(413)
    await guest.closed
  })
  test.each(['', 'null', '"text"', '[]', '[{}]', '1', '{', '{"a":1}x', '{"a":"\xff'])(
    'SB-16 %s is 400',
    async (body) => {
      const { answer } = await post(body)
      expect(answer?.status).toBe(400)
      expect(answer?.json.error.code).toBe('body_invalid')
      expect(answer?.headers['x-should-retry']).toBe('false')
    },
  )
  test('bytes that are no UTF-8 are 400', async () => {
    await using rig = await openRig({ tools: [TOOL] })
    const { nonce } = rig.broker.bind(turnInput())
    using guest = rig.guest()
    guest.write(`POST /tools/echo HTTP/1.1\r\nx-sandbox-turn: ${nonce}\r\ncontent-length: 9\r\n\r\n`)
    guest.write(Uint8Array.from([...Buffer.from('{"a":"'), 0xff, ...Buffer.from('"}')]))
    expect((await guest.answer())?.status).toBe(400)
  })
  test('W-43 nesting is capped at 64', async () => {
    const nested = (depth: number) => `{"a":${'['.repeat(depth)}${']'.repeat(depth)}}`
    expect((await post(nested(63))).answer?.status).toBe(200)
    expect((await post(nested(64))).answer?.status).toBe(400)
    expect((await post(nested(100_000))).answer?.status).toBe(400)
  })
})

test('the routes are those of the message table, and nothing else', async () => {
  await using rig = await openRig({ tools: [TOOL] })
  using guest = rig.guest()
  const built = ['hello', 'next', 'ack', 'result', 'model', 'tool']
  for (const row of MESSAGE_TABLE.filter(({ mode }) => mode !== 'pi')) {
    const path = row.path.replace('<name>', 'echo').replace('<server>', 'echo')
    const answer = await guest.call({
      method: row.method,
      path,
      body: row.method === 'POST' ? {} : undefined,
    })
    expect([row.message, answer.status !== 404]).toEqual([row.message, built.includes(row.message)])
  }
})
