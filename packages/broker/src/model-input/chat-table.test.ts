import { describe, expect, it } from 'vitest'
import type { RequestHost } from '../engine/body-table/request-table.ts'
import { rewriteRequest } from '../engine/body-table/rewrite-request.ts'
import { type ChatTableOptions, chatTable } from './chat-table.ts'

const host: RequestHost = { model: 'host-model', maxOutputTokens: 1000 }
const plain: ChatTableOptions = { tokenLimitField: 'max_completion_tokens' }
const hello = { role: 'user', content: 'hello' }
/** What the host decides, as it decides it: then nothing is edited. */
const settled = { model: 'host-model', max_completion_tokens: 1000 }

async function run(
  body: object | string,
  options: Partial<ChatTableOptions> = {},
  with_: RequestHost = host,
) {
  const bytes = new Uint8Array(Buffer.from(typeof body === 'string' ? body : JSON.stringify(body)))
  const result = await rewriteRequest({ bytes, table: chatTable({ ...plain, ...options }), host: with_ })
  return result.ok
    ? { ...result, same: result.bytes === bytes, text: Buffer.from(result.bytes).toString() }
    : result
}

async function accepted(body: object | string, options?: Partial<ChatTableOptions>, with_?: RequestHost) {
  const result = await run(body, options, with_)
  if (!result.ok) throw new TypeError(`${result.path}: ${result.problem}`)
  return { ...result, body: JSON.parse(result.text) as Record<string, unknown> }
}

async function refusal(body: object, with_?: RequestHost): Promise<string> {
  const result = await run(body, {}, with_)
  return result.ok ? 'accepted' : `${result.path}: ${result.problem}`
}

const passes = async (fields: object, with_?: RequestHost) =>
  expect(await accepted({ ...settled, messages: [hello], ...fields }, {}, with_)).toMatchObject({
    same: true,
    dropped: [],
  })

const call = { id: 'call_1', type: 'function', function: { arguments: '{"zone":"UTC"}', name: 'Clock-2' } }
const tool = (fields: object) => ({ type: 'function', function: { name: 'clock', ...fields } })

describe('decision 9 what official clients send passes as it is', () => {
  it.each([
    ['a developer message', { messages: [{ role: 'developer', content: 'be short' }, hello] }],
    ['content parts', { messages: [{ role: 'user', content: [{ type: 'text', text: 'hi' }] }] }],
    ['a name', { messages: [{ role: 'user', name: 'ann', content: 'hi' }] }],
    [
      'a replayed tool loop with content and refusal null, calls in parallel',
      {
        messages: [
          hello,
          {
            role: 'assistant',
            content: null,
            refusal: null,
            audio: null,
            tool_calls: [call, { ...call, id: '2' }],
          },
          { role: 'tool', tool_call_id: 'call_1', content: '12:00' },
          { role: 'tool', tool_call_id: '2', content: [{ type: 'text', text: '12:00' }] },
          { role: 'assistant', content: [{ type: 'refusal', refusal: 'no' }], tool_calls: null },
        ],
      },
    ],
    [
      'a strict tool without a description',
      { tools: [tool({ strict: true, parameters: { type: 'object' } })] },
    ],
    ['a tool without parameters', { tools: [tool({})], parallel_tool_calls: true, tool_choice: 'required' }],
    [
      'custom tools and calls of them',
      {
        tools: [
          { type: 'custom', custom: { name: 'sql', format: { type: 'text' } } },
          {
            type: 'custom',
            custom: {
              name: 'sum',
              format: { type: 'grammar', grammar: { definition: 'start: "a"', syntax: 'lark' } },
            },
          },
        ],
        messages: [
          {
            role: 'assistant',
            tool_calls: [{ id: '1', type: 'custom', custom: { name: 'sql', input: 'x' } }],
          },
        ],
      },
    ],
    ['a choice of one tool', { tool_choice: { function: { name: 'clock' }, type: 'function' } }],
    [
      'a choice of some tools',
      {
        tool_choice: {
          type: 'allowed_tools',
          allowed_tools: { mode: 'auto', tools: [{ type: 'function', function: { name: 'clock' } }] },
        },
      },
    ],
    ['the older function calls', { functions: [{ name: 'a' }], function_call: { name: 'a' } }],
    ['an answer format', { response_format: { type: 'json_object' } }],
    [
      'an answer schema',
      {
        response_format: {
          type: 'json_schema',
          json_schema: { name: 'r', strict: true, schema: { type: 'object' } },
        },
      },
    ],
    ['an inline image', { messages: [{ role: 'user', content: [image('data:image/png;base64,AAAA')] }] }],
    [
      'inline audio and files',
      {
        messages: [
          {
            role: 'user',
            content: [
              { type: 'input_audio', input_audio: { data: 'UklGRg==', format: 'wav' } },
              { type: 'file', file: { filename: 'a.pdf', file_data: 'data:application/pdf;base64,AAAA' } },
            ],
          },
        ],
      },
    ],
    [
      'knobs',
      {
        temperature: 0.7,
        top_p: null,
        frequency_penalty: -2,
        presence_penalty: 0,
        seed: 7,
        stop: ['\n', 'END'],
        logit_bias: { 50256: -100 },
        logprobs: true,
        top_logprobs: 3,
        reasoning_effort: 'xhigh',
        verbosity: 'low',
        prompt_cache_key: 'k',
      },
    ],
    [
      'what says nothing',
      { n: 1, store: false, user: null, metadata: null, service_tier: null, modalities: null },
    ],
    ['no stream', { stream: false }],
  ])('T41 %s', async (_, fields) => {
    await passes(fields)
  })

  it('T44 T45 escapes, big integers and the order of keys survive an edit elsewhere', async () => {
    const messages = `[{"content":"\\u003cb\\u003e \\/ \\ud83d\\ude00","role":"user"}]`
    const tools = `[{"function":{"parameters":{"properties":{"2":{"maximum":12345678901234567890},"1":{}}},"name":"a"},"type":"function"}]`
    const result = await accepted(`{"tools":${tools}, "model":"guest", "messages":${messages}}`)
    expect(result.text).toBe(
      `{"tools":${tools}, "model":"host-model", "messages":${messages},"max_completion_tokens":1000}`,
    )
  })
})

function image(url: string) {
  return { type: 'image_url', image_url: { url, detail: 'low' } }
}

describe('the host decides', () => {
  it('SB-23 the model, also when the guest names none', async () => {
    expect((await accepted({ messages: [hello], model: 'guest' })).body.model).toBe('host-model')
    const { body, facts } = await accepted({ messages: [hello] })
    expect(body.model).toBe('host-model')
    expect(facts.guestModel).toBeUndefined()
    expect((await accepted({ messages: [hello], model: 'g'.repeat(500) })).facts.guestModel).toHaveLength(128)
    expect((await accepted({ messages: [hello], model: { a: 1 } })).body.model).toBe('host-model')
  })

  it.each([
    ['audio', { voice: 'a', format: 'mp3' }],
    ['metadata', { a: 'b' }],
    ['modalities', ['text', 'audio']],
    ['moderation', 'auto'],
    ['n', 5],
    ['n', 1e300],
    ['prediction', { type: 'content', content: 'x' }],
    ['prompt_cache_options', { mode: 'auto', ttl: '24h' }],
    ['prompt_cache_retention', '24h'],
    ['safety_identifier', 'someone'],
    ['service_tier', 'priority'],
    ['store', true],
    ['user', 'someone'],
    ['web_search_options', {}],
    ['callback_url', 'https://evil.example'],
  ])('SB-23 decision 12 %s is dropped and named', async (name, value) => {
    const json = JSON.stringify({ ...settled, [name]: 0, messages: [hello] })
    const sent = json.replace(`"${name}":0`, `"${name}":${JSON.stringify(value)}`)
    const { body, dropped } = await accepted(sent)
    expect(body).toEqual({ ...settled, messages: [hello] })
    expect(dropped).toEqual([name])
  })

  it('decision 12 the operator allows a field, and sets one', async () => {
    const own = { ...host, allowFields: new Set(['service_tier', 'top_k']), setFields: { user: 'bot' } }
    const { body, dropped } = await accepted(
      { messages: [hello], ...settled, service_tier: 'flex', top_k: 4, user: 'me', n: 2 },
      {},
      own,
    )
    expect(body).toEqual({ messages: [hello], ...settled, service_tier: 'flex', top_k: 4, user: 'bot' })
    expect(dropped).toEqual(['user', 'n'])
  })
})

describe('T43 the limit of tokens', () => {
  it.each([
    [{}, plain, { max_completion_tokens: 1000 }, 1000],
    [{}, { tokenLimitField: 'max_tokens' }, { max_tokens: 1000 }, 1000],
    [{ max_tokens: 50 }, plain, { max_tokens: 50 }, 50],
    [{ max_tokens: 5000 }, plain, { max_tokens: 1000 }, 1000],
    [
      { max_completion_tokens: 5000 },
      { tokenLimitField: 'max_tokens' },
      { max_completion_tokens: 1000 },
      1000,
    ],
    [
      { max_tokens: 70, max_completion_tokens: 9999 },
      plain,
      { max_tokens: 70, max_completion_tokens: 1000 },
      70,
    ],
    [{ max_tokens: null }, plain, { max_tokens: 1000 }, 1000],
    [{ max_tokens: -1 }, plain, { max_tokens: 1000 }, 1000],
    [{ max_tokens: 50 }, { ...plain, renameTokenLimit: true }, { max_completion_tokens: 50 }, 50],
    [{ max_tokens: 5000 }, { ...plain, renameTokenLimit: true }, { max_completion_tokens: 1000 }, 1000],
    [{ max_completion_tokens: 40 }, { ...plain, renameTokenLimit: true }, { max_completion_tokens: 40 }, 40],
    [
      { max_tokens: 50, max_completion_tokens: 60 },
      { ...plain, renameTokenLimit: true },
      { max_completion_tokens: 60 },
      60,
    ],
  ] as const)('T43 %j with %j becomes %j', async (sent, options, wanted, limit) => {
    const { body, facts } = await accepted({ messages: [hello], ...sent, model: 'host-model' }, options)
    expect(body).toEqual({ messages: [hello], model: 'host-model', ...wanted })
    expect(facts.outputTokens).toBe(limit)
  })
})

describe('streams', () => {
  const stream = { ...settled, messages: [hello], stream: true }

  it.each([
    [undefined, { include_usage: true }, false],
    [null, { include_usage: true }, false],
    [{}, { include_usage: true }, false],
    [
      { include_usage: false, include_obfuscation: false },
      { include_usage: true, include_obfuscation: false },
      false,
    ],
    [{ include_usage: true }, { include_usage: true }, true],
  ])('usage is asked for whatever the guest asked: stream_options %j', async (sent, wanted, asked) => {
    const { body, facts } = await accepted({
      ...(sent === undefined ? {} : { stream_options: sent }),
      ...stream,
    })
    expect(body.stream_options).toEqual(wanted)
    expect(facts).toMatchObject({ stream: true, usageAsked: asked })
  })

  it('endpoints that do not know stream_options get what the guest sent', async () => {
    const { body, facts } = await accepted(stream, { streamUsage: false })
    expect(body).toEqual(stream)
    expect(facts).toMatchObject({ stream: true, usageAsked: false })
    const sent = { ...stream, stream_options: { include_usage: true } }
    expect((await accepted(sent, { streamUsage: false })).facts.usageAsked).toBe(true)
  })

  it('without a stream there are no stream_options: providers refuse them', async () => {
    const sent = { ...settled, messages: [hello], stream_options: { include_usage: true } }
    const { body, facts } = await accepted(sent)
    expect(body).toEqual({ ...settled, messages: [hello] })
    expect(facts).toMatchObject({ stream: false, usageAsked: false })
  })
})

describe('SB-22 what reaches outside is refused', () => {
  const withPart = (part: object) => ({ messages: [{ role: 'user', content: [part] }] })
  const inline = 'must be inline: a guest cannot make the provider fetch anything'

  it.each<readonly [string, object, string | RegExp]>([
    ['no messages', { model: 'x' }, 'messages: is missing'],
    ['messages that are no list', { messages: {} }, 'messages: is not an array'],
    [
      'MI-02 a role nobody has',
      { messages: [{ role: 'root', content: '' }] },
      /^messages\[0\]\.role: is none of/,
    ],
    ['a message without content', { messages: [{ role: 'user' }] }, 'messages[0].content: is missing'],
    [
      'content that is a number',
      { messages: [{ role: 'user', content: 1 }] },
      /^messages\[0\]\.content: is not/,
    ],
    [
      'MI-06 a tool answer without its id',
      { messages: [{ role: 'tool', content: '' }] },
      /tool_call_id: is missing$/,
    ],
    ...[
      'https://x/a.png',
      ' data:image/png;base64,AA',
      'data:text/html,x',
      'data:image/SVG+xml;base64,AA',
      'file:///etc/passwd',
      '',
    ].map(
      (url) =>
        [
          `an image at ${url}`,
          withPart(image(url)),
          `messages[0].content[0].image_url.url: ${inline}`,
        ] as const,
    ),
    [
      'audio at a URL',
      withPart({ type: 'input_audio', input_audio: { data: 'https://x', format: 'wav' } }),
      `messages[0].content[0].input_audio.data: ${inline}`,
    ],
    [
      'a file at a URL',
      withPart({ type: 'file', file: { file_data: 'https://x' } }),
      `messages[0].content[0].file.file_data: ${inline}`,
    ],
    [
      'a video',
      withPart({ type: 'video_url', video_url: { url: 'https://x' } }),
      /content\[0\]\.type: is none of/,
    ],
    [
      'a file of the account',
      withPart({ type: 'file', file: { file_id: 'file-1' } }),
      /file_id: names something/,
    ],
    [
      'an earlier audio answer',
      { messages: [{ role: 'assistant', audio: { id: 'audio_1' } }] },
      /^messages\[0\]\.audio\.id: names something/,
    ],
    [
      'MI-07 a native tool',
      { messages: [], tools: [{ type: 'web_search' }] },
      'tools[0].type: is none of function, custom',
    ],
    [
      'MI-07 an MCP tool',
      { messages: [], tools: [{ type: 'mcp', server_url: 'https://x' }] },
      /^tools\[0\]\.type/,
    ],
    [
      'a tool without a type',
      { messages: [], tools: [{ function: { name: 'a' } }] },
      'tools[0].type: is missing',
    ],
    [
      'a tool name with a slash',
      { messages: [], tools: [tool({ name: 'a/b' })] },
      /^tools\[0\]\.function\.name/,
    ],
    [
      'MI-08 a remote schema',
      { messages: [], tools: [tool({ parameters: { $ref: 'https://x' } })] },
      'tools[0].function.parameters: $ref is not local: it must start with #',
    ],
    [
      'MI-08 a remote schema of the answer',
      {
        messages: [],
        response_format: {
          type: 'json_schema',
          json_schema: { name: 'a', schema: { items: [{ $dynamicRef: 'https://x' }] } },
        },
      },
      /^response_format\.json_schema\.schema: \$dynamicRef is not local/,
    ],
    [
      'another format',
      { messages: [], response_format: { type: 'python' } },
      /^response_format\.type: is none of/,
    ],
    [
      'MI-08 a remote schema that only a pointer finds',
      { messages: [], tools: [tool({ parameters: { $ref: '#/x/y', x: { y: { $ref: 'https://x' } } } })] },
      /parameters: \$ref is not local/,
    ],
    [
      'W-38 a dialect where only a pointer finds it',
      { messages: [], tools: [tool({ parameters: { $ref: '#/x', x: { $id: 'https://x' } } })] },
      'tools[0].function.parameters: $id is not local, where only a reference leads',
    ],
    [
      'a schema that is none',
      { messages: [], tools: [tool({ parameters: { items: 5 } })] },
      /parameters\.items: is not/,
    ],
    [
      'a schema of more than 1 MiB',
      { messages: [], tools: [tool({ parameters: { description: 'x'.repeat(1 << 20) } })] },
      'tools[0].function.parameters: is a schema of more than 1048576 bytes',
    ],
    [
      'a schema of more than 64 KiB with references',
      { messages: [], tools: [tool({ parameters: { description: 'x'.repeat(65_536), $ref: '#' } })] },
      'tools[0].function.parameters: is a schema with references of more than 65536 bytes',
    ],
    [
      'MI-09 a vocabulary',
      { messages: [], tools: [tool({ parameters: { $vocabulary: { a: true } } })] },
      /is not local/,
    ],
  ])('%s', async (_, body, problem) => {
    const found = await refusal(body)
    if (typeof problem === 'string') expect(found).toBe(problem)
    else expect(found).toMatch(problem)
  })

  it('T41 ids that the same scope created pass', async () => {
    const part = { type: 'file', file: { file_id: 'file-1' } }
    const own = { ...host, ownsId: (id: string) => id === 'file-1' }
    await passes({ messages: [{ role: 'user', content: [part] }] }, own)
  })

  it('W-38 MI-11 the dialect of a schema is cut out, property names and data are not', async () => {
    const parameters = {
      $schema: 'https://json-schema.org/draft/2020-12/schema',
      type: 'object',
      properties: { $schema: { type: 'string' }, $id: { $id: 'https://x', enum: [{ $id: 'https://y' }] } },
      $defs: { a: { $id: '#a' } },
    }
    const { text, dropped } = await accepted({ ...settled, messages: [], tools: [tool({ parameters })] })
    const left = JSON.stringify(parameters)
      .replace('"$schema":"https://json-schema.org/draft/2020-12/schema",', '')
      .replace('"$id":"https://x",', '')
    expect(text).toContain(left)
    expect(dropped).toEqual([
      'tools[].function.parameters.$schema',
      'tools[].function.parameters.properties.$id.$id',
    ])
  })

  it('MI-08 a reference is found however its name is written', async () => {
    for (const name of ['$ref', '\\u0024ref', '$re\\u0066', '$dynamicRef', '$recursiveRef']) {
      const result = await run(
        `{"messages":[],"tools":[{"type":"function","function":{"name":"a","parameters":{"${name}":"https://x"}}}]}`,
      )
      expect(result.ok ? 'accepted' : result.problem).toMatch(/is not local/)
    }
  })

  it('a large schema without references passes', async () => {
    const properties = Object.fromEntries(
      Array.from({ length: 5000 }, (_, i) => [`p${i}`, { type: 'string' }]),
    )
    await passes({ tools: [tool({ parameters: { type: 'object', properties } })] })
  })

  it('decision 12 fields of messages that are not known are dropped, not refused', async () => {
    const message = {
      role: 'assistant',
      reasoning_content: 'hm',
      content: 'x',
      tool_call_id: 'y',
      annotations: [],
    }
    const { body, dropped } = await accepted({ ...settled, messages: [message] })
    expect(body.messages).toEqual([{ role: 'assistant', content: 'x' }])
    expect(dropped).toEqual([
      'messages[].reasoning_content',
      'messages[].annotations',
      'messages[].tool_call_id',
    ])
  })
})
