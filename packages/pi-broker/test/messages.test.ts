import { canary } from '@sandbox/testing'
import { describe, expect, test } from 'vitest'
import { fails } from './support/messages-service.ts'
import { ASK, call, context, forwarded, MESSAGES, openRig } from './support/rig.ts'

describe('PB-05 and PB-06 the routes', () => {
  test.each([
    ['/anthropic/v1/messages', '/v1/messages'],
    ['/anthropic/v1/messages?beta=true', '/v1/messages?beta=true'],
    ['/v1/messages', '/v1/messages'],
    ['/v1/messages?beta=true', '/v1/messages?beta=true'],
    ['/anthropic/v1/messages/count_tokens', '/v1/messages/count_tokens'],
    ['/anthropic/v1/messages/count_tokens?beta=true', '/v1/messages/count_tokens?beta=true'],
    ['/v1/messages/count_tokens', '/v1/messages/count_tokens'],
  ])('%s goes to %s', async (path, url) => {
    await using rig = await openRig()
    const { nonce } = rig.broker.bind(context())
    expect((await call(rig, nonce, { path })).status).toBe(200)
    expect(rig.upstream.seen.map((seen) => seen.url)).toEqual([url])
  })

  test.each([
    '/anthropic/v1/messages?beta=false',
    '/anthropic/v1/messages?beta=true&x=1',
    '/anthropic/v1/messages?',
    '/anthropic/v1/messages#a',
    '/anthropic/v1/messages?beta=true#a',
    '/anthropic/../v1/messages',
    '//v1/messages',
    '/anthropic/v1/messages/',
    '/anthropic/v1/messages/batches',
    '/anthropic/v1/files',
    '/anthropic/v1/organizations/me',
    '/anthropic/v1/models',
    '/anthropic/v1/%6dessages',
    '/v1/complete',
    '/model',
    '/mcp-tools',
    '/worker/ready',
    '/tools/constructor',
    '/compaction/report?beta=true',
    '/',
  ])('%s is 404 and spends nothing [call:listed-routes-only]', async (path) => {
    await using rig = await openRig({ maxCalls: 1 })
    const { nonce } = rig.broker.bind(context())
    expect((await call(rig, nonce, { path })).status).toBe(404)
    expect((await call(rig, nonce)).status).toBe(200)
    expect(rig.upstream.seen).toHaveLength(1)
  })

  test('another method is 404', async () => {
    await using rig = await openRig()
    const { nonce } = rig.broker.bind(context())
    for (const method of ['GET', 'PUT']) expect((await call(rig, nonce, { method })).status).toBe(404)
  })
})

describe('PB-09, W-37 and decision 13: headers', () => {
  test('T32 of the guest’s headers four travel, and no credential [call:no-guest-headers]', async () => {
    await using rig = await openRig()
    const { nonce } = rig.broker.bind(context())
    const { headers } = await forwarded(rig, nonce, ASK, {
      authorization: 'Bearer sk-ant-oat01-guest',
      'x-api-key': 'sk-ant-guest',
      cookie: 'a=b',
      'anthropic-version': '2026-10-21',
      'anthropic-beta':
        'oauth-2025-04-20, context-1m-2025-08-07,interleaved-thinking-2025-05-14,oauth-2025-04-20',
      'anthropic-dangerous-direct-browser-access': 'true',
      'x-stainless-lang': 'js',
      'user-agent': 'claude-cli/2.1.322',
      'x-app': 'cli',
      'x-forwarded-for': '1.2.3.4',
    })
    expect(headers).toEqual({
      accept: 'application/json',
      'accept-encoding': 'identity',
      'anthropic-beta': 'oauth-2025-04-20,interleaved-thinking-2025-05-14',
      'anthropic-version': '2026-10-21',
      authorization: `Bearer ${rig.secret}`,
      connection: 'keep-alive',
      'content-length': expect.any(String),
      'content-type': 'application/json',
      host: expect.any(String),
      'user-agent': 'claude-cli/2.1.322',
      'x-app': 'cli',
    })
    const event = await rig.reported(() => true)
    expect(event.droppedFields).toContain('anthropic-beta: context-1m-2025-08-07')
  })

  test('one that is out of bounds is left out, and a version that is none becomes the oldest', async () => {
    await using rig = await openRig()
    const { nonce } = rig.broker.bind(context())
    const { headers } = await forwarded(rig, nonce, ASK, {
      'anthropic-version': 'newest',
      'anthropic-beta': `oauth-2025-04-20,${'x'.repeat(4096)}`,
      'user-agent': 'x'.repeat(4097),
      'x-app': 'caf\u00e9',
    })
    expect(headers['anthropic-version']).toBe('2023-06-01')
    for (const name of ['anthropic-beta', 'x-app']) expect(headers[name]).toBeUndefined()
    expect(headers['user-agent'] ?? '').not.toContain('xxx')
  })

  test('W-37 a host may let more flags pass; context_management is tied to one', async () => {
    const flag = 'context-management-2025-06-27'
    const body = { ...ASK, context_management: { edits: [{ type: 'clear_tool_uses_20250919' }] } }
    await using plain = await openRig()
    const closed = plain.broker.bind(context())
    expect((await forwarded(plain, closed.nonce, body, { 'anthropic-beta': flag })).json).toEqual({
      ...ASK,
      model: 'host-model',
    })
    await using rig = await openRig({ betas: [flag] })
    const { nonce } = rig.broker.bind(context())
    const passed = await forwarded(rig, nonce, body, { 'anthropic-beta': flag })
    expect(passed.json.context_management).toEqual(body.context_management)
    expect(passed.headers['anthropic-beta']).toBe(flag)
    expect((await forwarded(rig, nonce, body)).json.context_management).toBeUndefined()
    // Of a list without end the first are looked at.
    const many = [...Array.from({ length: 64 }, (_, n) => `none-${n}`), flag].join(',')
    expect((await forwarded(rig, nonce, ASK, { 'anthropic-beta': many })).headers).not.toHaveProperty(
      'anthropic-beta',
    )
    expect(rig.events.at(-1)?.droppedFields).toHaveLength(65)
  })
})

describe('CS-04 whose credential', () => {
  test('the getter is asked with the scope before each call, for messages and count_tokens', async () => {
    const scopes: object[] = []
    await using rig = await openRig({
      oauthToken: (scope) => {
        scopes.push({ ...scope })
        return `sk-ant-oat01-key-number-${scopes.length}`
      },
    })
    const { nonce } = rig.broker.bind(context())
    await call(rig, nonce)
    await call(rig, nonce, { path: `${MESSAGES}/count_tokens` })
    const scope = { channel: 'web:room', speaker: { id: 'u-ann', name: 'Ann' } }
    expect(scopes).toEqual([scope, scope])
    expect(rig.upstream.seen.map(({ headers }) => headers.authorization)).toEqual([
      'Bearer sk-ant-oat01-key-number-1',
      'Bearer sk-ant-oat01-key-number-2',
    ])
  })

  test.each([
    ['undefined', () => undefined],
    ['""', () => ''],
    ['spaces', () => '   '],
    [
      'a throw',
      () => {
        throw new TypeError('no token at /srv/keys')
      },
    ],
  ])(
    'CS-09 CS-10 W-11 %s fails the call in the API’s shape, and nothing is sent [scope:no-fallback]',
    async (_, oauthToken) => {
      await using rig = await openRig({ oauthToken })
      const { nonce } = rig.broker.bind(context())
      const answer = await call(rig, nonce)
      expect(answer.status).toBe(502)
      expect(answer.json).toMatchObject({ type: 'error', error: { type: 'api_error' } })
      expect(answer.headers['x-should-retry']).toBe('false')
      expect(answer.text).not.toContain('srv')
      expect(rig.upstream.seen).toHaveLength(0)
    },
  )

  test('decision 16 an upstream by scope gets no credential of another origin; an API key goes into its slot', async () => {
    await using other = await openRig()
    const seen = other.upstream
    const options = {
      upstream: () => ({ url: seen.url, model: 'other-model' }),
      oauthToken: () => canary(),
    }
    await using rig = await openRig(options)
    const { nonce } = rig.broker.bind(context())
    expect((await call(rig, nonce)).status).toBe(502)
    expect(seen.seen).toHaveLength(0)
    const token = canary()
    await using fitting = await openRig({
      upstream: () => ({
        url: seen.url,
        model: 'other-model',
        authSlot: { kind: 'header', name: 'x-api-key' },
      }),
      oauthToken: () => ({ token, origin: seen.url }),
    })
    const turn = fitting.broker.bind(context())
    expect((await call(fitting, turn.nonce)).status).toBe(200)
    expect(seen.seen[0]?.headers['x-api-key']).toBe(token)
    expect(JSON.parse(String(seen.seen[0]?.body)).model).toBe('other-model')
  })
})

describe('PB-22 refusals in the API’s shape', () => {
  test.each([
    [{ messages: [{ role: 'tool', content: 'x' }] }, /^messages\.0: .*Unexpected role.*input message role/],
    [
      { messages: [...ASK.messages, { role: 'system', content: [{ type: 'tool_addition', tool: {} }] }] },
      /^messages\.1\.content\.0: Input tag 'tool_addition'/,
    ],
    [
      {
        messages: [
          {
            role: 'system',
            content: [
              { type: 'text', text: 'a' },
              { type: 'image', source: { type: 'base64', media_type: 'image/png', data: 'AAAA' } },
            ],
          },
        ],
      },
      /^messages\.0\.content\.1: Input tag 'image'/,
    ],
    [
      { messages: [{ role: 'user', content: [{ type: 'document' }] }] },
      /^messages\.0\.content\.0: Input tag 'document'/,
    ],
    [{ messages: 'hi' }, /^messages: /],
    [{}, /^messages: is missing/],
    [{ thread: { type: 'create' } }, /^thread: Extra inputs are not permitted/],
  ])('%j', async (changes, wording) => {
    let asked = 0
    await using rig = await openRig({
      oauthToken: () => {
        asked += 1
        return 'sk-ant-oat01-0123456789'
      },
    })
    const { nonce } = rig.broker.bind(context())
    const { messages: _, ...rest } = ASK
    const body = 'thread' in changes ? { ...ASK, ...changes } : { ...rest, ...changes }
    const answer = await call(rig, nonce, { body })
    expect(answer.status).toBe(400)
    expect(answer.json).toEqual({
      type: 'error',
      error: {
        type: 'invalid_request_error',
        code: 'input_refused',
        message: expect.stringMatching(wording),
      },
    })
    expect(answer.headers['x-should-retry']).toBe('false')
    expect([asked, rig.upstream.seen.length]).toEqual([0, 0])
    const event = await rig.reported(({ reason }) => reason === 'input_refused')
    expect(event.problem).toMatch(wording)
  })

  test('PB-10 W-30 T48d what is no JSON is 400, and what is too large 413 before it is read', async () => {
    await using rig = await openRig()
    const { nonce } = rig.broker.bind(context())
    for (const body of ['{', '[]', '"x"', 'null']) {
      const answer = await call(rig, nonce, { body })
      expect([answer.status, answer.json.error.type]).toEqual([400, 'invalid_request_error'])
    }
    using guest = rig.guest()
    guest.write(
      `POST ${MESSAGES} HTTP/1.1\r\nhost: broker\r\nx-sandbox-turn: ${nonce}\r\ncontent-length: 33554433\r\n\r\n`,
    )
    const answer = await guest.answer()
    expect([answer?.status, answer?.json.error.type]).toEqual([413, 'request_too_large'])
    expect(answer?.json.error.message).toContain('33554432')
  })
})

describe('PB-24 and PB-25 errors of the API', () => {
  test.each([
    [400, 'invalid_request_error', 'prompt is too long: 213462 tokens > 200000 maximum'],
    [404, 'not_found_error', 'model: x'],
    [413, 'request_too_large', 'Request exceeds the maximum size'],
    [429, 'rate_limit_error', 'This request would exceed your rate limit.'],
    [500, 'api_error', 'Internal server error'],
    [529, 'overloaded_error', 'Overloaded'],
  ])('T24 %i passes with its words and its back-off headers', async (status, type, text) => {
    await using rig = await openRig()
    rig.upstream.script = fails(status, type, text, {
      'retry-after': '7',
      'x-should-retry': 'true',
      'anthropic-ratelimit-requests-remaining': '0',
      'set-cookie': 'a=b',
      'x-internal': 'host-7',
    })
    const { nonce } = rig.broker.bind(context())
    const answer = await call(rig, nonce)
    expect([answer.status, answer.json.error]).toEqual([status, { type, message: text }])
    expect(answer.headers).toMatchObject({
      'retry-after': '7',
      'x-should-retry': 'true',
      'anthropic-ratelimit-requests-remaining': '0',
      'request-id': 'req_1',
    })
    expect(answer.headers).not.toHaveProperty('set-cookie')
    expect(answer.headers).not.toHaveProperty('x-internal')
  })

  test('PB-24 an answer whose status is none fails the call', async () => {
    await using rig = await openRig()
    rig.upstream.script = (_, response) => {
      response.socket?.end(
        'HTTP/1.1 600 Odd\r\ncontent-type: application/json\r\ncontent-length: 2\r\n\r\n{}',
      )
    }
    const { nonce } = rig.broker.bind(context())
    const answer = await call(rig, nonce)
    expect([answer.status, answer.json.error.code]).toEqual([502, 'upstream_failed'])
    expect(rig.events[0]).toMatchObject({ reason: 'upstream_invalid', upstreamStatus: 600 })
  })

  test.each([401, 403])(
    'T30 of a %i the guest reads our words, and the token is asked for once more',
    async (status) => {
      let asked = 0
      await using rig = await openRig({
        oauthToken: () => {
          asked += 1
          return 'sk-ant-oat01-0123456789'
        },
      })
      rig.upstream.script = fails(status, 'authentication_error', 'OAuth token sk-ant-oat01-…6789 is revoked')
      const { nonce } = rig.broker.bind(context())
      const answer = await call(rig, nonce)
      expect(answer.status).toBe(status)
      expect(answer.text).not.toContain('6789')
      expect(answer.json.type).toBe('error')
      expect(asked).toBe(2)
    },
  )

  test('PB-23 a redirect fails the call, and nobody follows it', async () => {
    await using other = await openRig()
    await using rig = await openRig()
    rig.upstream.script = (_, response) => {
      response.writeHead(307, { location: `${other.upstream.url}/v1/messages` }).end()
    }
    const { nonce } = rig.broker.bind(context())
    expect((await call(rig, nonce)).status).toBe(502)
    expect(other.upstream.seen).toHaveLength(0)
  })
})

describe('PB-07, PB-08 and PB-42: turns and budgets', () => {
  test('outside a turn, without its nonce and after it, calls are 410 [turn:nonce-required]', async () => {
    await using rig = await openRig()
    expect((await call(rig, undefined)).status).toBe(410)
    const bound = rig.broker.bind(context())
    expect((await call(rig, undefined)).status).toBe(410)
    expect((await call(rig, 'f'.repeat(64))).status).toBe(410)
    expect((await call(rig, bound.nonce)).status).toBe(200)
    bound.release()
    const over = await call(rig, bound.nonce)
    expect([over.status, over.json.type]).toEqual([410, 'error'])
    expect(rig.upstream.seen).toHaveLength(1)
  })

  test('calls count before their body is read, refused ones too [call:bounded]', async () => {
    await using rig = await openRig({ maxCalls: 2 })
    const { nonce } = rig.broker.bind(context())
    expect((await call(rig, nonce, { body: '{' })).status).toBe(400)
    expect((await call(rig, nonce)).status).toBe(200)
    const spent = await call(rig, nonce)
    expect([spent.status, spent.json.error.type]).toEqual([429, 'rate_limit_error'])
  })
})
