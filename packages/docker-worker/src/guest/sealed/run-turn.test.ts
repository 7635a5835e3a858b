import { readFileSync, writeFileSync } from 'node:fs'
import type { SealedTurn, ToolSpec } from '@sandbox/protocol'
import { expect, test } from 'vitest'
import {
  completion,
  type HostAnswer,
  type HostScript,
  openWorkerHost,
  sampleTurn,
  toolCalls,
} from '../../testing/worker-host.ts'
import { BrokerWire } from '../shared/broker-wire.ts'
import { jsonBytes } from '../shared/json.ts'
import { softDeadlineMs } from '../shared/soft-deadline.ts'
import { REFUSED_TEXT } from './agent.ts'
import { runTurn } from './run-turn.ts'

interface Message {
  role: string
  content: string
  tool_calls?: { id: string; function: { name: string; arguments: string } }[]
  tool_call_id?: string
}

const spec = (name: string, changes: Partial<ToolSpec> = {}): ToolSpec => ({
  name,
  description: `Does ${name}`,
  parameters: { type: 'object', properties: {} },
  ...changes,
})

/** Runs one turn against a host whose model gives these answers, the last one again and again. */
async function play(options: {
  readonly model: readonly HostAnswer[]
  readonly turn?: Partial<SealedTurn>
  readonly scripts?: Readonly<Record<string, HostScript>>
  readonly files?: Readonly<Record<string, string>>
}) {
  const { model, scripts, files = {} } = options
  await using host = await openWorkerHost({
    scripts: { '/model': (_, index) => model[index] ?? model.at(-1) ?? 'break', ...scripts },
  })
  for (const [name, text] of Object.entries(files)) writeFileSync(`${host.workspace}/${name}`, text)
  const logged: string[] = []
  const wire = new BrokerWire(host.socketPath)
  const outcome = await runTurn({
    turn: sampleTurn(options.turn),
    wire,
    workspace: host.workspace,
    log: (line) => logged.push(line),
  })
  wire.close()
  const requests = host.bodies('/model') as { messages: Message[]; tools: { function: ToolSpec }[] }[]
  return {
    outcome,
    logged,
    requests,
    seen: host.seen,
    /** What the tools gave back, as the last model call tells it. */
    results: (requests.at(-1)?.messages ?? [])
      .filter(({ role }) => role === 'tool')
      .map(({ content }) => content),
    history: readHistory(host.workspace),
  }
}

function readHistory(workspace: string): { role: string; content: string }[] | undefined {
  try {
    return JSON.parse(readFileSync(`${workspace}/history.json`, 'utf8')).entries
  } catch {
    return undefined
  }
}

const done = completion({ content: ' Done. ' })

test('WA-02 offers the placeholder, three memory tools, host and MCP tools, and nothing else', async () => {
  const { requests } = await play({
    model: [done],
    turn: {
      tools: [spec('clock')],
      mcp: [
        { name: 'files', tools: [spec('list'), spec('read')] },
        { name: 'web', tools: [spec('read')] },
      ],
    },
  })
  expect(requests[0]?.tools.map((tool) => tool.function.name)).toEqual([
    ...['invalid_tool', 'memory_set', 'memory_get', 'memory_remove'],
    ...['host_clock', 'mcp_0_list', 'mcp_0_read', 'mcp_1_read'],
  ])
})

test('WA-02 a host tool gets its arguments and the turn nonce; its text reaches the model', async () => {
  const { results, seen, outcome } = await play({
    model: [toolCalls(['host_clock', { zone: 'UTC', speaker: 'me' }]), done],
    turn: { tools: [spec('clock')] },
    scripts: { '/tools/clock': () => ({ json: { text: 'noon' } }) },
  })
  const call = seen.find(({ path }) => path === '/tools/clock')
  expect(call?.body).toEqual({ zone: 'UTC', speaker: 'me' })
  expect(call?.headers).toMatchObject({ 'x-sandbox-turn': sampleTurn().nonce })
  expect(results).toEqual(['noon'])
  expect(outcome).toEqual({ ok: true, text: 'Done.' })
})

test('WA-02 an MCP tool is called at its server; its texts reach the model', async () => {
  const content = [
    { type: 'text', text: 'a' },
    { type: 'image', data: 'x' },
    { type: 'text', text: 'b' },
    null,
  ]
  const { results, seen } = await play({
    model: [toolCalls(['mcp_1_read', { path: 'x' }], ['mcp_0_read', {}]), done],
    turn: {
      mcp: [
        { name: 'web', tools: [spec('read')] },
        { name: 'files', tools: [spec('read')] },
      ],
    },
    scripts: {
      '/mcp/files': () => ({ json: { jsonrpc: '2.0', id: 1, result: { content } } }),
      '/mcp/web': () => ({ json: { result: { isError: true, content: [{ type: 'text', text: 'stack' }] } } }),
    },
  })
  expect(seen.find(({ path }) => path === '/mcp/files')?.body).toEqual({
    jsonrpc: '2.0',
    id: 1,
    method: 'tools/call',
    params: { name: 'read', arguments: { path: 'x' } },
  })
  expect(results).toEqual(['a\nb', REFUSED_TEXT])
})

test('WA-03 tool descriptions over 32 KiB fail the turn before any call', async () => {
  const tools = Array.from({ length: 4 }, (_, index) => spec(`t${index}`, { description: 'x'.repeat(8192) }))
  const { outcome, requests } = await play({ model: [done], turn: { tools } })
  expect(outcome).toMatchObject({ ok: false, code: 'turn_invalid' })
  expect(requests).toEqual([])
  expect((await play({ model: [done], turn: { tools: tools.slice(1) } })).outcome.ok).toBe(true)
})

test('WA-08 at most 12 model calls; the calls of the last answer are not run; the history says so', async () => {
  const { outcome, requests, seen, history } = await play({
    model: [toolCalls(['host_clock', {}])],
    turn: { tools: [spec('clock')] },
    scripts: { '/tools/clock': () => ({ json: { text: 'noon' } }) },
  })
  expect(outcome).toMatchObject({ ok: false, code: 'model_call_limit' })
  expect(outcome.text).toContain('limit of model calls')
  expect(requests).toHaveLength(12)
  expect(seen.filter(({ path }) => path === '/tools/clock')).toHaveLength(11)
  expect(history?.at(-1)?.content).toContain('limit of model calls')
})

test('WA-09 nine tool calls in one answer fail the turn, and none is run; eight do not', async () => {
  const call = ['memory_set', { scope: 'channel', key: 'k', text: 't' }] as const
  const nine = await play({ model: [toolCalls(...Array.from({ length: 9 }, () => call)), done] })
  expect(nine.outcome).toMatchObject({ ok: false, code: 'too_many_tool_calls' })
  expect(nine.requests).toHaveLength(1)
  const eight = await play({ model: [toolCalls(...Array.from({ length: 8 }, () => call)), done] })
  expect(eight.outcome.ok).toBe(true)
  expect(eight.results).toHaveLength(8)
})

test('WA-10 unknown, malformed and undeclared tools become invalid_tool, refused; no call leaves', async () => {
  const { outcome, requests, results, seen } = await play({
    model: [
      completion({
        tool_calls: [
          ...['bash', 'host_other', '__proto__', 'constructor', ''].map((name, index) => ({
            id: `a${index}`,
            type: 'function',
            function: { name, arguments: '{}' },
          })),
          { id: 'a5', type: 'custom', function: { name: 'host_clock', arguments: '{}' } },
          { id: 'a6', type: 'function', function: { name: 7, arguments: '{}' } },
          'no call at all',
        ],
      }),
      done,
    ],
    turn: { tools: [spec('clock')] },
  })
  expect(outcome.ok).toBe(true)
  const told = requests[1]?.messages.flatMap(({ tool_calls = [] }) => tool_calls) ?? []
  expect(told.map((call) => call.function.name)).toEqual(Array.from({ length: 8 }, () => 'invalid_tool'))
  expect(results).toEqual(Array.from({ length: 8 }, () => REFUSED_TEXT))
  expect(new Set(seen.map(({ path }) => path))).toEqual(new Set(['/model']))
})

test('WA-11 duplicate and over-long ids never go back', async () => {
  const get = ['memory_get', { scope: 'channel' }] as const
  const { requests } = await play({
    model: [toolCalls([...get, 'same'], [...get, 'same'], [...get, 'x'.repeat(200)], [...get, null]), done],
  })
  const told = requests[1]?.messages.flatMap(({ tool_calls = [] }) => tool_calls.map(({ id }) => id)) ?? []
  expect(told).toEqual(['same', 'call_1_1', 'call_1_2', 'call_1_3'])
  expect(requests[1]?.messages.flatMap((message) => message.tool_call_id ?? [])).toEqual(told)
})

test('WA-12 giant arguments: the call gets them, the transcript does not', async () => {
  const input = { text: 'x'.repeat(200 * 1024) }
  const { requests, seen } = await play({
    model: [toolCalls(['host_clock', input]), done],
    turn: { tools: [spec('clock')] },
    scripts: { '/tools/clock': () => ({ json: { text: 'ok' } }) },
  })
  expect(seen.find(({ path }) => path === '/tools/clock')?.body).toEqual(input)
  expect(jsonBytes(requests[1])).toBeLessThan(20_000)
})

test('WA-12 arguments that are an object already are used, and arguments over the host limit never leave', async () => {
  const { results, seen } = await play({
    model: [
      completion({
        tool_calls: [
          { id: 'a', type: 'function', function: { name: 'host_clock', arguments: { direct: true } } },
          {
            id: 'b',
            type: 'function',
            function: { name: 'host_clock', arguments: `{"x":"${'x'.repeat(300_000)}"}` },
          },
        ],
      }),
      done,
    ],
    turn: { tools: [spec('clock')] },
    scripts: { '/tools/clock': () => ({ json: { text: 'ok' } }) },
  })
  expect(seen.filter(({ path }) => path === '/tools/clock').map(({ body }) => body)).toEqual([
    { direct: true },
  ])
  expect(results).toEqual(['ok', REFUSED_TEXT])
})

test('WA-13 every failure of a tool is one fixed text, and the loop goes on', async () => {
  const answers: HostAnswer[] = [
    { status: 502, json: { error: { code: 'tool_failed', message: 'at /host/path.ts:1' } } },
    { status: 404, text: 'stack trace' },
    { json: { text: 7 } },
    { json: ['text'] },
    { text: 'no json' },
    'break',
  ]
  const { outcome, results, requests } = await play({
    model: [
      toolCalls(
        ...answers.map(() => ['host_clock', {}] as const),
        ['host_clock', 'no json'],
        ['host_clock', '[]'],
      ),
      toolCalls(['memory_set', { scope: 'owner', key: 'k', text: 't' }], ['memory_get', '{"scope":']),
      done,
    ],
    turn: { tools: [spec('clock')] },
    scripts: { '/tools/clock': (_, index) => answers[index] ?? 'break' },
  })
  expect(outcome.ok).toBe(true)
  expect(results).toEqual(Array.from({ length: 10 }, () => REFUSED_TEXT))
  expect(JSON.stringify(requests)).not.toContain('/host/path.ts')
})

test('WA-13 a large tool result is cut to 4 KiB', async () => {
  const { results } = await play({
    model: [toolCalls(['host_clock', {}]), done],
    turn: { tools: [spec('clock')] },
    scripts: { '/tools/clock': () => ({ json: { text: '😀'.repeat(100_000) } }) },
  })
  expect(jsonBytes(results[0])).toBeLessThanOrEqual(4096)
  expect(jsonBytes(results[0])).toBeGreaterThan(4080)
})

test('WA-14 the answer is trimmed and may have 100,000 characters', async () => {
  const { outcome } = await play({ model: [completion({ content: ` ${'x'.repeat(100_000)}\n` })] })
  expect(outcome).toEqual({ ok: true, text: 'x'.repeat(100_000) })
})

test.each<[string, HostAnswer, string]>([
  ['100,001 characters', completion({ content: 'x'.repeat(100_001) }), 'model_failed'],
  ['a blank text', completion({ content: ' \n\t ' }), 'answer_empty'],
  ['no text and no calls', completion({ content: null, tool_calls: [] }), 'answer_empty'],
  ['content parts', completion({ content: [{ type: 'text', text: 'hi' }] }), 'model_failed'],
  ['calls that are no list', completion({ content: 'hi', tool_calls: { 0: {} } }), 'model_failed'],
  ['no choices', { json: { choices: [] } }, 'model_failed'],
  ['choices that are no list', { json: { choices: { 0: { message: { content: 'hi' } } } } }, 'model_failed'],
  ['no object', { json: 'hi' }, 'model_failed'],
  ['null', { json: null }, 'model_failed'],
  ['no JSON', { text: 'Internal error' }, 'model_failed'],
  ['deep nesting', { text: `${'['.repeat(200_000)}${']'.repeat(200_000)}` }, 'model_failed'],
  ['more than 1 MiB', { text: JSON.stringify('x'.repeat(1024 * 1024)) }, 'model_failed'],
  ['a broken connection', 'break', 'model_failed'],
  ['402', { status: 402, json: { error: { code: 'credential_missing' } } }, 'model_refused'],
  ['429', { status: 429, json: {} }, 'model_refused'],
  ['410', { status: 410, json: {} }, 'model_refused'],
  ['502', { status: 502, json: { choices: [{ message: { content: 'hi' } }] } }, 'model_failed'],
  ['204', { status: 204, text: '' }, 'model_failed'],
])('WA-14 a model answer with %s fails the turn and leaves no history', async (_, answer, code) => {
  const { outcome, history, requests } = await play({ model: [answer] })
  expect(outcome).toMatchObject({ ok: false, code })
  expect(history).toBeUndefined()
  expect(requests).toHaveLength(1)
})

test('WA-15 the history has the exchange as data, without tool transcripts', async () => {
  const { history } = await play({
    model: [toolCalls(['memory_get', { scope: 'channel' }]), done],
    turn: { text: 'What?' },
  })
  expect(history).toEqual([
    { role: 'user', content: '{"speaker":{"id":"u-ann","name":"Ann"},"message":"What?"}' },
    { role: 'assistant', content: 'Done.' },
  ])
})

const earlier = JSON.stringify({ version: 1, entries: [{ role: 'user', content: 'earlier words' }] })
const fact = JSON.stringify({
  version: 1,
  entries: [{ scope: 'speaker', speaker: 'u-ann', key: 'tea', text: 'green' }],
})

test('WA-16 a reset leaves the history unread and starts a new one; memory is kept', async () => {
  const files = { 'history.json': earlier, 'memory.json': fact }
  const kept = await play({ model: [done], files })
  expect(JSON.stringify(kept.requests[0])).toContain('earlier words')
  const { requests, history } = await play({ model: [done], turn: { reset: true }, files })
  expect(JSON.stringify(requests[0])).not.toContain('earlier words')
  expect(requests[0]?.messages[0]?.content).toContain('green')
  expect(history).toHaveLength(2)
})

test('WA-16, W-73 a reset does not even read a broken history', async () => {
  const { outcome } = await play({ model: [done], turn: { reset: true }, files: { 'history.json': 'x' } })
  expect(outcome).toEqual({ ok: true, text: 'Done.' })
})

test('W-73 a broken history is told to the host, to the model and to the log', async () => {
  const { outcome, logged, requests } = await play({ model: [done], files: { 'history.json': 'x' } })
  expect(outcome).toEqual({ ok: true, text: 'Done.', quarantined: ['history.json'] })
  expect(logged).toEqual(['history.json could not be read and was set aside'])
  expect(requests[0]?.messages[0]?.content).toContain('starts empty: history.json')
})

test('ME-02 the tools of one speaker never reach the facts of another', async () => {
  const { results } = await play({
    model: [toolCalls(['memory_get', { scope: 'speaker', speaker: 'u-ann', key: 'tea' }]), done],
    turn: { speaker: { id: 'u-bob', name: 'Ann' } },
    files: { 'memory.json': fact },
  })
  expect(results).toEqual(['[]'])
})

test('W-75 the deadline ends a call in flight; what the model said so far is in the history', async () => {
  const said = completion({ content: 'I will look.', tool_calls: [{ type: 'function', function: {} }] })
  const { outcome, history } = await play({
    model: [said],
    turn: { remainingMs: 1000 },
    scripts: { '/model': (_, index) => (index === 0 ? said : new Promise(() => {})) },
  })
  expect(outcome).toMatchObject({ ok: false, code: 'deadline' })
  expect(history?.at(-1)?.content).toBe(
    'I will look.\n(The time for this turn ran out before an answer was ready.)',
  )
})

test('W-75 the soft deadline is 10 s before the hard one, or half of a short time', () => {
  expect(softDeadlineMs(600_000)).toBe(590_000)
  expect(softDeadlineMs(20_000)).toBe(10_000)
  expect(softDeadlineMs(1_001)).toBe(500)
  expect(softDeadlineMs(0)).toBe(0)
  expect(softDeadlineMs(Number.MAX_SAFE_INTEGER)).toBe(2_147_483_647)
})
