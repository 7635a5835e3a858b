import Anthropic from '@anthropic-ai/sdk'
import { PI_PLACEHOLDER } from '@sandbox/protocol'
import { findSecret, openForwarder, type SeenRequest } from '@sandbox/testing'
import { describe, expect, test } from 'vitest'
import type { PiHostContext, PiSandboxBrokerOptions } from '../src/index.ts'
import {
  answers,
  type Block,
  event,
  fails,
  messageStream,
  startStream,
  streams,
} from './support/messages-service.ts'
import { context, openRig, type Rig } from './support/rig.ts'

/** The official client, unchanged, in front of a broker. It holds a placeholder; the broker holds the token. */
interface Bench extends AsyncDisposable {
  readonly rig: Rig
  readonly anthropic: Anthropic
}

async function openBench(
  options: Partial<PiSandboxBrokerOptions> = {},
  turn: Partial<PiHostContext> = {},
  base = '/anthropic',
): Promise<Bench> {
  const rig = await openRig(options)
  const forwarder = await openForwarder(rig.path)
  const { nonce } = rig.broker.bind(context({ thinking: 'xhigh', ...turn }))
  const anthropic = new Anthropic({
    authToken: PI_PLACEHOLDER,
    apiKey: null,
    baseURL: forwarder.url + base,
    maxRetries: 0,
    defaultHeaders: { 'x-sandbox-turn': nonce },
  })
  const close = async () => {
    await forwarder[Symbol.asyncDispose]()
    await rig[Symbol.asyncDispose]()
  }
  return { rig, anthropic, [Symbol.asyncDispose]: close }
}

const ask = (content: string) => ({
  model: 'claude-guest',
  max_tokens: 1000,
  messages: [{ role: 'user' as const, content }],
})
const CLOCK: Anthropic.Tool = {
  name: 'clock',
  description: 'The time.',
  input_schema: { type: 'object', properties: { zone: { type: 'string' } }, required: ['zone'] },
}
const THOUGHT: Block = { type: 'thinking', thinking: 'Let me look at the clock.', signature: 'c2lnbmF0dXJl' }
const CALL: Block = { type: 'tool_use', id: 'toolu_1', name: 'clock', input: { zone: 'Europe/Berlin 🕛' } }

describe('issue 6: the official Anthropic client through the socket', () => {
  test.each(['/anthropic', ''])('text; token and model are the host’s, base %j', async (base) => {
    await using bench = await openBench({}, {}, base)
    const answer = await bench.anthropic.messages.create(ask('hi'))
    expect(answer.content).toEqual([{ type: 'text', text: 'hello' }])
    const [seen] = bench.rig.upstream.seen
    expect(seen?.headers.authorization).toBe(`Bearer ${bench.rig.secret}`)
    expect(JSON.parse(String(seen?.body))).toEqual({ ...ask('hi'), model: 'host-model' })
    const told = await bench.rig.reported(({ reason }) => reason === 'ok')
    expect(told).toMatchObject({
      route: 'model',
      name: 'anthropic',
      model: 'host-model',
      usage: { inputTokens: 7, outputTokens: 5, cachedTokens: 4, cacheWriteTokens: 2 },
    })
  })

  test('W-37 the beta client: flags on the list travel, priced ones and their fields do not', async () => {
    await using bench = await openBench()
    const betas = ['interleaved-thinking-2025-05-14', 'fast-mode-2026-02-01']
    await bench.anthropic.beta.messages.create({ ...ask('hi'), betas, speed: 'fast' } as never)
    const [seen] = bench.rig.upstream.seen
    expect(seen?.headers['anthropic-beta']).toBe('interleaved-thinking-2025-05-14')
    expect(JSON.parse(String(seen?.body))).toEqual({ ...ask('hi'), model: 'host-model' })
  })

  test('count_tokens', async () => {
    await using bench = await openBench()
    const { max_tokens: _, ...body } = ask('hi')
    expect(await bench.anthropic.messages.countTokens(body)).toEqual({ input_tokens: 42 })
    expect(bench.rig.upstream.seen[0]?.url).toBe('/v1/messages/count_tokens')
  })

  test('PB-26 a streamed turn with thinking, event by event as the provider sent it', async () => {
    await using bench = await openBench()
    const blocks: Block[] = [
      THOUGHT,
      { type: 'redacted_thinking', data: 'b3BhcXVl' },
      { type: 'text', text: 'Es ist zwölf. 🕛' },
    ]
    bench.rig.upstream.script = answers(blocks)
    const stream = bench.anthropic.messages.stream({ ...ask('hi'), thinking: { type: 'adaptive' } })
    const thoughts: string[] = []
    stream.on('thinking', (delta) => thoughts.push(delta))
    const answer = await stream.finalMessage()
    expect(answer.content).toEqual(blocks)
    expect(thoughts.join('')).toBe(THOUGHT.thinking)
    const told = await bench.rig.reported(({ reason }) => reason === 'ok')
    expect(told).toMatchObject({
      streamed: true,
      usage: { inputTokens: 7, outputTokens: 5, cachedTokens: 4 },
    })
  })

  test('a tool loop, thinking and all, streamed', async () => {
    await using bench = await openBench()
    bench.rig.upstream.script = answers(({ body }: SeenRequest) =>
      body.includes('tool_result') ? [{ type: 'text', text: 'Noon.' }] : [THOUGHT, CALL],
    )
    const first = { ...ask('what time is it?'), tools: [CLOCK] }
    const called = await bench.anthropic.messages.stream(first).finalMessage()
    expect([called.stop_reason, called.content]).toEqual(['tool_use', [THOUGHT, CALL]])
    const result = { type: 'tool_result' as const, tool_use_id: 'toolu_1', content: '12:00', is_error: false }
    const messages = [
      ...first.messages,
      { role: 'assistant' as const, content: called.content },
      { role: 'user' as const, content: [result] },
    ]
    const answer = await bench.anthropic.messages.create({ ...first, messages })
    expect(answer.content).toEqual([{ type: 'text', text: 'Noon.' }])
    expect(JSON.parse(String(bench.rig.upstream.seen[1]?.body)).messages).toEqual(messages)
  })

  test('an image and a PDF: the first passes, the second is refused', async () => {
    await using bench = await openBench()
    const image = { type: 'base64' as const, media_type: 'image/png' as const, data: 'iVBORw0KGgo=' }
    const content = [
      { type: 'image' as const, source: image },
      { type: 'text' as const, text: 'What is it?' },
    ]
    await bench.anthropic.messages.create({ ...ask(''), messages: [{ role: 'user', content }] })
    expect(JSON.parse(String(bench.rig.upstream.seen[0]?.body)).messages[0].content).toEqual(content)
    const source = { type: 'url' as const, url: 'https://a.example/x.pdf' }
    const refused = bench.anthropic.messages.create({
      ...ask(''),
      messages: [{ role: 'user', content: [{ type: 'document', source }] }],
    })
    await expect(refused).rejects.toThrow(Anthropic.BadRequestError)
    expect(bench.rig.upstream.seen).toHaveLength(1)
  })

  test.each([
    [400, 'invalid_request_error', Anthropic.BadRequestError],
    [413, 'request_too_large', Anthropic.APIError],
    [429, 'rate_limit_error', Anthropic.RateLimitError],
    [529, 'overloaded_error', Anthropic.InternalServerError],
  ] as const)('T24 %i reaches the client as it is', async (status, type, kind) => {
    await using bench = await openBench()
    bench.rig.upstream.script = fails(status, type, 'words of the API', { 'retry-after': '3' })
    const failure = await bench.anthropic.messages.create(ask('hi')).catch((error: unknown) => error)
    expect(failure).toBeInstanceOf(kind)
    const { status: got, error, headers, requestID } = failure as InstanceType<typeof Anthropic.APIError>
    expect([got, headers?.get('retry-after'), requestID]).toEqual([status, '3', 'req_1'])
    expect(error).toMatchObject({ type: 'error', error: { type, message: 'words of the API' } })
  })

  test('T30 a 401 reaches the client in our words', async () => {
    await using bench = await openBench()
    bench.rig.upstream.script = (_, response) =>
      fails(401, 'authentication_error', `bad token ${bench.rig.secret}`)(_, response, undefined as never)
    const failure = await bench.anthropic.messages.create(ask('hi')).catch((error: unknown) => error)
    expect(failure).toBeInstanceOf(Anthropic.AuthenticationError)
    expect(String(failure)).not.toContain(bench.rig.secret)
  })

  test.each([
    ['T23 an error event of the provider', 'overloaded_error', 'upstream_error'],
    ['T16 T29 a connection that breaks', 'api_error', 'upstream_network'],
  ])('%s in mid-stream reaches the client as an error, never as an end', async (_what, type, reason) => {
    await using bench = await openBench()
    const start = messageStream([{ type: 'text', text: 'Once upon a time' }]).slice(0, 5)
    bench.rig.upstream.script = (_, response) => {
      startStream(response)
      for (const one of start) response.write(one)
      if (type === 'api_error') return void setImmediate(() => response.destroy())
      response.end(event({ type: 'error', error: { type, message: 'Overloaded' } }))
    }
    const failure = await bench.anthropic.messages
      .stream(ask('hi'))
      .finalMessage()
      .catch((error: unknown) => error)
    expect(failure).toBeInstanceOf(Anthropic.APIError)
    expect(String(failure)).toContain(type)
    expect((await bench.rig.reported((told) => told.reason === reason)).streamed).toBe(true)
  })

  test('decision 13 the client’s own retries obey x-should-retry: a refusal is asked once', async () => {
    await using bench = await openBench({ oauthToken: () => undefined })
    const retrying = bench.anthropic.withOptions({ maxRetries: 3 })
    await expect(retrying.messages.create(ask('hi'))).rejects.toThrow(Anthropic.InternalServerError)
    await bench.rig.reported(({ reason }) => reason === 'credential_missing')
    expect(bench.rig.events).toHaveLength(1)
  })
})

describe('no byte of the token reaches the guest [secret:not-in-guest-bytes] [reflect:stopped]', () => {
  const shapes: readonly [string, (secret: string) => Parameters<typeof streams>[0]][] = [
    ['in the text, over deltas', (secret) => messageStream([{ type: 'text', text: `It is ${secret}.` }])],
    [
      'in a thought, over deltas',
      (secret) => messageStream([{ type: 'thinking', thinking: secret, signature: 'x' }]),
    ],
    ['in a signature', (secret) => messageStream([{ type: 'thinking', thinking: 'x', signature: secret }])],
    [
      'in the input of a tool, over deltas',
      (secret) => messageStream([{ type: 'tool_use', id: 'a', name: 'b', input: { secret } }]),
    ],
    ['in redacted thinking', (secret) => messageStream([{ type: 'redacted_thinking', data: secret }])],
    [
      'in an error event',
      (secret) => [event({ type: 'error', error: { type: 'api_error', message: secret } })],
    ],
  ]
  test.each(shapes)('PB-27 T35 %s', async (_where, events) => {
    await using rig = await openRig()
    rig.upstream.script = streams(events(rig.secret))
    const { nonce } = rig.broker.bind(context())
    using guest = rig.guest()
    const headers = { 'x-sandbox-turn': nonce }
    guest.send({ path: '/v1/messages', headers, body: { ...ask('hi'), stream: true } })
    await rig.reported(({ reason }) => reason === 'reflection')
    await guest.until('"type":"error"')
    expect(findSecret(guest.received, rig.secret)).toEqual([])
    expect(guest.received.toString()).toContain('event: error')
    // W-24: what went out already may tell how the token begins.
    using again = rig.guest()
    const closed = await again.call({ path: '/v1/messages', headers, body: ask('hi') })
    expect([closed.status, closed.json.error.code]).toEqual([403, 'route_closed'])
  })
})
