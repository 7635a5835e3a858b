import { describe, expect, test } from 'vitest'
import { anthropicMessages } from './anthropic.ts'
import type { FamilyStream, Reading, WireError, WireFamily } from './family.ts'
import { openAiChat } from './openai-chat.ts'
import { openAiResponses } from './openai-responses.ts'

const FAMILIES = [openAiChat, openAiResponses, anthropicMessages]
const BROKEN: WireError = { status: 502, code: 'upstream_failed', message: 'It broke.' }

/** Reads events in turn; the last reading. */
function last(stream: FamilyStream, values: readonly (object | string)[]): Reading {
  let reading: Reading = {}
  for (const value of values) {
    const data = typeof value === 'string' ? value : JSON.stringify(value)
    reading = stream.read({ type: '', data, value: typeof value === 'string' ? undefined : { ...value } })
  }
  return reading
}

const failure = (family: WireFamily, before: readonly object[] = []) => {
  const stream = family.follow()
  last(stream, before)
  const text = Buffer.from(stream.failure(BROKEN)).toString()
  const [, type, data] = /^(?:event: (.*)\n)?data: (.*)\n\n$/.exec(text) ?? []
  return { type, data: JSON.parse(data ?? '') }
}

describe('W-24 and T27 the event of a stream that broke off', () => {
  test('chat', () => {
    expect(failure(openAiChat)).toEqual({
      type: undefined,
      data: { error: { message: 'It broke.', type: 'server_error', param: null, code: 'upstream_failed' } },
    })
  })
  test('responses: with the id that was created, or an error when there is none yet', () => {
    expect(failure(openAiResponses)).toMatchObject({
      type: 'error',
      data: { type: 'error', code: 'upstream_failed', sequence_number: 0 },
    })
    const created = {
      type: 'response.created',
      sequence_number: 4,
      response: { id: 'resp_1', model: 'm', tools: [1] },
    }
    expect(failure(openAiResponses, [created])).toEqual({
      type: 'response.failed',
      data: {
        type: 'response.failed',
        sequence_number: 5,
        response: {
          id: 'resp_1',
          model: 'm',
          status: 'failed',
          error: { code: 'upstream_failed', message: 'It broke.' },
          output: [],
        },
      },
    })
  })
  test('anthropic', () => {
    expect(failure(anthropicMessages)).toEqual({
      type: 'error',
      data: { type: 'error', error: { type: 'api_error', message: 'It broke.', code: 'upstream_failed' } },
    })
  })
})

test.each<[status: number, openai: string, anthropic: string]>([
  [400, 'invalid_request_error', 'invalid_request_error'],
  [402, 'insufficient_quota', 'billing_error'],
  [403, 'permission_error', 'permission_error'],
  [404, 'not_found_error', 'not_found_error'],
  [413, 'invalid_request_error', 'request_too_large'],
  [429, 'rate_limit_error', 'rate_limit_error'],
  [502, 'server_error', 'api_error'],
])('T40 status %i has the type that clients of the family know', (status, openai, anthropic) => {
  const types = FAMILIES.map(
    (family) => family.errorBody({ ...BROKEN, status }) as { error: { type: string } },
  )
  expect(types.map(({ error }) => error.type)).toEqual([openai, openai, anthropic])
})

type Expected = { readonly [K in 'end' | 'failed' | 'usageOnly']?: Reading[K] | undefined }

describe('T29 what ends a stream', () => {
  const choice = (index: number, finish_reason: unknown = null) => ({ index, delta: {}, finish_reason })
  const cases: [what: string, family: WireFamily, events: (object | string)[], expected: Expected][] = [
    ['chat: a piece', openAiChat, [{ choices: [choice(0)] }], { end: undefined }],
    ['chat: [DONE]', openAiChat, ['[DONE]'], { end: 'ended' }],
    ['chat: T16 an empty finish reason', openAiChat, [{ choices: [choice(0, '')] }], { end: undefined }],
    [
      'chat: every choice finished',
      openAiChat,
      [{ choices: [choice(0, 'stop'), choice(1, 'length')] }],
      { end: 'finished' },
    ],
    [
      'chat: one of two',
      openAiChat,
      [{ choices: [choice(0), choice(1)] }, { choices: [choice(1, 'stop')] }],
      { end: undefined },
    ],
    [
      'chat: usage without a choice',
      openAiChat,
      [{ choices: [], usage: { prompt_tokens: 1 } }],
      { end: undefined, usageOnly: true },
    ],
    ['chat: an error', openAiChat, [{ error: 'x' }], { end: 'finished', failed: true }],
    [
      'responses: a piece',
      openAiResponses,
      [{ type: 'response.output_text.delta', delta: 'x' }],
      { end: undefined },
    ],
    ['responses: completed', openAiResponses, [{ type: 'response.completed' }], { end: 'ended' }],
    ['responses: incomplete', openAiResponses, [{ type: 'response.incomplete' }], { end: 'ended' }],
    ['responses: failed', openAiResponses, [{ type: 'response.failed' }], { end: 'ended', failed: true }],
    ['responses: error', openAiResponses, [{ type: 'error' }], { end: 'ended', failed: true }],
    [
      'anthropic: a piece',
      anthropicMessages,
      [{ type: 'message_delta', delta: { stop_reason: 'end_turn' } }],
      { end: undefined },
    ],
    ['anthropic: message_stop', anthropicMessages, [{ type: 'message_stop' }], { end: 'ended' }],
    ['anthropic: error', anthropicMessages, [{ type: 'error' }], { end: 'ended', failed: true }],
    ['anthropic: ping', anthropicMessages, [{ type: 'ping' }], { end: undefined }],
  ]
  test.each(cases)('%s', (_, family, events, expected) => {
    const { end, failed, usageOnly } = last(family.follow(), events)
    expect({ end, failed, usageOnly: usageOnly || undefined }).toEqual({
      failed: undefined,
      usageOnly: undefined,
      ...expected,
    })
  })
  test('an event type in its `event` field alone is enough', () => {
    expect(openAiResponses.follow().read({ type: 'response.failed', data: '{}', value: {} }).end).toBe(
      'ended',
    )
    expect(anthropicMessages.follow().read({ type: 'message_stop', data: '{}', value: {} }).end).toBe('ended')
  })
})

describe('W-14 token counts', () => {
  test.each<[WireFamily, object, object | undefined]>([
    [
      openAiChat,
      {
        usage: {
          prompt_tokens: 9,
          completion_tokens: 5,
          prompt_tokens_details: { cached_tokens: 4 },
          completion_tokens_details: { reasoning_tokens: 2 },
        },
      },
      { inputTokens: 9, outputTokens: 5, cachedTokens: 4, reasoningTokens: 2 },
    ],
    [
      openAiResponses,
      {
        usage: {
          input_tokens: 9,
          output_tokens: 5,
          input_tokens_details: { cached_tokens: 4 },
          output_tokens_details: { reasoning_tokens: 2 },
        },
      },
      { inputTokens: 9, outputTokens: 5, cachedTokens: 4, reasoningTokens: 2 },
    ],
    [
      anthropicMessages,
      {
        usage: {
          input_tokens: 9,
          output_tokens: 5,
          cache_read_input_tokens: 4,
          cache_creation_input_tokens: 3,
        },
      },
      { inputTokens: 9, outputTokens: 5, cachedTokens: 4, cacheWriteTokens: 3 },
    ],
    [openAiChat, {}, undefined],
    [openAiChat, { usage: { prompt_tokens: -1, completion_tokens: '5', total_tokens: 1 } }, undefined],
    [openAiChat, { usage: [1] }, undefined],
  ])('%o', (family, answer, usage) => {
    expect(family.usageOf({ ...answer })).toEqual(usage)
  })
  test('anthropic tells them in two events', () => {
    const stream = anthropicMessages.follow()
    const start = { type: 'message_start', message: { usage: { input_tokens: 9, output_tokens: 1 } } }
    expect(last(stream, [start]).usage).toEqual({ inputTokens: 9, outputTokens: 1 })
    expect(last(stream, [{ type: 'message_delta', usage: { output_tokens: 7 } }]).usage).toEqual({
      outputTokens: 7,
    })
  })
})
