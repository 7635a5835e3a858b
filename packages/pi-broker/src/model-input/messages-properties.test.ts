import { rewriteRequest } from '@sandbox/broker/engine'
import { THINKING_LEVELS } from '@sandbox/protocol'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import type { FlaggedField } from './beta-flags.ts'
import { messagesTable } from './messages-table.ts'
import { CEILINGS } from './thinking-limits.ts'

const HOST = { model: 'host-model', maxOutputTokens: 5000 }
const FLAGGED: readonly FlaggedField[] = [
  'midConversationEffort',
  'blockBinding',
  'deferLoading',
  'contextManagement',
]
const EFFORTS = ['low', 'medium', 'high', 'xhigh', 'max']
const URL_TEXT = 'https://x.example/'

type Json = Record<string, unknown>

/** Mostly what is meant, at times anything. */
const or = (...arbitraries: fc.Arbitrary<unknown>[]) =>
  fc.oneof({ weight: 60, arbitrary: fc.oneof(...arbitraries) }, { weight: 1, arbitrary: odd })
const odd: fc.Arbitrary<unknown> = fc.oneof(
  fc.jsonValue({ maxDepth: 2 }),
  fc.constantFrom(URL_TEXT, { type: 'url', url: URL_TEXT }, { $ref: URL_TEXT }, -1, 1e21, 0.5, '', null, []),
)
/** What is taken, and now and then what is not. */
const mostly = <T>(good: fc.Arbitrary<T>, bad: fc.Arbitrary<T>) =>
  fc.oneof({ weight: 25, arbitrary: good }, { weight: 1, arbitrary: bad })
/** The fields of `always`, and some of the others. */
const record = (fields: Record<string, fc.Arbitrary<unknown>>, always: string[] = Object.keys(fields)) =>
  fc.record(fields, { requiredKeys: always })
const effort = or(fc.constantFrom(...EFFORTS, 'huge', 5))
const config = or(
  record({ effort, format: or(fc.constant({ type: 'json_schema', schema: { type: 'object' } })) }),
)
const cache = or(fc.constantFrom({ type: 'ephemeral' }, { type: 'ephemeral', ttl: '1h' }, { type: 'other' }))
const source = or(
  mostly<object>(
    fc.constant({ type: 'base64', media_type: 'image/png', data: 'AAAA' }),
    fc.constantFrom({ type: 'url', url: URL_TEXT }, { type: 'file', file_id: 'f' }),
  ),
)
const text = or(fc.string({ maxLength: 8 }))
const inner = or(
  record({ type: fc.constant('text'), text, cache_control: cache, citations: odd }, ['type', 'text']),
  record({ type: fc.constant('image'), source }),
)
const outer = or(
  inner,
  record({ type: fc.constant('thinking'), thinking: text, signature: text }),
  record({ type: fc.constant('redacted_thinking'), data: text }),
  record({
    type: fc.constant('tool_use'),
    id: fc.constant('t1'),
    name: fc.constant('a'),
    input: or(fc.object({ maxDepth: 1 })),
  }),
  record({
    type: fc.constant('tool_result'),
    tool_use_id: fc.constant('t1'),
    content: or(text, fc.array(inner, { maxLength: 2 })),
  }),
)
const block = mostly<unknown>(
  outer,
  record({
    type: fc.constantFrom('document', 'server_tool_use', 'tool_addition', 'container_upload'),
    source,
  }),
)
const more = {
  output_config: config,
  clear_at: or(fc.constantFrom('never', 'next_user_message')),
  cache_control: cache,
}
const message = or(
  record(
    {
      role: mostly(fc.constantFrom('user', 'assistant'), fc.constant('tool')),
      content: or(text, fc.array(block, { maxLength: 3 })),
      ...more,
    },
    ['role', 'content'],
  ),
  record(
    {
      role: fc.constant('system'),
      content: or(
        text,
        fc.array(mostly<unknown>(record({ type: fc.constant('text'), text }), block), { maxLength: 2 }),
      ),
      ...more,
    },
    ['role', 'content'],
  ),
)
const body = record(
  {
    model: or(fc.constant('claude-guest')),
    messages: or(fc.array(message, { maxLength: 4 })),
    system: or(text, fc.array(mostly<unknown>(inner, block), { maxLength: 2 })),
    max_tokens: or(fc.integer({ min: -5, max: 300_000 })),
    thinking: or(
      record(
        {
          type: fc.constantFrom('enabled', 'adaptive', 'disabled'),
          budget_tokens: or(
            mostly(fc.integer({ min: 1024, max: 100_000 }), fc.integer({ min: 0, max: 1023 })),
          ),
          display: or(fc.constantFrom('summarized', 'omitted')),
          block_binding: or(fc.constant({ prefix_mismatch_behavior: 'drop_block' })),
        },
        ['type', 'budget_tokens'],
      ),
    ),
    output_config: config,
    tools: or(
      fc.array(
        or(
          record({
            type: mostly(fc.constant('custom'), fc.constant('bash_20250124')),
            name: or(fc.constant('a')),
            input_schema: or(fc.constant({ type: 'object' })),
            defer_loading: or(fc.boolean()),
          }),
        ),
        { maxLength: 2 },
      ),
    ),
    tool_choice: or(fc.constantFrom({ type: 'auto' }, { type: 'tool', name: 'a' })),
    stream: or(fc.boolean()),
    mcp_servers: odd,
    container: odd,
    service_tier: odd,
    context_management: odd,
    thread: fc.constant(null),
  },
  ['messages'],
)

const wanted = fc.record({
  endpoint: fc.constantFrom('messages', 'count_tokens') as fc.Arbitrary<'messages' | 'count_tokens'>,
  level: fc.constantFrom(...THINKING_LEVELS),
  flagged: fc.subarray([...FLAGGED]).map((fields) => new Set(fields)),
})

/** Every value below, with the names that lead to it. */
function* walk(value: unknown, path = ''): Generator<[string, unknown]> {
  yield [path, value]
  if (typeof value !== 'object' || value === null) return
  for (const [name, inner] of Object.entries(value)) yield* walk(inner, `${path}/${name}`)
}

function lastMarker(sent: Json): unknown {
  const markers = (sent.messages as Json[]).map(
    ({ output_config }) => (output_config as Json | undefined)?.effort,
  )
  return markers.filter((found) => found !== undefined).at(-1)
}

const DROPPED = ['mcp_servers', 'container', 'service_tier', 'speed', 'metadata', 'fallbacks']

test('whatever a guest sends: what travels is the host’s model, its ceilings, and nothing remote', async () => {
  let passed = 0
  await fc.assert(
    fc.asyncProperty(body, wanted, async (given, options) => {
      const bytes = Buffer.from(JSON.stringify(given))
      const copy = Buffer.from(bytes)
      const table = messagesTable(options)
      const made = await rewriteRequest({ bytes, table, host: HOST })
      expect(bytes.equals(copy)).toBe(true)
      if (!made.ok) {
        expect(made.problem).not.toContain(URL_TEXT)
        return
      }
      passed += 1
      const sent = JSON.parse(Buffer.from(made.bytes).toString()) as Json
      const ceiling = CEILINGS[options.level]
      const within = (asked: unknown) => EFFORTS.indexOf(String(asked)) <= EFFORTS.indexOf(ceiling.effort)
      expect(sent.model).toBe('host-model')
      for (const name of Object.keys(sent)) expect(table.body.fields.has(name)).toBe(true)
      for (const name of DROPPED) expect(sent[name] ?? null).toBe(null)
      const config_ = sent.output_config as Json | null | undefined
      if (config_?.effort !== undefined && config_.effort !== null) expect(within(config_.effort)).toBe(true)
      expect(within(lastMarker(sent) ?? 'low')).toBe(true)
      const thinking = sent.thinking as Json | undefined
      if (thinking?.type === 'adaptive' && ceiling.setsEffort) expect(config_?.effort).toBeTypeOf('string')
      if (thinking?.type === 'enabled') {
        expect(thinking.budget_tokens).toBeLessThanOrEqual(
          Math.min(ceiling.budgetTokens, HOST.maxOutputTokens - 1),
        )
      }
      if (options.endpoint === 'messages') {
        expect(sent.max_tokens).toBeLessThanOrEqual(HOST.maxOutputTokens)
        expect(sent.max_tokens).toBeGreaterThan(
          Number(thinking?.type === 'enabled' ? thinking.budget_tokens : 0),
        )
      } else expect(Object.keys(sent)).not.toContain('max_tokens')
      for (const [path, value] of walk({ messages: sent.messages, system: sent.system })) {
        const isSource = path.endsWith('/source') && !path.includes('/input/')
        if (isSource) expect(value).toMatchObject({ type: 'base64' })
      }
      const again = await rewriteRequest({ bytes: made.bytes, table, host: HOST })
      expect(again).toMatchObject({ ok: true, dropped: [] })
      expect(again.ok && Buffer.from(again.bytes).equals(Buffer.from(made.bytes))).toBe(true)
    }),
    { numRuns: 1000, seed: 20_261_130 },
  )
  expect(passed).toBeGreaterThan(100)
})
