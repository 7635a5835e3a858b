import { describe, expect, test } from 'vitest'
import { EventReader, type ServerEvent } from './event-reader.ts'

/** Every event of a text that arrives in pieces of this many bytes. */
function read(
  text: string | Uint8Array,
  step = Number.POSITIVE_INFINITY,
  eventBytes = 1 << 20,
): ServerEvent[] {
  const bytes = Buffer.from(text as string)
  const reader = new EventReader({ eventBytes })
  const events: ServerEvent[] = []
  for (let at = 0; at < bytes.length; at += step) events.push(...reader.push(bytes.subarray(at, at + step)))
  return events
}

const shape = (events: readonly ServerEvent[]) =>
  events.map(({ type, data }) => [type, Buffer.from(data).toString()])

describe('standards h: events as WHATWG reads them', () => {
  test.each<[what: string, text: string, events: [type: string, data: string][]]>([
    [
      'LF',
      'data: a\n\ndata: b\n\n',
      [
        ['', 'a'],
        ['', 'b'],
      ],
    ],
    [
      'CRLF',
      'data: a\r\n\r\ndata: b\r\n\r\n',
      [
        ['', 'a'],
        ['', 'b'],
      ],
    ],
    [
      'CR',
      'data: a\r\rdata: b\r\r',
      [
        ['', 'a'],
        ['', 'b'],
      ],
    ],
    [
      'a mix',
      'data: a\r\n\ndata: b\r\r\ndata: c\n\r\n',
      [
        ['', 'a'],
        ['', 'b'],
        ['', 'c'],
      ],
    ],
    ['a BOM', '\ufeffdata: a\n\n', [['', 'a']]],
    [
      'a BOM in the middle is no BOM',
      'data: a\n\n\ufeffdata: b\n\ndata: c\n\n',
      [
        ['', 'a'],
        ['', 'c'],
      ],
    ],
    ['comments', ': hi\n\n:\ndata: a\n: there\n\n', [['', 'a']]],
    ['several data lines, CRLF', 'data: a\r\ndata: b\r\n\r\n', [['', 'a\nb']]],
    ['several data lines', 'data: a\ndata:\ndata:b\n\n', [['', 'a\n\nb']]],
    [
      'an event name',
      'event: x\ndata: a\n\ndata: b\n\n',
      [
        ['x', 'a'],
        ['', 'b'],
      ],
    ],
    ['one space, no more', 'data:  a\n\n', [['', ' a']]],
    ['a field without a colon', 'data\n\n', [['', '']]],
    ['an event without data', 'event: x\n\ndata: a\n\n', [['', 'a']]],
    ['id, retry and unknown fields', 'id: 1\nretry: 5\nfoo: x\ndata: a\n\n', [['', 'a']]],
    ['one that is not complete', 'data: a\n\ndata: b\n', [['', 'a']]],
  ])('%s, cut anywhere', (_, text, events) => {
    for (const step of [Number.POSITIVE_INFINITY, 1, 2, 3, 5]) expect(shape(read(text, step))).toEqual(events)
  })
  test('an event is there with its last byte, whatever its line ends', () => {
    for (const end of ['\n\n', '\r\n\r\n', '\r\r', '\n\r']) {
      const reader = new EventReader({ eventBytes: 1000 })
      expect(reader.push(Buffer.from(`data: a${end}`)), JSON.stringify(end)).toHaveLength(1)
    }
    // The last LF of a CRLF is not waited for.
    const reader = new EventReader({ eventBytes: 1000 })
    expect(reader.push(Buffer.from('data: a\r\n\r'))).toHaveLength(1)
    expect(shape(reader.push(Buffer.from('\ndata: b\n\n')))).toEqual([['', 'b']])
  })
})

test('T22 what is passed on is the same wherever it was cut, and nothing of it is changed', () => {
  const blocks = [
    'data: {"a":"日本語 🎉 é"}\n\n',
    'event: x\ndata: {"b":1e400, "a":1, "1":2}\n\n',
    'data: [DONE]\n\n',
  ]
  const bytes = Buffer.from(blocks.join(''))
  for (let cut = 0; cut <= bytes.length; cut += 1) {
    const reader = new EventReader({ eventBytes: 1000 })
    const events = [...reader.push(bytes.subarray(0, cut)), ...reader.push(bytes.subarray(cut))]
    expect(Buffer.concat(events.map((event) => event.bytes)).equals(bytes), `cut at ${cut}`).toBe(true)
  }
})

test('an event is in memory of its own: whoever owns the chunk may use that again', () => {
  const chunk = Buffer.from('data: a\r\n\r\nevent: x\r\ndata: b\r\ndata: c\r\n\r\n')
  const events = new EventReader({ eventBytes: 1000 }).push(chunk)
  chunk.fill('X')
  expect(shape(events)).toEqual([
    ['', 'a'],
    ['x', 'b\nc'],
  ])
  expect(Buffer.concat(events.map(({ bytes }) => bytes)).toString()).toBe(
    'data: a\n\nevent: x\ndata: b\ndata: c\n\n',
  )
})

test('comments and fields that nobody needs are not passed on', () => {
  const events = read(': sk-secret\nid: sk-secret\ndata: a\nretry: 1\nevent: x\n\n')
  expect(Buffer.from(events[0]?.bytes ?? []).toString()).toBe('data: a\nevent: x\n\n')
})

test('an event of very many lines is refused: each takes memory of its own', () => {
  const lines = (count: number) => `${'data:\n'.repeat(count)}\n`
  expect(read(lines(16_384), 100_000)).toHaveLength(1)
  expect(() => read(lines(16_385), 100_000)).toThrow('upstream_invalid')
  expect(read(`${':\n'.repeat(50_000)}data: a\n\n`, 100_000)).toHaveLength(1)
})

test('W-25 an event over the limit is refused, however it comes', () => {
  for (const text of [`data: ${'x'.repeat(200)}`, 'data: x\n'.repeat(30), `:${'x'.repeat(200)}`]) {
    for (const step of [1, 50, 1000]) expect(() => read(text, step, 100)).toThrow('upstream_invalid')
  }
  expect(read(`data: ${'x'.repeat(80)}\n\n`.repeat(50), 7, 100)).toHaveLength(50)
})
