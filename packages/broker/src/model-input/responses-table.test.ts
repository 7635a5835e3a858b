import { describe, expect, it } from 'vitest'
import type { RequestHost } from '../engine/body-table/request-table.ts'
import { rewriteRequest } from '../engine/body-table/rewrite-request.ts'
import { type ResponsesTableOptions, responsesTable } from './responses-table.ts'

const host: RequestHost = { model: 'host-model', maxOutputTokens: 1000 }
const settled = { model: 'host-model', max_output_tokens: 1000, store: false }
const mine = new Set(['resp_1', 'conv_1', 'msg_1', 'rs_1', 'file-1'])
const owner: RequestHost = { ...host, ownsId: (id) => mine.has(id) }

async function run(body: object, with_: RequestHost = host, options: ResponsesTableOptions = {}) {
  const bytes = new Uint8Array(Buffer.from(JSON.stringify(body)))
  const result = await rewriteRequest({ bytes, table: responsesTable(options), host: with_ })
  if (!result.ok) return { ok: false as const, refusal: `${result.path}: ${result.problem}` }
  return { ...result, same: result.bytes === bytes, body: JSON.parse(Buffer.from(result.bytes).toString()) }
}

const foreign = 'names something on the account that this conversation did not create'
const tool = {
  type: 'function',
  name: 'clock',
  description: 'time',
  strict: true,
  parameters: { type: 'object' },
}

describe('what official clients send passes as it is', () => {
  it.each([
    ['a text', { input: 'hello' }],
    [
      'messages',
      {
        input: [
          { role: 'user', content: 'hello' },
          { type: 'message', role: 'developer', content: [] },
        ],
      },
    ],
    [
      'parts',
      {
        input: [
          {
            role: 'user',
            content: [
              { type: 'input_text', text: 'what is this' },
              { type: 'input_image', image_url: 'data:image/png;base64,AAAA', detail: 'auto', file_id: null },
              { type: 'input_file', filename: 'a.pdf', file_data: 'data:application/pdf;base64,AAAA' },
            ],
          },
        ],
      },
    ],
    [
      'a replayed answer with its reasoning and calls',
      {
        input: [
          { type: 'reasoning', summary: [{ type: 'summary_text', text: 'hm' }], encrypted_content: 'gAAA' },
          {
            type: 'message',
            role: 'assistant',
            status: 'completed',
            content: [
              { type: 'output_text', text: 'x', annotations: [{ type: 'url_citation', url: 'https://x' }] },
            ],
          },
          { type: 'function_call', call_id: 'c1', name: 'clock', arguments: '{}' },
          { type: 'function_call_output', call_id: 'c1', output: '12:00' },
          { type: 'custom_tool_call', call_id: 'c2', name: 'sql', input: 'x' },
          { type: 'custom_tool_call_output', call_id: 'c2', output: [{ type: 'input_text', text: 'y' }] },
        ],
      },
    ],
    ['tools', { input: '', tools: [tool, { type: 'custom', name: 'sql', format: { type: 'text' } }] }],
    [
      'a choice',
      {
        input: '',
        tool_choice: { type: 'allowed_tools', mode: 'auto', tools: [{ type: 'function', name: 'a' }] },
      },
    ],
    [
      'knobs',
      {
        input: '',
        instructions: 'be short',
        reasoning: { effort: 'high', summary: 'auto' },
        text: { format: { type: 'json_schema', name: 'r', schema: { type: 'object' } }, verbosity: 'low' },
        include: ['reasoning.encrypted_content'],
        truncation: 'auto',
        temperature: 1,
        parallel_tool_calls: false,
        prompt_cache_key: 'k',
        background: false,
        previous_response_id: null,
        conversation: null,
        prompt: null,
      },
    ],
    ['a stream', { input: '', stream: true, stream_options: { include_obfuscation: false } }],
  ])('T41 %s', async (_, fields) => {
    expect(await run({ ...settled, ...fields })).toMatchObject({ same: true, dropped: [] })
  })
})

describe('the host decides', () => {
  it('model, limit and store', async () => {
    expect(await run({ input: 'x' })).toMatchObject({
      body: { input: 'x', ...settled },
      facts: { stream: false, outputTokens: 1000 },
    })
    const sent = { input: 'x', model: 'guest', max_output_tokens: 50, store: true, stream: true }
    expect(await run(sent)).toMatchObject({
      body: { ...sent, model: 'host-model', store: false },
      dropped: ['model', 'store'],
      facts: { stream: true, usageAsked: true, guestModel: 'guest', outputTokens: 50 },
    })
  })

  it('store is the guest’s when the operator says so', async () => {
    const sent = { input: 'x', model: 'host-model', max_output_tokens: 1 }
    expect(await run({ ...sent, store: true }, host, { allowStore: true })).toMatchObject({ same: true })
    expect(await run(sent, host, { allowStore: true })).toMatchObject({ same: true })
  })

  it.each([
    'context_management',
    'metadata',
    'moderation',
    'safety_identifier',
    'service_tier',
    'user',
    'max_tool_calls',
  ])('decision 12 %s is dropped and named', async (name) => {
    const result = await run({ ...settled, input: 'x', [name]: [{ a: 1 }] })
    expect(result).toMatchObject({ body: { ...settled, input: 'x' }, dropped: [name] })
  })
})

describe('state of the account is a scope’s own', () => {
  it.each([
    ['previous_response_id', { input: '', previous_response_id: 'resp_1' }],
    ['a conversation', { input: '', conversation: 'conv_1' }],
    ['a conversation as an object', { input: '', conversation: { id: 'conv_1' } }],
    ['an item reference', { input: [{ type: 'item_reference', id: 'msg_1' }] }],
    ['an image file', { input: [{ role: 'user', content: [{ type: 'input_image', file_id: 'file-1' }] }] }],
    ['a file', { input: [{ role: 'user', content: [{ type: 'input_file', file_id: 'file-1' }] }] }],
    ['a reasoning item by its id', { input: [{ type: 'reasoning', id: 'rs_1', summary: [] }] }],
  ])('T1 %s passes for its scope only', async (_, fields) => {
    expect(await run({ ...settled, ...fields }, owner)).toMatchObject({ same: true })
    const theirs = await run({ ...settled, ...fields }, { ...host, ownsId: () => false })
    const unknown = await run({ ...settled, ...fields })
    for (const result of [theirs, unknown]) {
      // An id of a whole item is no reference: without it the item stands for itself.
      if (result.ok)
        expect(result).toMatchObject({ dropped: ['input[].id'], body: { input: [{ summary: [] }] } })
      else expect(result.refusal).toMatch(new RegExp(`: ${foreign}$`))
    }
  })

  it.each<readonly [string, object, string | RegExp]>([
    ['a stored prompt', { input: '', prompt: { id: 'pmpt_1' } }, 'prompt: belongs to the account'],
    ['work that outlives the turn', { input: '', background: true }, 'background: would outlive the turn'],
    ['a reference without a type', { input: [{ id: 'msg_9' }] }, 'input[0].role: is missing'],
    ['a reference to nothing', { input: [{ type: 'item_reference', id: null }] }, `input[0].id: ${foreign}`],
    ['a remote image', content({ type: 'input_image', image_url: 'https://x' }), /image_url: must be inline/],
    ['a remote file', content({ type: 'input_file', file_url: 'https://x' }), /file_url: must be inline/],
    [
      'a citation of a foreign file',
      content({ type: 'output_text', text: '', annotations: [{ type: 'file_citation', file_id: 'file-9' }] }),
      /annotations\[0\]\.file_id: names something/,
    ],
    ['an MCP call', { input: [{ type: 'mcp_call', id: 'x' }] }, /^input\[0\]\.type: is none of/],
    ...[
      'file_search',
      'web_search',
      'web_search_preview',
      'computer_use_preview',
      'mcp',
      'code_interpreter',
      'image_generation',
      'local_shell',
      'shell',
      'apply_patch',
      'tool_search',
      'namespace',
    ].map(
      (type) =>
        [
          `the tool ${type}`,
          { input: '', tools: [{ type }] },
          'tools[0].type: is none of function, custom',
        ] as const,
    ),
    [
      'a remote schema',
      { input: '', tools: [{ ...tool, parameters: { $ref: 'https://x' } }] },
      /parameters: \$ref/,
    ],
    ['nothing', {}, 'input: is missing'],
  ])('refuses %s', async (_, body, problem) => {
    const result = await run(body, owner)
    const found = result.ok ? 'accepted' : result.refusal
    if (typeof problem === 'string') expect(found).toBe(problem)
    else expect(found).toMatch(problem)
  })
})

function content(part: object) {
  return { input: [{ role: 'user', content: [part] }] }
}
