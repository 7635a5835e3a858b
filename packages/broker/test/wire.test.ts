import { canary, encodingsOf, findSecret } from '@sandbox/testing'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import type { BrokerOptions } from '../src/index.ts'
import { gate } from './support/gate.ts'
import { callHeaders, type GuestAnswer } from './support/guest.ts'
import { MODEL_BODY, openRig, type Rig, turnInput } from './support/rig.ts'

const PATH = '/v1/chat/completions'
const ASK = { messages: [{ role: 'user', content: 'hi' }] }

/** One call on a connection of its own. */
async function call(
  rig: Rig,
  nonce: string,
  more: { path?: string; body?: unknown; headers?: Record<string, string> } = {},
) {
  using guest = rig.guest()
  const { path = PATH, body = ASK, headers = {} } = more
  return await guest.call({ path, body, headers: { ...callHeaders(nonce), ...headers } })
}

async function once(
  script: Rig['upstream']['script'],
  options: Partial<BrokerOptions> = {},
): Promise<{ answer: GuestAnswer; rig: Rig; received: Buffer }> {
  await using rig = await openRig(options)
  rig.upstream.script = script
  const { nonce } = rig.broker.bind(turnInput())
  using guest = rig.guest()
  const answer = await guest.call({ path: PATH, body: ASK, headers: callHeaders(nonce) })
  await rig.reported(() => true)
  return { answer, rig, received: guest.received }
}

describe('decision 9 and captures 2: headers of clients that we do not write', () => {
  test('T32 and T34 whatever the guest sends, none of it reaches the provider [call:no-guest-headers]', async () => {
    await using rig = await openRig()
    const { nonce } = rig.broker.bind(turnInput())
    const names = [
      'x-api-key',
      'api-key',
      'x-goog-api-key',
      'cookie',
      'proxy-authorization',
      'x-stainless-lang',
      'openai-organization',
      'accept-language',
      'x-sandbox-scope',
      'forwarded',
      'user-agent',
      'traceparent',
    ]
    for (const token of ['Bearer guest-credential-1', 'Bearer sandbox-dummy-key', 'Basic Z3Vlc3Q6Z3Vlc3Q=']) {
      using guest = rig.guest()
      const body = JSON.stringify(ASK)
      const twice = names.map(
        (name) => `${name}: guest-credential\r\n${name.toUpperCase()}: guest-credential\r\n`,
      )
      guest.write(
        `POST ${PATH} HTTP/1.1\r\nhost: 127.0.0.1:8080\r\nconnection: keep-alive\r\nx-sandbox-turn: ${nonce}\r\n` +
          `authorization: ${token}\r\n${twice.join('')}content-length: ${body.length}\r\n\r\n${body}`,
      )
      expect((await guest.answer())?.status).toBe(200)
    }
    for (const seen of rig.upstream.seen) {
      const raw = JSON.stringify(seen.rawHeaders).toLowerCase()
      expect(raw).not.toMatch(/guest|dummy|z3vlc3q|sandbox|stainless|cookie/)
      expect(raw.split('authorization')).toHaveLength(2)
      expect(seen.headers.authorization).toBe(`Bearer ${rig.secret}`)
    }
    expect(rig.upstream.seen).toHaveLength(3)
  })
  test('T34 property: no set of headers gets a byte to the provider [call:no-guest-headers]', async () => {
    await using rig = await openRig({ maxCalls: 1000 })
    const { nonce } = rig.broker.bind(turnInput())
    const name = fc.oneof(
      fc.constantFrom('authorization', 'x-api-key', 'cookie', 'accept', 'content-type', 'x-forwarded-host'),
      fc.stringMatching(/^x-[a-z0-9-]{1,20}$/),
    )
    const value = fc.oneof(
      fc.constantFrom('Bearer sandbox-dummy-key', 'sandbox-dummy-key'),
      fc.stringMatching(/^guest-[!-~]{0,30}$/),
    )
    const sets = fc.uniqueArray(fc.tuple(name, value), { maxLength: 12, selector: ([name]) => name })
    await fc.assert(
      fc.asyncProperty(sets, async (set) => {
        using guest = rig.guest()
        const body = JSON.stringify(ASK)
        const lines = set
          .filter(([name]) => name !== 'x-sandbox-turn')
          .map(([name, text]) => `${name}: ${text}\r\n`)
        guest.write(
          `POST ${PATH} HTTP/1.1\r\nhost: broker\r\n${lines.join('')}x-sandbox-turn: ${nonce}\r\ncontent-length: ${body.length}\r\n\r\n${body}`,
        )
        expect((await guest.answer())?.status).toBe(200)
        const { host, connection, ...headers } = rig.upstream.seen.at(-1)?.headers ?? {}
        expect(headers).toEqual({
          accept: 'application/json',
          authorization: `Bearer ${rig.secret}`,
          'content-length': expect.any(String),
          'content-type': 'application/json',
        })
      }),
      { numRuns: 50 },
    )
  })
  test.each<[what: string, head: string, status: number]>([
    ['a second authorization', 'authorization: Bearer a\r\nauthorization: Bearer b\r\n', 400],
    ['a second host', 'host: broker\r\n', 400],
    ['an unknown header', 'x-anything: 1\r\n', 200],
    ['an upgrade', 'upgrade: h2c\r\nconnection: upgrade\r\n', 403],
    ['te', 'te: trailers\r\n', 403],
    ['a trailer', 'trailer: x-api-key\r\n', 403],
    ['a connection header that names others', 'connection: x-sandbox-turn\r\n', 403],
    ['a second content-type', 'content-type: a\r\ncontent-type: b\r\n', 403],
    ['a compressed body', 'content-encoding: gzip\r\n', 403],
    ['expect', 'expect: 100-continue\r\n', 403],
  ])('%s', async (_, head, status) => {
    await using rig = await openRig()
    const { nonce } = rig.broker.bind(turnInput())
    using guest = rig.guest()
    const body = JSON.stringify(ASK)
    guest.write(
      `POST ${PATH} HTTP/1.1\r\nhost: broker\r\n${head}x-sandbox-turn: ${nonce}\r\ncontent-length: ${body.length}\r\n\r\n${body}`,
    )
    const answer = await guest.answer()
    // An upgrade may also cost the connection.
    expect(answer?.status ?? 403).toBe(status)
    expect(rig.upstream.seen).toHaveLength(status === 200 ? 1 : 0)
  })
  test.each(['evil.example', 'broker:80', '127.0.0.1.evil.example', 'localhost:x'])(
    'SB-09 host %s is refused',
    async (host) => {
      await using rig = await openRig()
      const { nonce } = rig.broker.bind(turnInput())
      expect((await call(rig, nonce, { headers: { host } })).json.error.code).toBe('host_refused')
    },
  )
  test('W-01 a chunked body is fine, a wrong nonce is not [turn:nonce-required]', async () => {
    await using rig = await openRig()
    const { nonce } = rig.broker.bind(turnInput())
    using guest = rig.guest()
    const body = JSON.stringify(ASK)
    const head = (turn: string) =>
      `POST ${PATH} HTTP/1.1\r\nhost: broker\r\nx-sandbox-turn: ${turn}\r\ntransfer-encoding: chunked\r\n\r\n`
    guest.write(`${head(nonce)}${body.length.toString(16)}\r\n${body}\r\n0\r\n\r\n`)
    expect((await guest.answer())?.status).toBe(200)
    const answer = await call(rig, 'f'.repeat(64))
    expect(answer).toMatchObject({ status: 410, headers: { 'x-should-retry': 'false' } })
    expect(answer.json.error).toMatchObject({ code: 'turn_over', type: 'invalid_request_error', param: null })
  })
})

describe('T45 and decision 11 bodies travel as their own bytes', () => {
  test('a request with nothing to change', async () => {
    await using rig = await openRig()
    const { nonce } = rig.broker.bind(turnInput())
    const body =
      '{ "model" : "host-model", "seed":12345678901234567890,\n"max_tokens":100,"messages":[{"content":"\\u00e9 <>& \\/","role":"user"}] }'
    expect((await call(rig, nonce, { body })).status).toBe(200)
    expect(rig.upstream.seen[0]?.body).toBe(body)
  })
  test('T41 only what the host decides is changed, and named [call:host-chooses-model]', async () => {
    await using rig = await openRig({
      maxOutputTokens: 50,
      allowFields: ['top_k'],
      setFields: { service_tier: 'flex' },
    })
    const { nonce } = rig.broker.bind(turnInput())
    const body =
      '{"model":"gpt-guest","x":1,"top_k":5,"messages":[{"role":"user","content":"\\u00e9"}],"max_tokens":99,"service_tier":"priority"}'
    expect((await call(rig, nonce, { body })).status).toBe(200)
    expect(rig.upstream.seen[0]?.body).toBe(
      '{"model":"host-model","top_k":5,"messages":[{"role":"user","content":"\\u00e9"}],"max_tokens":50,"service_tier":"flex"}',
    )
    expect((await rig.reported(() => true)).droppedFields).toEqual(expect.arrayContaining(['x']))
  })
  test('an answer', async () => {
    const body = '{ "id":1, "big": 12345678901234567890.10, "choices" : [],\n "1":"\\u00e9 \\/ <>&" }'
    const { answer } = await once(
      (_, response) => void response.writeHead(200, { 'content-type': 'application/json' }).end(body),
    )
    expect(answer.text).toBe(body)
  })
})

describe('what a provider sends back of the key [reflect:stopped] [secret:not-in-guest-bytes] [secret:not-in-host-output]', () => {
  const secret = canary('sk-proj-canary')
  const escaped = JSON.stringify(secret).replaceAll('-', '\\u002d')
  const bodies: [what: string, body: string][] = [
    ...[...encodingsOf(secret)]
      .filter(([name]) => name !== 'utf16le' && !name.startsWith('json'))
      .map(([name, bytes]): [string, string] => [
        name,
        JSON.stringify({ error: { message: `bad key ${bytes.toString('latin1')}xx` } }),
      ])
      .filter(([name]) => !name.startsWith('base64')),
    ['base64', JSON.stringify({ error: Buffer.from(`Bearer ${secret}`).toString('base64') })],
    ['an escaped value', `{"a":${escaped}}`],
    ['an escaped key', `{${escaped}:1}`],
    ['a key that comes twice', `{"a":${escaped},"a":"x"}`],
    ['JSON in a string', JSON.stringify({ a: `{"b":${escaped}}` })],
  ]
  test.each(bodies)('in an answer: %s', async (_, body) => {
    const script: Rig['upstream']['script'] = (_, response) =>
      void response.writeHead(200, { 'content-type': 'application/json' }).end(body)
    const { answer, rig, received } = await once(script, { apiKey: () => secret })
    expect(answer).toMatchObject({ status: 502, json: { error: { code: 'call_failed' } } })
    expect(findSecret(received, secret)).toEqual([])
    expect(rig.events[0]?.reason).toBe('reflection')
    expect(findSecret(JSON.stringify(rig.events), secret)).toEqual([])
  })
  test.each(bodies)('T30 in an error: %s', async (_, body) => {
    for (const status of [400, 401, 403, 429, 500]) {
      const script: Rig['upstream']['script'] = (_, response) =>
        void response
          .writeHead(status, { 'content-type': 'application/json', 'x-request-id': secret })
          .end(body)
      const { answer, received, rig } = await once(script, { apiKey: () => secret })
      expect(answer.status).toBe(status)
      expect(answer.json.error.code).toMatch(/upstream_(refused|failed)/)
      expect(findSecret(received, secret)).toEqual([])
      expect(answer.text).not.toContain('bad key')
      expect(findSecret(JSON.stringify(rig.events), secret)).toEqual([])
    }
  })
  test('T30 a part of the key in the text about a refused credential', async () => {
    for (const status of [401, 403]) {
      const body = { error: { message: `Incorrect API key: ${secret.slice(0, 8)}****${secret.slice(-4)}` } }
      const { answer } = await once(
        (_, response) => void response.writeHead(status).end(JSON.stringify(body)),
      )
      expect(answer.json.error).toMatchObject({ code: 'upstream_refused' })
      expect(answer.text).not.toContain(secret.slice(0, 8))
    }
  })
})

describe('T24 and W-45 errors of the provider', () => {
  test('status, body and the headers that clients wait by', async () => {
    const body = '{"error" : {"message":"slow down","type":"tokens","code":"rate_limit_exceeded"}}'
    const passed = {
      'retry-after': '7',
      'retry-after-ms': '6500',
      'x-should-retry': 'true',
      'x-request-id': 'req_1',
      'x-ratelimit-remaining-tokens': '0',
      'anthropic-ratelimit-requests-reset': '2026-11-30T00:00:00Z',
    }
    const { answer, rig } = await once((_, response) => {
      response.writeHead(429, {
        ...passed,
        'set-cookie': 'a=b',
        server: 'x',
        'openai-organization': 'acme',
        'x-ratelimit-limit-tokens': 'x'.repeat(300),
      })
      response.end(body)
    })
    expect(answer).toMatchObject({ status: 429, text: body, headers: passed })
    expect(Object.keys(answer.headers)).not.toEqual(expect.arrayContaining(['set-cookie']))
    expect(answer.headers).not.toHaveProperty('x-ratelimit-limit-tokens')
    expect(answer.headers).not.toHaveProperty('openai-organization')
    expect(rig.events[0]).toMatchObject({ status: 429, reason: 'upstream_status', upstreamStatus: 429 })
  })
  test.each<[what: string, body: string]>([
    ['a page', '<html>10.0.0.1 upstream connect error</html>'],
    ['something endless', JSON.stringify({ error: 'x'.repeat(100_000) })],
    ['nothing', ''],
  ])('%s is replaced', async (_, body) => {
    const { answer } = await once((_, response) => void response.writeHead(503).end(body))
    expect(answer.status).toBe(503)
    expect(answer.json.error).toEqual({
      message: 'The upstream service did not give a usable answer.',
      type: 'server_error',
      param: null,
      code: 'upstream_failed',
    })
  })
  test('SB-25 a redirect is no answer', async () => {
    const { answer } = await once(
      (_, response) => void response.writeHead(307, { location: 'https://evil.example' }).end(),
    )
    expect(answer).toMatchObject({ status: 502, json: { error: { code: 'upstream_failed' } } })
  })
})

describe('T40 and W-30 what the broker itself refuses, in the family’s shape', () => {
  const cases: [what: string, options: Partial<BrokerOptions>, body: unknown, expected: object][] = [
    [
      'a spent budget',
      { maxCalls: 1 },
      ASK,
      { status: 429, json: { error: { code: 'budget_spent', type: 'rate_limit_error' } } },
    ],
    [
      'a bad body',
      {},
      '{"messages":',
      { status: 400, json: { error: { code: 'input_refused', type: 'invalid_request_error' } } },
    ],
    [
      'no key',
      { apiKey: () => undefined },
      ASK,
      { status: 502, json: { error: { code: 'no_credential', type: 'server_error' } } },
    ],
    [
      'a native tool',
      {},
      { ...ASK, tools: [{ type: 'web_search' }] },
      {
        status: 400,
        json: { error: { code: 'input_refused', message: expect.stringContaining('tools[0]') } },
      },
    ],
  ]
  test.each(cases)('%s', async (what, options, body, expected) => {
    await using rig = await openRig(options)
    const { nonce } = rig.broker.bind(turnInput())
    if (what === 'a spent budget') await call(rig, nonce)
    const answer = await call(rig, nonce, { body })
    expect(answer).toMatchObject(expected)
    expect(answer.headers['x-should-retry']).toBe('false')
  })
  test('T48d a body over 32 MiB: 413 that names the limit, before it is read', async () => {
    await using rig = await openRig()
    const { nonce } = rig.broker.bind(turnInput())
    using guest = rig.guest()
    const head = Object.entries(callHeaders(nonce)).map(([name, value]) => `${name}: ${value}\r\n`)
    guest.write(`POST ${PATH} HTTP/1.1\r\nhost: broker\r\n${head.join('')}content-length: 33554433\r\n\r\n{`)
    const answer = await guest.answer()
    expect(answer).toMatchObject({ status: 413, headers: { 'x-should-retry': 'false' } })
    expect(answer?.json.error).toMatchObject({
      code: 'body_too_large',
      message: expect.stringContaining('33554432'),
    })
  })
  test('T48d one of 30 MiB passes', async () => {
    await using rig = await openRig()
    const { nonce } = rig.broker.bind(turnInput())
    const content = 'x'.repeat(30 * 1024 * 1024)
    expect((await call(rig, nonce, { body: { messages: [{ role: 'user', content }] } })).status).toBe(200)
    expect(rig.upstream.seen[0]?.body.length).toBeGreaterThan(content.length)
  })
})

describe('W-07 and T74 a key that the provider refuses', () => {
  test('is asked for once more; another one is tried, once, with nothing sent to the guest before', async () => {
    for (const path of [PATH, '/model']) {
      const asked: unknown[] = []
      await using rig = await openRig({
        apiKey: (_, request) => {
          asked.push(request?.rejected?.status)
          return request?.rejected === undefined ? 'key-of-yesterday' : 'key-of-today'
        },
      })
      rig.upstream.script = ({ headers }, response) => {
        if (headers.authorization === 'Bearer key-of-today') return { choices: [] }
        response.writeHead(401).end('{}')
        return undefined
      }
      const { nonce } = rig.broker.bind(turnInput())
      expect((await call(rig, nonce, { path })).status).toBe(200)
      expect(asked).toEqual([undefined, 401])
      expect(rig.upstream.seen).toHaveLength(2)
      expect(rig.events).toHaveLength(1)
    }
  })
  test.each([
    ['200', 200, {}, undefined],
    ['a limit', 429, { 'retry-after': '7' }, 7000],
  ])('the host hears of the wait that the second key is told, not the first: %s', async (...row) => {
    const [, status, headers, retryAfterMs] = row
    await using rig = await openRig({
      apiKey: (_, request) => (request?.rejected === undefined ? 'key-of-yesterday' : 'key-of-today'),
    })
    rig.upstream.script = (request, response) => {
      const isSecond = request.headers.authorization === 'Bearer key-of-today'
      response.writeHead(isSecond ? status : 401, isSecond ? headers : { 'retry-after': '30' }).end('{}')
    }
    const { nonce } = rig.broker.bind(turnInput())
    await call(rig, nonce)
    const event = await rig.reported(() => true)
    expect([event.upstreamStatus, event.retryAfterMs]).toEqual([status, retryAfterMs])
  })
  test.each<[what: string, second: () => string | undefined]>([
    ['the same', () => 'key-of-yesterday'],
    ['none', () => undefined],
    ['another that is refused too', () => 'key-of-today'],
  ])('when the getter then has %s, the refusal stands', async (what, second) => {
    await using rig = await openRig({
      apiKey: (_, request) => (request?.rejected === undefined ? 'key-of-yesterday' : second()),
    })
    rig.upstream.script = (_, response) => void response.writeHead(403).end('{}')
    const { nonce } = rig.broker.bind(turnInput())
    expect(await call(rig, nonce)).toMatchObject({
      status: 403,
      json: { error: { code: 'upstream_refused' } },
    })
    expect(rig.upstream.seen).toHaveLength(what.startsWith('another') ? 2 : 1)
  })
})

describe('issue 4: upstream by scope', () => {
  test('URL, model and slot for a speaker; a bare key goes to its own origin only [secret:own-origin-only]', async () => {
    await using home = await openRig()
    await using away = await openRig()
    const upstream: BrokerOptions['upstream'] = ({ speaker }) =>
      speaker.id === 'u-bob'
        ? {
            modelUrl: `${away.upstream.url}/bob/chat`,
            model: 'bob-model',
            authSlot: { kind: 'query', name: 'key' },
            tokenLimitField: 'max_completion_tokens',
          }
        : undefined
    const keys: Record<string, unknown> = {
      bare: 'key-of-home-0',
      declared: { token: 'key-of-away-0', origin: away.upstream.url },
    }
    for (const kind of ['bare', 'declared']) {
      for (const path of [PATH, '/model']) {
        for (const id of ['u-ann', 'u-bob']) {
          await using rig = await openRig({
            modelUrl: home.upstream.url,
            upstream,
            apiKey: () => keys[kind] as string,
          })
          const { nonce } = rig.broker.bind(
            turnInput({ context: { channel: 'web:room', speaker: { id, name: 'X' } } }),
          )
          const { status } = await call(rig, nonce, { path })
          const fits = (kind === 'bare') === (id === 'u-ann')
          expect({ kind, path, id, status }).toEqual({ kind, path, id, status: fits ? 200 : 502 })
          if (!fits) expect(rig.events[0]?.reason).toBe('credential_invalid')
        }
      }
    }
    expect(home.upstream.seen.map(({ headers }) => headers.authorization)).toEqual(
      Array(2).fill('Bearer key-of-home-0'),
    )
    expect(away.upstream.seen.map(({ url }) => url)).toEqual(Array(2).fill('/bob/chat?key=key-of-away-0'))
    expect(away.upstream.seen.every(({ headers }) => headers.authorization === undefined)).toBe(true)
    expect(JSON.parse(away.upstream.seen[0]?.body ?? '')).toMatchObject({
      model: 'bob-model',
      max_completion_tokens: 4096,
    })
  })
  test.each<[what: string, upstream: NonNullable<BrokerOptions['upstream']>]>([
    ['throws', () => Promise.reject(new TypeError('at https://internal.example'))],
    ['picks http: to somewhere', () => ({ modelUrl: 'http://example.com/v1' })],
    ['picks no URL', () => ({ modelUrl: 'example' })],
    ['picks a slot that is none', () => ({ authSlot: { kind: 'cookie' } as never })],
  ])('a picker that %s fails the call, and no key is asked for', async (_, upstream) => {
    let asked = 0
    await using rig = await openRig({ upstream, apiKey: () => `${++asked}`.repeat(20) })
    const { nonce } = rig.broker.bind(turnInput())
    for (const path of [PATH, '/model']) {
      const answer = await call(rig, nonce, { path })
      expect(answer).toMatchObject({ status: 502, json: { error: { code: 'call_failed' } } })
      expect(answer.text).not.toContain('internal')
    }
    expect(asked).toBe(0)
    expect(rig.events.map(({ reason }) => reason)).toEqual(['endpoint_invalid', 'endpoint_invalid'])
  })
  test('W-06 a picker that hangs ends with the turn, and gets a copy of the scope', async () => {
    const asked = gate<{ scope: unknown; signal: AbortSignal }>()
    await using rig = await openRig({
      upstream: (scope, { signal }) => {
        asked.resolve({ scope, signal })
        return new Promise(() => {})
      },
    })
    const turn = rig.broker.bind(turnInput())
    const answering = call(rig, turn.nonce)
    const { scope, signal } = await asked.promise
    expect(scope).toEqual(turn.scope)
    expect(scope).not.toBe(turn.scope)
    expect(Object.isFrozen(scope)).toBe(true)
    turn.release()
    expect((await answering).status).toBe(410)
    expect(signal.aborted).toBe(true)
  })
  test('/v1/responses is no route without a place to go', async () => {
    await using rig = await openRig({ upstream: () => ({ modelUrl: 'https://elsewhere.example/v1' }) })
    const { nonce } = rig.broker.bind(turnInput())
    expect((await call(rig, nonce, { path: '/v1/responses', body: { input: 'hi' } })).status).toBe(404)
  })
  test('revoke: calls in flight end, later ones are refused, and the turn itself goes on', async () => {
    await using rig = await openRig()
    const arrived = gate<void>()
    rig.upstream.script = () => arrived.resolve()
    const turn = rig.broker.bind(turnInput())
    const waiting = call(rig, turn.nonce)
    await arrived.promise
    turn.revoke()
    for (const answer of [
      await waiting,
      await call(rig, turn.nonce),
      await call(rig, turn.nonce, { path: '/model', body: MODEL_BODY }),
    ]) {
      expect(answer).toMatchObject({
        status: 403,
        json: { error: { code: 'revoked' } },
        headers: { 'x-should-retry': 'false' },
      })
    }
    turn.release()
    expect((await call(rig, turn.nonce)).status).toBe(403)
  })
})
