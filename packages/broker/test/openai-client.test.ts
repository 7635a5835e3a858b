import { canary, chatText, chatToolCalls, openForwarder, type ScriptedUpstream } from '@sandbox/testing'
import OpenAI from 'openai'
import { describe, expect, test } from 'vitest'
import type { BrokerOptions } from '../src/index.ts'
import { openRig, type Rig, turnInput } from './support/rig.ts'
import {
  chatDelta,
  chatStream,
  event,
  responseCompleted,
  responseStream,
  startStream,
  streams,
} from './support/sse.ts'

/** The official client, unchanged, in front of a broker. It holds a placeholder; the broker holds the key. */
interface Bench extends AsyncDisposable {
  readonly rig: Rig
  readonly upstream: ScriptedUpstream
  readonly openai: OpenAI
}

async function openBench(options: Partial<BrokerOptions> = {}): Promise<Bench> {
  const rig = await openRig(options)
  const forwarder = await openForwarder(rig.path)
  const { nonce } = rig.broker.bind(turnInput())
  const openai = new OpenAI({
    apiKey: 'placeholder',
    baseURL: `${forwarder.url}/v1`,
    maxRetries: 0,
    defaultHeaders: { 'x-sandbox-turn': nonce },
  })
  const close = async () => {
    await forwarder[Symbol.asyncDispose]()
    await rig[Symbol.asyncDispose]()
  }
  return { rig, upstream: rig.upstream, openai, [Symbol.asyncDispose]: close }
}

const ask = (content: string) => ({ model: 'gpt-guest', messages: [{ role: 'user' as const, content }] })
const CLOCK = {
  type: 'function' as const,
  function: {
    name: 'clock',
    description: 'The time.',
    strict: true,
    parameters: {
      type: 'object',
      properties: { zone: { type: 'string' } },
      required: ['zone'],
      additionalProperties: false,
    },
  },
}

describe('issue 4: the official openai client through the socket', () => {
  test('text; key and model are the host’s [secret:not-in-guest-bytes] [call:host-chooses-model]', async () => {
    await using bench = await openBench()
    const answer = await bench.openai.chat.completions.create(ask('hi'))
    expect(answer.choices[0]?.message.content).toBe('hello')
    const [seen] = bench.upstream.seen
    expect(seen?.headers.authorization).toBe(`Bearer ${bench.rig.secret}`)
    expect(Object.keys(seen?.headers ?? {}).sort()).toEqual([
      'accept',
      'authorization',
      'connection',
      'content-length',
      'content-type',
      'host',
    ])
    expect(JSON.parse(seen?.body ?? '')).toEqual({
      model: 'host-model',
      messages: [{ role: 'user', content: 'hi' }],
      max_tokens: 4096,
    })
    expect(await bench.rig.reported(() => true)).toMatchObject({
      route: 'model',
      name: 'openai-chat',
      status: 200,
      reason: 'ok',
      usage: { inputTokens: 5, outputTokens: 3 },
    })
  })
  test('a stream, with its token counts for the host although the guest did not ask', async () => {
    await using bench = await openBench()
    bench.upstream.script = streams(chatStream(['Grüße ', '日本', '語 🎉']))
    let text = ''
    for await (const chunk of await bench.openai.chat.completions.create({ ...ask('hi'), stream: true })) {
      expect(chunk.choices).toHaveLength(1)
      text += chunk.choices[0]?.delta.content ?? ''
    }
    expect(text).toBe('Grüße 日本語 🎉')
    expect(bench.upstream.seen[0]?.headers.accept).toBe('text/event-stream')
    expect(JSON.parse(bench.upstream.seen[0]?.body ?? '').stream_options).toEqual({ include_usage: true })
    const told = await bench.rig.reported(() => true)
    expect(told).toMatchObject({
      reason: 'ok',
      usage: { inputTokens: 7, outputTokens: 5, cachedTokens: 4, reasoningTokens: 2 },
    })
    expect(told.firstByteMs).toBeLessThanOrEqual(told.durationMs)
  })
  test('a stream whose guest asked for token counts gets them', async () => {
    await using bench = await openBench()
    bench.upstream.script = streams(chatStream(['a']))
    const stream = bench.openai.chat.completions.stream({
      ...ask('hi'),
      stream_options: { include_usage: true },
    })
    expect((await stream.finalChatCompletion()).usage?.completion_tokens).toBe(5)
  })
  test('parallel tool calls, in one piece and streamed', async () => {
    await using bench = await openBench()
    bench.upstream.script = () =>
      chatToolCalls([
        { name: 'clock', input: { zone: 'UTC' } },
        { name: 'clock', input: { zone: 'Asia/Tokyo' } },
      ])
    const request = { ...ask('hi'), tools: [CLOCK], parallel_tool_calls: true }
    const whole = await bench.openai.chat.completions.create(request)
    expect(whole.choices[0]?.message.tool_calls).toHaveLength(2)

    const call = (index: number, more: object) => chatDelta({ tool_calls: [{ index, ...more }] })
    const pieces = (index: number, text: string) =>
      [...text].map((arguments_) => call(index, { function: { arguments: arguments_ } }))
    bench.upstream.script = streams([
      chatDelta({ role: 'assistant', content: null }),
      call(0, { id: 'call_0', type: 'function', function: { name: 'clock', arguments: '' } }),
      ...pieces(0, '{"zone":"UTC"}'),
      call(1, { id: 'call_1', type: 'function', function: { name: 'clock', arguments: '' } }),
      ...pieces(1, '{"zone":"Asia/Tokyo"}'),
      chatDelta({}, 'tool_calls'),
      event('[DONE]'),
    ])
    const final = await bench.openai.chat.completions.stream(request).finalChatCompletion()
    expect(
      final.choices[0]?.message.tool_calls?.map((one) => one.type === 'function' && one.function.arguments),
    ).toEqual(['{"zone":"UTC"}', '{"zone":"Asia/Tokyo"}'])
  })
  test('runTools: the loop, with what it replays of the last answer', async () => {
    await using bench = await openBench()
    bench.upstream.script = () =>
      bench.upstream.seen.length === 1
        ? chatToolCalls([{ name: 'clock', input: { zone: 'UTC' } }])
        : chatText('It is noon.')
    const zones: unknown[] = []
    const runner = bench.openai.chat.completions.runTools({
      model: 'gpt-guest',
      messages: [
        { role: 'developer', content: 'You are a guest assistant.' },
        { role: 'user', content: [{ type: 'text', text: 'What time is it?' }] },
      ],
      max_completion_tokens: 1000,
      reasoning_effort: 'low',
      tools: [
        {
          type: 'function',
          function: {
            ...CLOCK.function,
            parse: JSON.parse,
            function: ({ zone }: { zone: string }) => {
              zones.push(zone)
              return '12:00'
            },
          },
        },
      ],
    })
    expect(await runner.finalContent()).toBe('It is noon.')
    expect(zones).toEqual(['UTC'])
    const replayed = JSON.parse(bench.upstream.seen[1]?.body ?? '')
    expect(replayed.messages).toHaveLength(4)
    expect(replayed.messages[3]).toEqual({ role: 'tool', tool_call_id: 'call_0', content: '12:00' })
    expect(replayed.max_completion_tokens).toBe(1000)
  })
  test('several calls at once', async () => {
    await using bench = await openBench()
    const waiting: (() => void)[] = []
    bench.upstream.script = async () => {
      await new Promise<void>((go) => {
        waiting.push(go)
        if (waiting.length === 4) for (const one of waiting) one()
      })
      return chatText('hello')
    }
    const answers = await Promise.all(
      [1, 2, 3, 4].map((n) => bench.openai.chat.completions.create(ask(`${n}`))),
    )
    expect(answers.map((answer) => answer.choices[0]?.message.content)).toEqual(Array(4).fill('hello'))
  })
  test('T17 an abort in mid-stream reaches the provider', async () => {
    await using bench = await openBench()
    const closed = new Promise<void>((done) => {
      bench.upstream.script = (_, response) => {
        startStream(response)
        response.write(chatDelta({ content: 'a' }))
        response.on('close', done)
      }
    })
    const stream = await bench.openai.chat.completions.create({ ...ask('hi'), stream: true })
    for await (const _ of stream) break
    await closed
    expect(await bench.rig.reported(() => true)).toMatchObject({ reason: 'aborted' })
  })
  test('T16 a provider that dies in mid-stream is an error, and no end', async () => {
    await using bench = await openBench()
    bench.upstream.script = (_, response) => {
      startStream(response)
      response.write(chatStream(['a', 'b']).slice(0, 3).join(''), () => response.destroy())
    }
    let text = ''
    const reading = (async () => {
      for await (const chunk of await bench.openai.chat.completions.create({ ...ask('hi'), stream: true })) {
        text += chunk.choices[0]?.delta.content ?? ''
      }
    })()
    await expect(reading).rejects.toMatchObject({ code: 'upstream_failed' })
    expect(text).toBe('ab')
    expect(await bench.rig.reported(() => true)).toMatchObject({ reason: 'upstream_network' })
  })
  test('CS-09 and T6 no key: an error with a code, and no second try', async () => {
    await using bench = await openBench({ apiKey: () => undefined })
    const patient = bench.openai.withOptions({ maxRetries: 3 })
    await expect(patient.chat.completions.create(ask('hi'))).rejects.toMatchObject({
      status: 502,
      code: 'no_credential',
    })
    expect(bench.rig.events).toHaveLength(1)
  })
  test('T24 a limit of the provider: its body, its headers, and the client waits and tries again', async () => {
    await using bench = await openBench()
    bench.upstream.script = (_, response) => {
      if (bench.upstream.seen.length > 1) return chatText('at last')
      response.writeHead(429, {
        'content-type': 'application/json',
        'retry-after': '0',
        'x-request-id': 'req_1',
      })
      response.end('{"error":{"message":"slow down","type":"rate_limit_exceeded","code":"rate_limit"}}')
      return undefined
    }
    const patient = bench.openai.withOptions({ maxRetries: 1 })
    expect((await patient.chat.completions.create(ask('hi'))).choices[0]?.message.content).toBe('at last')
    bench.upstream.seen.length = 0
    await expect(bench.openai.chat.completions.create(ask('hi'))).rejects.toMatchObject({
      status: 429,
      code: 'rate_limit',
      requestID: 'req_1',
    })
  })
})

describe('issue 4: Responses through the socket', () => {
  const responsesUrl = async () => {
    const bench = await openBench({
      upstream: () => ({ responsesUrl: bench.upstream.url.concat('/v1/responses') }),
    })
    return bench
  }
  test('a stream and its end', async () => {
    await using bench = await responsesUrl()
    bench.upstream.script = streams([...responseStream(['Grüße ', '語']), responseCompleted('Grüße 語')])
    const stream = bench.openai.responses.stream({ model: 'gpt-guest', input: 'hi' })
    expect((await stream.finalResponse()).output_text).toBe('Grüße 語')
    expect(bench.upstream.seen[0]?.url).toBe('/v1/responses')
    expect(await bench.rig.reported(() => true)).toMatchObject({
      name: 'openai-responses',
      reason: 'ok',
      usage: { inputTokens: 9, outputTokens: 6, cachedTokens: 3, reasoningTokens: 1 },
    })
  })
  test('T27 a provider that dies: response.failed with the id that was created', async () => {
    await using bench = await responsesUrl()
    bench.upstream.script = (_, response) => {
      startStream(response)
      response.write(responseStream(['a']).join(''), () => response.destroy())
    }
    const stream = await bench.openai.responses.create({ model: 'gpt-guest', input: 'hi', stream: true })
    const events: OpenAI.Responses.ResponseStreamEvent[] = []
    for await (const one of stream) events.push(one)
    const last = events.at(-1)
    expect(last).toMatchObject({
      type: 'response.failed',
      sequence_number: 5,
      response: { id: 'resp_1', status: 'failed', error: { code: 'upstream_failed' } },
    })
  })
  test('an id of an earlier response passes when this turn made it, and is refused else', async () => {
    await using bench = await responsesUrl()
    bench.upstream.script = () => JSON.parse(responseCompleted('x').split('data: ')[1] ?? '').response
    const create = (id: string) =>
      bench.openai.responses.create({ model: 'gpt-guest', input: 'hi', previous_response_id: id })
    await expect(create('resp_1')).rejects.toMatchObject({ status: 400, code: 'input_refused' })
    await bench.openai.responses.create({ model: 'gpt-guest', input: 'hi' })
    expect((await create('resp_1')).id).toBe('resp_1')
    await expect(create('resp_2')).rejects.toMatchObject({ status: 400 })
    expect(bench.upstream.seen).toHaveLength(2)
  })
})

test('W-24 and W-26 a secret in a stream: an error, a closed route, one report [reflect:stopped]', async () => {
  const secret = canary()
  await using bench = await openBench({ apiKey: () => secret })
  bench.upstream.script = streams(chatStream(['well: ', ...secret, '!']))
  let text = ''
  const reading = (async () => {
    for await (const chunk of await bench.openai.chat.completions.create({ ...ask('hi'), stream: true })) {
      text += chunk.choices[0]?.delta.content ?? ''
    }
  })()
  await expect(reading).rejects.toMatchObject({ code: 'call_failed' })
  expect(text).toBe(`well: ${secret.slice(0, 7)}`)
  await expect(bench.openai.chat.completions.create(ask('hi'))).rejects.toMatchObject({
    status: 403,
    code: 'route_closed',
  })
  expect(bench.rig.events.map(({ reason }) => reason)).toEqual(['reflection', 'route_closed'])
  expect(bench.upstream.seen).toHaveLength(1)
})
