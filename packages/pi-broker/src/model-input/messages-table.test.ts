import { rewriteRequest } from '@sandbox/broker/engine'
import { limits, THINKING_LEVELS } from '@sandbox/protocol'
import { describe, expect, test } from 'vitest'
import { type MessagesTableOptions, messagesTable } from './messages-table.ts'

const ALL = new Set(['midConversationEffort', 'blockBinding', 'deferLoading', 'contextManagement'] as const)
const HOST = { model: 'host-model', maxOutputTokens: 128_000 }
const PNG = { type: 'image', source: { type: 'base64', media_type: 'image/png', data: 'AAAA' } }
const USER = { role: 'user', content: 'hi' }
const ASK = { model: 'host-model', max_tokens: 100, messages: [USER] }

type Json = Record<string, unknown>

async function rewrite(body: unknown, table: Partial<MessagesTableOptions> = {}, host: object = {}) {
  const text = typeof body === 'string' ? body : JSON.stringify(body)
  const result = await rewriteRequest({
    bytes: Buffer.from(text),
    table: messagesTable({ endpoint: 'messages', level: 'xhigh', flagged: ALL, ...table }),
    host: { ...HOST, ...host },
  })
  if (!result.ok) return { refused: `${result.path}: ${result.problem}` }
  const sent = Buffer.from(result.bytes).toString()
  return {
    sent,
    json: JSON.parse(sent) as Json,
    dropped: result.dropped,
    facts: result.facts,
    same: sent === text,
  }
}

const refused = async (body: unknown, table?: Partial<MessagesTableOptions>) =>
  (await rewrite(body, table)).refused
const json = async (body: unknown, table?: Partial<MessagesTableOptions>, host?: object) =>
  (await rewrite(body, table, host)).json as Json
const messages = (...list: unknown[]) => ({ ...ASK, messages: list })
const blocks = (...list: unknown[]) => messages({ role: 'user', content: list })

describe('what passes as it is', () => {
  test.each([
    ['a text', ASK],
    ['PM-05 PM-06 blocks', blocks({ type: 'text', text: 'a' }, PNG)],
    [
      'PM-07 PM-08 a tool loop',
      messages(
        USER,
        {
          role: 'assistant',
          content: [{ type: 'tool_use', id: 'toolu_1', name: 'clock', input: { a: [{ type: 'url' }] } }],
        },
        {
          role: 'user',
          content: [
            {
              type: 'tool_result',
              tool_use_id: 'toolu_1',
              content: [{ type: 'text', text: '12' }, PNG],
              is_error: true,
            },
            { type: 'tool_result', tool_use_id: 'toolu_2', content: '12', is_error: false },
            { type: 'tool_result', tool_use_id: 'toolu_3' },
          ],
        },
      ),
    ],
    [
      'PM-09 thinking in all its forms',
      messages(USER, {
        role: 'assistant',
        content: [
          { type: 'thinking', thinking: 'Let me see.', signature: 'c2ln' },
          { type: 'thinking', thinking: '', signature: 'c2ln' },
          { type: 'thinking', thinking: 'x', signature: '' },
          { type: 'redacted_thinking', data: 'b3BhcXVl' },
          { type: 'text', text: 'So.' },
        ],
      }),
    ],
    [
      'PM-03 a system message in mid-conversation',
      messages(USER, {
        role: 'system',
        content: [{ type: 'text', text: 'Now be brief.', cache_control: { type: 'ephemeral' } }],
        cache_control: { type: 'ephemeral', ttl: '1h' },
        clear_at: 'next_user_message',
        output_config: { effort: 'max' },
      }),
    ],
    [
      'captures 3: one with an empty list',
      messages(USER, { role: 'system', content: [], output_config: { effort: 'low' } }),
    ],
    [
      'PM-11 a system prompt',
      { ...ASK, system: [{ type: 'text', text: 'x', cache_control: { type: 'ephemeral' } }] },
    ],
    [
      'PM-12 tools',
      {
        ...ASK,
        tools: [
          { name: 'a', input_schema: { type: 'object', properties: { $ref: { type: 'string' } } } },
          {
            type: 'custom',
            name: '__pi_deferred_placeholder__',
            description: 'x',
            eager_input_streaming: true,
            strict: true,
            input_examples: [{ zone: 'UTC' }],
            defer_loading: true,
            input_schema: { type: 'object' },
            cache_control: { type: 'ephemeral' },
          },
        ],
        tool_choice: { type: 'tool', name: 'a', disable_parallel_tool_use: true },
      },
    ],
    [
      'PM-14 captures 3 adaptive thinking',
      {
        ...ASK,
        thinking: {
          type: 'adaptive',
          display: 'summarized',
          block_binding: { prefix_mismatch_behavior: 'drop_block' },
        },
      },
    ],
    ['PM-14 disabled thinking', { ...ASK, thinking: { type: 'disabled' } }],
    ['PM-16 an effort', { ...ASK, output_config: { effort: 'max' } }],
    [
      'PM-19 PM-20 PM-21',
      { ...ASK, stream: true, temperature: 0.5, top_p: 1, top_k: 40, stop_sequences: ['a', 'b'] },
    ],
    [
      'T41 context_management with its flag',
      { ...ASK, context_management: { edits: [{ type: 'clear_thinking_20251015' }] } },
    ],
  ])('%s', async (_what, body) => {
    expect(await rewrite(body)).toMatchObject({ same: true, dropped: [] })
  })
})

test('T45 a call that came back from the API passes with its caller, and no other caller does', async () => {
  const use = {
    type: 'tool_use',
    id: 'a',
    name: 'b',
    input: {},
    caller: { type: 'direct' },
    toolset_name: null,
  }
  const body = messages(USER, { role: 'assistant', content: [use] })
  expect((await rewrite(body)).same).toBe(true)
  const served = {
    ...use,
    caller: { type: 'code_execution_20260521', tool_id: 'x' },
    toolset_name: 'browser',
  }
  const { caller: _, toolset_name: __, ...plain } = use
  expect(await json(messages(USER, { role: 'assistant', content: [served] }))).toEqual(
    messages(USER, { role: 'assistant', content: [plain] }),
  )
})

describe('what refuses the request', () => {
  test.each([
    ['PM-01', { ...ASK, messages: 'hi' }, 'messages: is not an array'],
    ['PM-01', { model: 'm' }, 'messages: is missing'],
    ['PM-02', messages({ role: 'developer', content: 'x' }), 'messages[0]: Unexpected role "developer"'],
    ['PM-02', messages({ content: 'x' }), 'messages[0]: Unexpected role ""'],
    [
      'PM-04',
      messages({ content: [{ type: 'tool_removal' }], role: 'system' }),
      "messages[0].content[0]: Input tag 'tool_removal'",
    ],
    [
      'PM-04',
      messages({ content: [{ type: 'text', text: '' }, PNG], role: 'system' }),
      "messages[0]: content.1: Input tag 'image'",
    ],
    ['PM-05', blocks({ type: 'server_tool_use' }), "messages[0].content[0]: Input tag 'server_tool_use'"],
    ['PM-05', blocks({ type: 'document', title: 'x' }), "messages[0].content[0]: Input tag 'document'"],
    ['PM-05', blocks({ type: 'constructor' }), "messages[0].content[0]: Input tag 'constructor'"],
    ['PM-05', blocks({ text: 'x' }), "messages[0].content[0]: Input tag ''"],
    [
      'PM-06',
      blocks({ ...PNG, source: { type: 'url', url: 'https://a.example' } }),
      'messages[0].content[0].source.type: must be inline',
    ],
    [
      'PM-06',
      blocks({ ...PNG, source: { type: 'file', file_id: 'f' } }),
      'messages[0].content[0].source.type: must be inline',
    ],
    [
      'PM-06',
      blocks({ ...PNG, source: { ...PNG.source, media_type: 'image/svg+xml' } }),
      'messages[0].content[0].source.media_type: ',
    ],
    [
      'PM-06',
      blocks({ ...PNG, source: { ...PNG.source, data: 'https://a.example' } }),
      'messages[0].content[0].source.data: must be inline',
    ],
    [
      'PM-06',
      blocks({ ...PNG, source: { ...PNG.source, data: '' } }),
      'messages[0].content[0].source.data: must be inline',
    ],
    ['PM-07', blocks({ type: 'tool_use', id: '', name: 'a', input: {} }), 'messages[0].content[0].id: '],
    [
      'PM-07',
      blocks({ type: 'tool_use', id: 'x'.repeat(129), name: 'a', input: {} }),
      'messages[0].content[0].id: ',
    ],
    ['PM-07', blocks({ type: 'tool_use', id: 'a', name: 'a b', input: {} }), 'messages[0].content[0].name: '],
    [
      'PM-07',
      blocks({ type: 'tool_use', id: 'a', name: 'a', input: [] }),
      'messages[0].content[0].input: is not an object',
    ],
    [
      'PM-07',
      blocks({
        type: 'tool_result',
        tool_use_id: 'a',
        content: [{ type: 'tool_use', id: 'a', name: 'a', input: {} }],
      }),
      "messages[0].content[0].content[0]: Input tag 'tool_use'",
    ],
    [
      'PM-08',
      blocks({ type: 'tool_result', content: 'x' }),
      'messages[0].content[0].tool_use_id: is missing',
    ],
    [
      'PM-08',
      blocks({ type: 'tool_result', tool_use_id: 'a', content: [{ type: 'search_result' }] }),
      "messages[0].content[0].content[0]: Input tag 'search_result'",
    ],
    ['PM-09', blocks({ type: 'thinking', thinking: 'x' }), 'messages[0].content[0].signature: is missing'],
    ['PM-09', blocks({ type: 'redacted_thinking' }), 'messages[0].content[0].data: is missing'],
    [
      'PM-09',
      blocks({
        type: 'tool_result',
        tool_use_id: 'a',
        content: [{ type: 'thinking', thinking: '', signature: '' }],
      }),
      "messages[0].content[0].content[0]: Input tag 'thinking'",
    ],
    ['PM-11', { ...ASK, system: [{ type: 'document' }] }, "system[0]: Input tag 'document'"],
    [
      'PM-12',
      { ...ASK, tools: [{ type: 'web_search_20260318', name: 'web_search' }] },
      'tools[0].type: only custom tools',
    ],
    [
      'PM-12',
      { ...ASK, tools: [{ type: 'mcp_toolset', name: 'x', input_schema: {} }] },
      'tools[0].type: only custom tools',
    ],
    ['PM-12', { ...ASK, tools: [{ name: 'a' }] }, 'tools[0].input_schema: is missing'],
    [
      'PM-12 MI-08',
      { ...ASK, tools: [{ name: 'a', input_schema: { $ref: 'https://a.example/s.json' } }] },
      'tools[0].input_schema',
    ],
    [
      'PM-12',
      { ...ASK, tools: Array(129).fill({ name: 'a', input_schema: {} }) },
      'tools[128]: is beyond the 128',
    ],
    ['PM-13', { ...ASK, tool_choice: { type: 'server' } }, 'tool_choice.type: is none of'],
    ['PM-13', { ...ASK, tool_choice: { type: 'tool' } }, 'tool_choice.name: is missing'],
    ['PM-14', { ...ASK, thinking: { type: 'always' } }, 'thinking.type: is none of'],
    [
      'PM-14',
      { ...ASK, thinking: { type: 'enabled', budget_tokens: 1023 } },
      'thinking.budget_tokens: must be',
    ],
    [
      'PM-14',
      { ...ASK, thinking: { type: 'enabled', budget_tokens: 2000.5 } },
      'thinking.budget_tokens: must be',
    ],
    [
      'T44 threads',
      { ...ASK, thread: { type: 'continue', previous_message_id: 'msg_1' } },
      'thread: Extra inputs',
    ],
    ['T45 a name twice', '{"messages":[],"messages":[]}', ''],
  ])('%s %j', async (_rule, body, problem) => {
    expect(await refused(body)).toContain(problem)
  })
})

describe('PM-10 and PM-23 what is dropped', () => {
  test.each([
    ['metadata', { user_id: 'x' }],
    ['service_tier', 'priority'],
    ['speed', 'fast'],
    ['fallbacks', [{ model: 'x' }]],
    ['container', 'c'],
    ['mcp_servers', [{ type: 'url', url: 'https://a.example', name: 'a' }]],
    ['inference_geo', 'eu'],
    ['betas', ['x']],
    ['later_field', { a: 1 }],
  ])('%s', async (name, value) => {
    const result = await rewrite({ ...ASK, [name]: value })
    expect([result.json, result.dropped]).toEqual([ASK, [name]])
  })
  test('decision 12 T41 the operator lets more pass, by name', async () => {
    const body = { ...ASK, service_tier: 'priority', later_field: 1 }
    const allowFields = new Set(['service_tier', 'later_field'])
    expect(await json(body, {}, { allowFields })).toEqual(body)
  })
  test.each([
    [{ type: 'ephemeral', ttl: '2h' }, { type: 'ephemeral' }],
    [{ type: 'ephemeral', id: 'x' }, { type: 'ephemeral' }],
    [{ type: 'permanent' }, undefined],
    [{ type: 5 }, undefined],
    ['ephemeral', undefined],
    [{ type: 'ephemeral', padding: 'x'.repeat(70_000) }, undefined],
  ])('PM-10 cache_control %#', async (given, left) => {
    const block = { type: 'text', text: 'x' }
    const body = { ...blocks({ ...block, cache_control: given }), cache_control: given }
    const expected = left === undefined ? {} : { cache_control: left }
    expect(await json(body)).toEqual({ ...blocks({ ...block, ...expected }), ...expected })
  })
  test('T44 what stands in a thinking block and does not belong there goes; its own fields stay as they are', async () => {
    const thinking = { type: 'thinking', thinking: 'x', signature: 'y' }
    const given = { ...thinking, cache_control: { type: 'ephemeral' }, text: 'smuggled', data: 'z' }
    expect(await json(messages(USER, { role: 'assistant', content: [given] }))).toEqual(
      messages(USER, { role: 'assistant', content: [thinking] }),
    )
  })
  test('PM-03 smuggled keys of a system message, and its keys in other messages', async () => {
    const system = {
      role: 'system',
      content: 'x',
      clear_at: 'tomorrow',
      name: 'y',
      output_config: { effort: 'huge', format: {} },
    }
    const user = {
      ...USER,
      clear_at: 'never',
      output_config: { effort: 'low' },
      cache_control: { type: 'ephemeral' },
    }
    expect(await json(messages(user, system))).toEqual(
      messages(USER, { role: 'system', content: 'x', output_config: {} }),
    )
  })
  test('PM-21 stop sequences that are not as they should be go whole', async () => {
    for (const stop_sequences of [Array(17).fill('a'), ['x'.repeat(1001)], [1], 'x', ['x'.repeat(70_000)]]) {
      expect(await json({ ...ASK, stop_sequences })).toEqual(ASK)
    }
  })
  test('PM-19 PM-20 knobs of a wrong type', async () => {
    expect(await json({ ...ASK, stream: 'true', temperature: 'hot', top_p: [], top_k: {} })).toEqual(ASK)
    expect((await rewrite({ ...ASK, stream: false })).facts?.stream).toBe(false)
    expect((await rewrite({ ...ASK, stream: true })).facts?.stream).toBe(true)
  })
  test('PM-22 count_tokens takes nothing that concerns an answer', async () => {
    const answer = { max_tokens: 5, stream: true, temperature: 1, top_p: 1, top_k: 1, stop_sequences: ['a'] }
    const left = { model: 'host-model', messages: [USER] }
    expect(await json({ ...left, ...answer }, { endpoint: 'count_tokens' })).toEqual(left)
  })
  test('decision 13 without its flag a field goes', async () => {
    const body = {
      ...messages(USER, { role: 'system', content: 'x', output_config: { effort: 'low' } }),
      tools: [{ name: 'a', input_schema: {}, defer_loading: true }],
      thinking: { type: 'adaptive', block_binding: { prefix_mismatch_behavior: 'drop_block' } },
      context_management: { edits: [] },
    }
    expect(await json(body, { flagged: new Set() })).toEqual({
      ...messages(USER, { role: 'system', content: 'x' }),
      tools: [{ name: 'a', input_schema: {} }],
      thinking: { type: 'adaptive' },
    })
  })
  test('call:host-chooses-model PM-23 the model is the host’s', async () => {
    expect(await json({ ...ASK, model: 'claude-priciest' })).toEqual(ASK)
    const { model: _, ...nameless } = ASK
    expect(await json(nameless)).toEqual(ASK)
  })
})

describe('PM-15 to PM-18: never above the host’s level [call:host-chooses-effort]', () => {
  const CEILINGS = {
    low: ['low', 2048],
    medium: ['medium', 8192],
    high: ['high', 16_384],
    xhigh: ['max', 32_768],
  } as const
  const EFFORTS = ['low', 'medium', 'high', 'xhigh', 'max']
  test.each(THINKING_LEVELS)('PM-15 PM-16 %s', async (level) => {
    const [effort, budget] = CEILINGS[level]
    const most = EFFORTS.indexOf(effort)
    for (const [at, asked] of EFFORTS.entries()) {
      const body = {
        ...messages(USER, { role: 'system', content: [], output_config: { effort: asked } }),
        output_config: { effort: asked },
      }
      const expected = EFFORTS[Math.min(at, most)]
      expect(await json(body, { level })).toEqual({
        ...messages(USER, { role: 'system', content: [], output_config: { effort: expected } }),
        output_config: { effort: expected },
      })
    }
    const thinking = { type: 'enabled', budget_tokens: 200_000 }
    const max_tokens = budget + 1
    expect(await json({ ...ASK, thinking }, { level })).toEqual({
      ...ASK,
      max_tokens,
      thinking: { type: 'enabled', budget_tokens: budget },
    })
  })

  test('PM-17 adaptive thinking without an effort gets the ceiling at low and medium', async () => {
    for (const level of ['low', 'medium'] as const) {
      const body = { ...ASK, thinking: { type: 'adaptive' } }
      expect(await json(body, { level })).toEqual({ ...body, output_config: { effort: level } })
      const config = { format: { type: 'json_schema', schema: { type: 'object' } } }
      expect(await json({ ...body, output_config: { ...config, effort: 'huge' } }, { level })).toEqual({
        ...body,
        output_config: { ...config, effort: level },
      })
      expect(await json({ ...body, output_config: null }, { level })).toEqual({
        ...body,
        output_config: { effort: level },
      })
    }
    for (const level of ['high', 'xhigh'] as const) {
      expect((await rewrite({ ...ASK, thinking: { type: 'adaptive' } }, { level })).same).toBe(true)
    }
  })

  test('PM-17 nor by spaces, large fields or the order of names does a guest get around it', async () => {
    const space = ' '.repeat(70_000)
    const base = '"messages":[{"role":"user","content":"hi"}]'
    expect(await refused(`{${base},"thinking":{"type":"adaptive"${space}}}`, { level: 'low' })).toContain(
      'thinking',
    )
    const config = `"output_config":{"format":{"type":"json_schema","schema":{"title":"${'x'.repeat(70_000)}"}}}`
    expect(await refused(`{${base},${config},"thinking":{"type":"adaptive"}}`, { level: 'low' })).toContain(
      'output_config',
    )
    const first = `{"thinking":{"type":"adap\\u0074ive"},${base}}`
    expect(await json(first, { level: 'low' })).toMatchObject({ output_config: { effort: 'low' } })
  })

  test('PM-03 the effort that counts is the last one; those of answers that are given stay as they were sent', async () => {
    const at = (effort: string) => ({ role: 'system', content: [], output_config: { effort } })
    const said = { role: 'assistant', content: 'ok' }
    const body = messages(USER, at('high'), said, USER, at('max'))
    expect(await json(body, { level: 'low' })).toEqual(messages(USER, at('high'), said, USER, at('low')))
    // Nor does a later message that sets nothing, or that is no system message, take its place.
    const later = messages(USER, at('max'), at('huge'), { ...USER, output_config: { effort: 'low' } })
    expect(await json(later, { level: 'low' })).toEqual(
      messages(USER, at('low'), { role: 'system', content: [], output_config: {} }, USER),
    )
  })

  test.each([
    [undefined, 16_384],
    ['many', 16_384],
    [0, 16_384],
    [-5, 16_384],
    [1.5, 16_384],
    [1, 1],
    [128_000, 128_000],
    [128_001, 128_000],
    [1e300, 16_384],
  ])('PM-18 max_tokens %s becomes %i', async (asked, limit) => {
    expect((await json({ ...ASK, max_tokens: asked })).max_tokens).toBe(limit)
  })

  test('PM-14 PM-18 a budget leaves room for an answer within the host’s limit', async () => {
    const body = { ...ASK, max_tokens: 50, thinking: { type: 'enabled', budget_tokens: 30_000 } }
    expect(await json(body, {}, { maxOutputTokens: 5000 })).toMatchObject({
      max_tokens: 5000,
      thinking: { budget_tokens: 4999 },
    })
  })

  test('PM-14 thinking that is no object is ignored', async () => {
    for (const thinking of [null, 'enabled', 5, []]) expect(await json({ ...ASK, thinking })).toEqual(ASK)
  })
})

test('W-39 more messages than are taken are told as a prompt that is too long', async () => {
  const many = Array.from({ length: 16_385 }, () => USER)
  expect(await refused({ ...ASK, messages: many })).toBe(
    'messages[16384]: is beyond the 16384 entries that are allowed',
  )
})

test('W-31 an image of the largest size passes, and a larger one does not', async () => {
  const sized = (bytes: number) => {
    const data = Buffer.alloc(bytes).toString('base64')
    return blocks({ ...PNG, source: { ...PNG.source, data } })
  }
  expect((await rewrite(sized(limits.IMAGE_BYTES))).same).toBe(true)
  expect(await refused(sized(limits.IMAGE_BYTES + 3))).toContain('source.data')
})
