import { expect, test } from 'vitest'
import { jsonBytes } from '../shared/json.ts'
import { type AnsweredCall, Transcript } from './transcript.ts'

interface Message {
  role: string
  content: string
  tool_call_id?: string
  tool_calls?: { id: string; type: string; function: { name: string; arguments: string } }[]
}

const LIMIT = 192 * 1024

function read(body: string): Message[] {
  expect(Buffer.byteLength(body)).toBeLessThanOrEqual(LIMIT)
  return JSON.parse(body).messages
}

function call(id: unknown, changes: Partial<AnsweredCall> = {}): AnsweredCall {
  return { id, name: 'memory_get', arguments: '{}', result: 'ok', ...changes }
}

function transcript(history: { role: 'user' | 'assistant'; content: string }[] = []) {
  return new Transcript({ system: 'S', history, user: 'U' })
}

test('MI-03 to MI-06: messages have only the keys and forms that the host admits', () => {
  const built = transcript([{ role: 'user', content: 'old' }])
  built.addGroup('thinking', [call('id-1', { arguments: '{"scope":"channel"}' })])
  expect(JSON.parse(built.request('m', [{ some: 'tool' }]))).toEqual({
    model: 'm',
    messages: [
      { role: 'system', content: 'S' },
      { role: 'user', content: 'old' },
      { role: 'user', content: 'U' },
      {
        role: 'assistant',
        content: 'thinking',
        tool_calls: [
          {
            id: 'id-1',
            type: 'function',
            function: { name: 'memory_get', arguments: '{"scope":"channel"}' },
          },
        ],
      },
      { role: 'tool', tool_call_id: 'id-1', content: 'ok' },
    ],
    tools: [{ some: 'tool' }],
  })
})

test('WA-11 valid unused ids stay, all others are replaced; ids are unique and paired in order', () => {
  const built = transcript()
  built.addGroup('', [call('a'), call('a'), call(''), call(7), call('x'.repeat(129)), call('call_1_6')])
  built.addGroup('', [call('a', { result: 'second' }), call('call_1_1'), call('with space'), call('ü')])
  const messages = read(built.request('m', []))
  const asked = messages.flatMap(({ tool_calls = [] }) => tool_calls.map(({ id }) => id))
  expect(asked).toEqual([
    ...['a', 'call_1_1', 'call_1_2', 'call_1_3', 'call_1_4', 'call_1_6'],
    ...['call_2_0', 'call_2_1', 'call_2_2', 'call_2_3'],
  ])
  expect(messages.flatMap((message) => message.tool_call_id ?? [])).toEqual(asked)
})

test('WA-11 a model that guesses our ids gets a suffix, never a duplicate', () => {
  const built = transcript()
  built.addGroup('', [call('call_1_1'), call(null), call('call_1_1_2'), call('call_1_3'), call('')])
  const [, , assistant] = read(built.request('m', []))
  const ids = assistant?.tool_calls?.map(({ id }) => id) ?? []
  expect(ids).toEqual(['call_1_1', 'call_1_1_2', 'call_1_2', 'call_1_3', 'call_1_4'])
})

test('WA-12 arguments that are too long, no text or no object are left out when replayed', () => {
  const built = transcript()
  const long = JSON.stringify({ text: 'x'.repeat(2048) })
  const just = JSON.stringify({ t: 'x'.repeat(2048 - 14) })
  expect(jsonBytes(just)).toBe(2048)
  built.addGroup(
    '',
    [long, { a: 1 }, undefined, 'no json', '[1]', just, '{"a":1}'].map((value, index) =>
      call(`id-${index}`, { arguments: value }),
    ),
  )
  const [, , assistant] = read(built.request('m', []))
  const left = '{"omitted":true}'
  expect(assistant?.tool_calls?.map((entry) => entry.function.arguments)).toEqual([
    left,
    left,
    left,
    left,
    left,
    just,
    '{"a":1}',
  ])
})

test('WA-13 a tool result takes at most 4 KiB', () => {
  const built = transcript()
  built.addGroup('', [call('a', { result: '\u0001'.repeat(100_000) })])
  const tool = read(built.request('m', [])).at(-1)
  expect(jsonBytes(tool?.content)).toBeLessThanOrEqual(4096)
  expect(tool?.content.endsWith('[cut]')).toBe(true)
})

test('WA-07 drops the oldest history first, an answer with its question, and keeps the groups', () => {
  const history = Array.from({ length: 20 }, (_, index) => ({
    role: index % 2 === 0 ? ('user' as const) : ('assistant' as const),
    content: `${index} ${'x'.repeat(8000)}`,
  }))
  const built = transcript(history)
  for (let step = 0; step < 2; step += 1) {
    built.addGroup(
      '',
      Array.from({ length: 8 }, (_, index) => call(`${step}-${index}`, { result: 'y'.repeat(4000) })),
    )
  }
  const messages = read(built.request('m', []))
  const kept = messages
    .filter(({ content }) => /^\d+ x/.test(content))
    .map(({ content }) => Number.parseInt(content, 10))
  expect(kept[0]).toBeGreaterThan(0)
  expect((kept[0] ?? 1) % 2).toBe(0)
  expect(kept.at(-1)).toBe(19)
  expect(messages.filter(({ role }) => role === 'tool')).toHaveLength(16)
  expect(messages.slice(0, 1).map(({ content }) => content)).toEqual(['S'])
})

test('WA-07 a dropped question takes its answer along', () => {
  const built = transcript([
    { role: 'user', content: 'x'.repeat(LIMIT) },
    { role: 'assistant', content: 'its answer' },
    { role: 'user', content: 'next' },
    { role: 'assistant', content: 'its own' },
  ])
  expect(read(built.request('m', [])).map(({ content }) => content)).toEqual(['S', 'next', 'its own', 'U'])
})

test('WA-07 then drops whole groups, oldest first: never an orphan tool reply', () => {
  const built = transcript([{ role: 'user', content: 'old' }])
  for (let step = 0; step < 11; step += 1) {
    built.addGroup(
      `step ${step}`,
      Array.from({ length: 8 }, (_, index) => call(`${step}-${index}`, { result: 'y'.repeat(4000) })),
    )
  }
  const messages = read(built.request('m', []))
  expect(messages[1]?.content).toBe('U')
  const asked = messages.flatMap(({ tool_calls = [] }) => tool_calls.map(({ id }) => id))
  const replies = messages.flatMap((message) => message.tool_call_id ?? [])
  expect(replies).toEqual(asked)
  expect(messages[2]?.content).not.toBe('step 0')
  expect(messages.findLast(({ role }) => role === 'assistant')?.content).toBe('step 10')
})

test('WA-07 never more than 128 messages', () => {
  const built = transcript(Array.from({ length: 20 }, () => ({ role: 'user' as const, content: 'h' })))
  for (let step = 0; step < 14; step += 1) {
    built.addGroup(
      '',
      Array.from({ length: 8 }, (_, index) => call(`${step}-${index}`)),
    )
  }
  const messages = read(built.request('m', []))
  expect(messages.length).toBeLessThanOrEqual(128)
  expect(messages.filter(({ role }) => role === 'tool').length).toBeGreaterThan(100)
})

test('WA-07 fails when system, user and tools alone are too large', () => {
  const built = new Transcript({ system: 'x'.repeat(LIMIT), history: [], user: 'U' })
  expect(() => built.request('m', [])).toThrow(expect.objectContaining({ code: 'request_too_large' }))
})

test('WA-07 the limit holds to the byte, tools and model included', () => {
  const empty = jsonBytes({
    model: 'm',
    messages: [
      { role: 'system', content: '' },
      { role: 'user', content: 'U' },
    ],
    tools: [],
  })
  const fits = new Transcript({ system: 'x'.repeat(LIMIT - empty - 1), history: [], user: 'U' })
  expect(Buffer.byteLength(fits.request('m', []))).toBeGreaterThan(LIMIT - 3)
  const over = new Transcript({ system: 'x'.repeat(LIMIT - empty + 1), history: [], user: 'U' })
  expect(() => over.request('m', [])).toThrow()
})
