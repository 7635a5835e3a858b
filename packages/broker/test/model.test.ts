import { createServer } from 'node:net'
import { gzipSync } from 'node:zlib'
import { canary, chatText, encodingsOf, findSecret, scriptedUpstream } from '@sandbox/testing'
import { describe, expect, test } from 'vitest'
import type { BrokerOptions, CallReason } from '../src/index.ts'
import { callHeaders } from './support/guest.ts'
import { MODEL_BODY, modelCall, openRig, turnInput } from './support/rig.ts'

/** One model call; what the guest got, what the host learned, what the upstream saw. */
async function once(
  options: Partial<BrokerOptions> = {},
  setUp?: (rig: Awaited<ReturnType<typeof openRig>>) => void,
) {
  await using rig = await openRig(options)
  setUp?.(rig)
  const { nonce } = rig.broker.bind(turnInput())
  using guest = rig.guest()
  const answer = await guest.call({ path: '/model', headers: callHeaders(nonce), body: MODEL_BODY })
  const event = await rig.reported(() => true)
  return { answer, event, seen: [...rig.upstream.seen], received: guest.received, secret: rig.secret }
}

describe('CS-02 to CS-14 the credential', () => {
  test('CS-02 and CS-14 is asked for before every call, in call order, and never kept', async () => {
    let count = 0
    await using rig = await openRig({ apiKey: () => `rotating-key-${++count}` })
    const { nonce } = rig.broker.bind(turnInput())
    for (let calls = 0; calls < 3; calls += 1) expect((await modelCall(rig, nonce)).status).toBe(200)
    expect(rig.upstream.seen.map((seen) => seen.headers.authorization)).toEqual([
      'Bearer rotating-key-1',
      'Bearer rotating-key-2',
      'Bearer rotating-key-3',
    ])
  })
  test('CS-05, CS-06, CS-13 the getter gets exactly the scope, frozen, its own copy each time [scope:fixed-at-admission]', async () => {
    const scopes: unknown[] = []
    const context = {
      channel: 'web:room',
      speaker: { id: 'u-ann', name: 'Ann', role: 'owner' },
      profile: 'x',
    }
    await using rig = await openRig({
      apiKey: (scope) => {
        scopes.push(scope)
        return 'k'.repeat(20)
      },
    })
    const { nonce } = rig.broker.bind(turnInput({ context }))
    // CS-13 and W-02: what the caller does to its own object later changes nothing.
    context.speaker.id = 'u-eve'
    context.channel = 'web:other'
    await modelCall(rig, nonce)
    await modelCall(rig, nonce)
    const scope = { channel: 'web:room', speaker: { id: 'u-ann', name: 'Ann' } }
    expect(scopes).toStrictEqual([scope, scope])
    expect(scopes[0]).not.toBe(scopes[1])
    expect(Object.isFrozen(scopes[0]) && Object.isFrozen((scopes[0] as typeof scope).speaker)).toBe(true)
  })
  test('CS-03 a payload that is refused asks for nothing', async () => {
    let asked = 0
    await using rig = await openRig({ apiKey: () => `${++asked}`.repeat(20) })
    const { nonce } = rig.broker.bind(turnInput())
    for (const body of [
      {},
      { messages: 'x' },
      { messages: [{ role: 'user', content: [{ type: 'image_url', image_url: { url: 'http://x' } }] }] },
      { messages: [], tools: [{ type: 'web_search' }] },
    ]) {
      const answer = await modelCall(rig, nonce, body)
      expect(answer.status).toBe(400)
      expect(answer.json.error.code).toBe('input_refused')
    }
    expect(asked).toBe(0)
    expect(rig.upstream.seen).toEqual([])
  })
  test('CS-14 and T3 two speakers at once, each on a worker of their own, each with their own key [scope:own-key-only]', async () => {
    const keys: Record<string, string> = { 'u-ann': 'key-of-ann-000', 'u-bob': 'key-of-bob-000' }
    const apiKey: BrokerOptions['apiKey'] = async ({ speaker }) => {
      await new Promise((done) => setImmediate(done))
      return keys[speaker.id]
    }
    await using ann = await openRig({ apiKey })
    await using bob = await openRig({ apiKey })
    const calls = Object.entries({ 'u-ann': ann, 'u-bob': bob }).map(([id, rig]) => {
      const context = { channel: 'web:room', speaker: { id, name: 'Same Name' } }
      return { id, rig, nonce: rig.broker.bind(turnInput({ turnId: id, context })).nonce }
    })
    for (let count = 0; count < 20; count += 1) {
      const answers = await Promise.all(calls.map(({ rig, nonce }) => modelCall(rig, nonce)))
      expect(answers.map((answer) => answer.status)).toEqual([200, 200])
    }
    for (const { id, rig } of calls) {
      expect(new Set(rig.upstream.seen.map((seen) => seen.headers.authorization))).toEqual(
        new Set([`Bearer ${keys[id]}`]),
      )
      expect(rig.upstream.seen).toHaveLength(20)
    }
    // A nonce is worth nothing on another worker's socket.
    expect((await modelCall(ann, calls[1]?.nonce ?? '')).status).toBe(410)
  })
  test('CS-08 a promise is fine', async () => {
    expect((await once({ apiKey: async () => 'k'.repeat(20) })).answer.status).toBe(200)
  })

  const bad: [string, BrokerOptions['apiKey'], CallReason, string][] = [
    ['CS-09 undefined', () => undefined, 'credential_missing', 'no_credential'],
    ['CS-09 null', () => null, 'credential_missing', 'no_credential'],
    ['CS-09 an empty string', () => '', 'credential_missing', 'no_credential'],
    ['W-05 blanks', () => '   ', 'credential_invalid', 'call_failed'],
    ['W-05 a line break', () => 'key-one\r\nx-evil: 1', 'credential_invalid', 'call_failed'],
    ['W-05 a number', () => 12_345_678 as never, 'credential_invalid', 'call_failed'],
    ['W-05 an object', () => ({ token: {} }) as never, 'credential_invalid', 'call_failed'],
    [
      'CS-10 a throw',
      () => {
        throw new TypeError('vault at https://vault.internal said no')
      },
      'credential_error',
      'call_failed',
    ],
    [
      'CS-10 a rejection',
      () => Promise.reject(new TypeError('vault said no')),
      'credential_error',
      'call_failed',
    ],
    [
      'decision 16 a key for another origin',
      () => ({ token: 'key-of-elsewhere', origin: 'https://elsewhere.example' }),
      'credential_invalid',
      'call_failed',
    ],
  ]
  test.each(bad)(
    '%s fails the call, reaches no upstream, and says no more than it must [scope:no-fallback] [secret:own-origin-only]',
    async (_, apiKey, reason, code) => {
      const { answer, event, seen, received } = await once({ apiKey })
      expect(answer.status).toBe(502)
      expect(answer.json).toEqual({ error: { code, message: expect.any(String) } })
      expect(answer.headers['x-should-retry']).toBe('false')
      expect(seen).toEqual([])
      expect(event).toMatchObject({ reason, scope: { channel: 'web:room', speaker: { id: 'u-ann' } } })
      for (const word of ['vault', 'elsewhere', 'u-ann', 'web:room'])
        expect(received.toString()).not.toContain(word)
    },
  )
  test('W-06 a getter that never settles ends with its turn, and the call after it is served', async () => {
    let hang = true
    let asked = () => {}
    const waiting = new Promise<void>((done) => {
      asked = done
    })
    await using rig = await openRig({
      maxQueuedCalls: 0,
      apiKey: () => {
        asked()
        return hang ? new Promise(() => {}) : 'k'.repeat(20)
      },
    })
    const { nonce } = rig.broker.bind(turnInput())
    const guest = rig.guest()
    guest.send({ path: '/model', headers: callHeaders(nonce), body: MODEL_BODY })
    await waiting
    guest.socket.destroy()
    await rig.reported((event) => event.reason === 'aborted')
    hang = false
    expect((await modelCall(rig, nonce)).status).toBe(200)
  })
})

describe('SB-23, SB-24, CS-16 what the upstream sees [call:host-chooses-model] [call:no-guest-headers]', () => {
  test('the host’s model and limits, the guest’s messages, three headers, and no placeholder (T34)', async () => {
    await using rig = await openRig({ maxOutputTokens: 77 })
    const { nonce } = rig.broker.bind(turnInput())
    using guest = rig.guest()
    await guest.call({
      path: '/model',
      headers: {
        ...callHeaders(nonce),
        'user-agent': 'guest/1',
        accept: 'text/plain',
        'accept-encoding': 'gzip',
      },
      body: {
        model: 'guest-model',
        max_tokens: 1e9,
        stream: true,
        temperature: 2,
        callback_url: 'http://evil.example',
        n: 100,
        ...MODEL_BODY,
      },
    })
    const [seen] = rig.upstream.seen
    expect(seen).toMatchObject({ method: 'POST', url: '/v1/chat/completions' })
    expect(JSON.parse(seen?.body ?? '')).toEqual({
      model: 'host-model',
      messages: MODEL_BODY.messages,
      stream: false,
      max_tokens: 77,
    })
    const names = seen?.rawHeaders.filter((_, at) => at % 2 === 0).map((name) => name.toLowerCase())
    expect(names?.sort()).toEqual([
      'accept',
      'authorization',
      'connection',
      'content-length',
      'content-type',
      'host',
    ])
    expect(seen?.headers).toMatchObject({
      'content-type': 'application/json',
      accept: 'application/json',
      authorization: `Bearer ${rig.secret}`,
    })
    expect(JSON.stringify(seen)).not.toContain('sandbox-dummy')
    expect(rig.events[0]?.droppedFields).toEqual(
      expect.arrayContaining(['model', 'max_tokens', 'stream', 'temperature', 'callback_url', 'n']),
    )
  })
  test('W-13 other slots and the other token field', async () => {
    const header = await once({
      authSlot: { kind: 'header', name: 'x-api-key' },
      tokenLimitField: 'max_completion_tokens',
    })
    expect(header.seen[0]?.headers).toMatchObject({ 'x-api-key': header.secret })
    expect(header.seen[0]?.headers.authorization).toBeUndefined()
    expect(JSON.parse(header.seen[0]?.body ?? '')).toMatchObject({ max_completion_tokens: 4096 })
    const query = await once({ authSlot: { kind: 'query', name: 'key' } })
    expect(new URL(query.seen[0]?.url ?? '', 'http://x').searchParams.get('key')).toBe(query.secret)
    expect(query.seen[0]?.headers.authorization).toBeUndefined()
  })
  test('connections to the upstream are used again, also by the next turn', async () => {
    const ports = new Set<unknown>()
    await using upstream = await scriptedUpstream((_, __, incoming) => {
      ports.add(incoming.socket.remotePort)
      return chatText('ok')
    })
    for (let turns = 0; turns < 3; turns += 1) await once({ modelUrl: upstream.url })
    expect(ports.size).toBe(1)
  })
  test('SB-01 a query of the operator’s URL is kept', async () => {
    await using upstream = await scriptedUpstream(() => chatText('ok'))
    await once({ modelUrl: `${upstream.url}/chat?api-version=1` })
    expect(upstream.seen[0]?.url).toBe('/chat?api-version=1')
  })
})

describe('what the upstream answers [call:generic-errors]', () => {
  test('SB-29 a fresh 200 with the answer rebuilt and no header of the upstream', async () => {
    const { answer, event } = await once({}, (rig) => {
      rig.upstream.script = (_, response) => {
        response.writeHead(201, {
          'content-type': 'application/json; charset=utf-8',
          'set-cookie': 'a=b',
          authorization: 'Bearer x',
          'x-request-id': 'r',
        })
        response.end(' { "id" : "é\\u00e9", "usage": {"prompt_tokens": 11, "completion_tokens": 7} } ')
      }
    })
    expect(answer.status).toBe(200)
    expect(answer.text).toBe('{"id":"éé","usage":{"prompt_tokens":11,"completion_tokens":7}}')
    expect(Object.keys(answer.headers).sort()).toEqual(['connection', 'content-length', 'content-type'])
    expect(event).toMatchObject({
      route: 'model',
      status: 200,
      reason: 'ok',
      turnId: 't-1',
      upstreamStatus: 201,
      usage: { inputTokens: 11, outputTokens: 7 },
      answerBytes: Buffer.byteLength(answer.text),
      fingerprint: expect.stringMatching(/^[0-9a-f]{8,}$/),
    })
  })

  test('SB-25 a redirect is an error, and its target hears nothing [secret:own-origin-only]', async () => {
    await using target = await scriptedUpstream(() => chatText('stolen'))
    for (const status of [301, 302, 303, 307, 308]) {
      const { answer, event } = await once({}, (rig) => {
        rig.upstream.script = (_, response) => {
          response.writeHead(status, { location: target.url }).end()
        }
      })
      expect(answer.status).toBe(502)
      expect(answer.headers['x-should-retry']).toBe('false')
      expect(event).toMatchObject({ reason: 'upstream_redirect', upstreamStatus: status })
    }
    expect(target.seen).toEqual([])
  })

  test.each([
    [400, false],
    [401, false],
    [403, false],
    [404, false],
    [429, true],
    [500, true],
    [503, true],
    [529, true],
  ])('SB-26 and T30 status %i and its body stay on the host', async (status, retry) => {
    const { answer, event, received, secret } = await once({}, (rig) => {
      rig.upstream.script = (_, response) => {
        response.writeHead(status, { 'x-detail': 'secret detail' })
        response.end(JSON.stringify({ error: `bad key ${rig.secret} of org-1 at https://internal` }))
      }
    })
    expect(answer.status).toBe(502)
    expect(answer.json.error.code).toBe('upstream_failed')
    expect(answer.headers['x-should-retry']).toBe(retry ? undefined : 'false')
    expect(event).toMatchObject({ reason: 'upstream_status', upstreamStatus: status })
    expect(findSecret(received, secret)).toEqual([])
    expect(received.toString()).not.toMatch(/detail|org-1|internal/)
  })

  test.each<[after: string, status: number, seconds: RegExp | undefined]>([
    ['7', 429, /^7$/],
    ['0', 503, /^1$/],
    ['999999999', 529, /^86400$/],
    [new Date(Date.now() + 60_000).toUTCString(), 429, /^(60|5\d)$/],
    [new Date(0).toUTCString(), 429, /^1$/],
    ['soon', 429, undefined],
    ['-5', 429, undefined],
    ['1e3', 503, undefined],
    ['7', 400, undefined],
  ])('W-45 retry-after: %s of a %i', async (after, status, seconds) => {
    const { answer, event } = await once({}, (rig) => {
      rig.upstream.script = (_, response) => {
        response.writeHead(status, { 'retry-after': after }).end('{}')
      }
    })
    const told = answer.headers['retry-after']
    if (seconds === undefined) expect(told).toBeUndefined()
    else expect(told).toMatch(seconds)
    // The host is told of any refusal; the guest only of one that may be tried again.
    const known = !Number.isNaN(Number(event.retryAfterMs))
    expect(known).toBe(seconds !== undefined || status === 400)
  })

  test('SB-27 over 1 MiB, announced or not, and what is no JSON object, is 502', async () => {
    const big = JSON.stringify({ a: 'x'.repeat(1024 * 1024) })
    for (const [body, announced] of [
      [big, true],
      [big, false],
      ['{', true],
      ['[]', true],
      ['null', true],
      ['"text"', true],
      ['', true],
      [Buffer.from([0x7b, 0x22, 0xff, 0x22, 0x3a, 0x31, 0x7d]), true],
      [`{"a":${'['.repeat(64)}${']'.repeat(64)}}`, true],
      // Small on the wire, large once rebuilt.
      [`[${'1e20,'.repeat(100_000)}1]`.replace(/^/, '{"a":').concat('}'), true],
    ] as const) {
      const { answer, event } = await once({}, (rig) => {
        rig.upstream.script = (_, response) => {
          if (announced) response.setHeader('content-length', Buffer.byteLength(body))
          response.write(body)
          response.end()
        }
      })
      expect([answer.status, event.reason]).toEqual([502, 'upstream_invalid'])
    }
  })

  test('W-25 a compressed answer is decoded, and searched as what it is', async () => {
    const packed = (coding: string, body: Uint8Array) =>
      once({}, (rig) => {
        rig.upstream.script = (_, response) => {
          response.writeHead(200, { 'content-encoding': coding }).end(body)
        }
      })
    expect((await packed('gzip', gzipSync('{"a":1}'))).answer.json).toEqual({ a: 1 })
    expect((await packed('gzip', Buffer.from('{}'))).event.reason).toBe('upstream_network')
    expect((await packed('rot13', Buffer.from('{}'))).event.reason).toBe('upstream_invalid')
    const { event } = await once({}, (rig) => {
      rig.upstream.script = (_, response) => {
        response.writeHead(200, { 'content-encoding': 'gzip' })
        response.end(gzipSync(JSON.stringify(chatText(rig.secret))))
      }
    })
    expect(event.reason).toBe('reflection')
  })

  test('SB-30 and W-10 nobody there, a connection that dies, and bytes that are no HTTP', async () => {
    const server = createServer((socket) => socket.once('data', () => socket.end('SSH-2.0-x\r\n')))
    await new Promise<void>((done) => server.listen(0, '127.0.0.1', done))
    const port = (server.address() as { port: number }).port
    for (const [options, setUp] of [
      [{ modelUrl: 'http://127.0.0.1:1/' }, undefined],
      [{ modelUrl: `http://127.0.0.1:${port}/` }, undefined],
      [
        {},
        (_: unknown, response: { destroy(): void }) => {
          response.destroy()
        },
      ],
      [
        {},
        (_: unknown, response: import('node:http').ServerResponse) => {
          response.writeHead(200, { 'content-length': 100 }).write('{"a":')
          setImmediate(() => response.destroy())
        },
      ],
    ] as const) {
      const { answer, event, received } = await once(options, (rig) => {
        if (setUp !== undefined) rig.upstream.script = setUp
      })
      expect([answer.status, event.reason]).toEqual([502, 'upstream_network'])
      expect(answer.headers['x-should-retry']).toBeUndefined()
      expect(received.toString()).not.toMatch(/127\.0\.0\.1|ECONN|socket/)
    }
    server.close()
  })
})

describe('SB-28 an answer that carries the key [reflect:stopped]', () => {
  const secret = canary('sk-live')
  const base64 = (['base64', 'base64url'] as const).flatMap((encoding) =>
    ['', 'x', 'xy'].map((lead) => {
      const text = Buffer.from(`${lead}${secret}tail`).toString(encoding)
      return [`${encoding}+${lead.length}`, Buffer.from(text)] as const
    }),
  )
  const forms = [...encodingsOf(secret), ...base64].filter(
    ([name, text]) =>
      name !== 'utf16le' && (!name.startsWith('base64') || base64.some((row) => row[1] === text)),
  )
  test.each(forms.map(([name, bytes]) => [name, bytes.toString()] as const))(
    'in a value, as %s',
    async (_, text) => {
      for (const answer of [
        { a: text },
        { [`x${text}y`]: 1 },
        { a: [{ b: [`before ${text} after`] }] },
        chatText(JSON.stringify({ nested: text })),
      ]) {
        const got = await once({ apiKey: () => secret }, (rig) => {
          rig.upstream.script = () => answer
        })
        expect([got.answer.status, got.event.reason]).toEqual([502, 'reflection'])
        expect(got.answer.headers['x-should-retry']).toBe('false')
        expect(findSecret(got.received, secret)).toEqual([])
      }
    },
  )
  test('spelled with JSON escapes on the wire', async () => {
    const spelled = [...secret].map((c) => `\\u${c.charCodeAt(0).toString(16).padStart(4, '0')}`).join('')
    const got = await once({ apiKey: () => secret }, (rig) => {
      rig.upstream.script = (_, response) => {
        response.end(`{"a":"${spelled}"}`)
      }
    })
    expect(got.event.reason).toBe('reflection')
  })
  test('as a number, which the broker itself would round', async () => {
    const digits = '12345678901234567890'
    const got = await once({ apiKey: () => digits }, (rig) => {
      rig.upstream.script = (_, response) => {
        response.end(`{"a":[${digits}]}`)
      }
    })
    expect(got.event.reason).toBe('reflection')
    expect(got.received.includes(digits.slice(0, 12))).toBe(false)
  })
  test('W-22 also when it is the key of an earlier call of the turn', async () => {
    const keys = [secret, 'another-key-entirely']
    await using rig = await openRig({ apiKey: () => keys.shift() })
    const { nonce } = rig.broker.bind(turnInput())
    expect((await modelCall(rig, nonce)).status).toBe(200)
    rig.upstream.script = () => chatText(secret)
    expect((await modelCall(rig, nonce)).json.error.code).toBe('call_failed')
  })
  test('half of it, or another one like it, is no hit', async () => {
    const got = await once({ apiKey: () => secret }, (rig) => {
      rig.upstream.script = () => chatText(`${secret.slice(0, 12)} ${canary('sk-live')}`)
    })
    expect(got.answer.status).toBe(200)
  })
})

test.each([
  () => {
    throw new TypeError('observer')
  },
  () => Promise.reject(new TypeError('observer')) as never,
])('W-27 a broken observer breaks no call', async (onCall) => {
  await using rig = await openRig({ onCall })
  const { nonce } = rig.broker.bind(turnInput())
  expect((await modelCall(rig, nonce)).status).toBe(200)
  expect((await modelCall(rig, nonce)).status).toBe(200)
})
