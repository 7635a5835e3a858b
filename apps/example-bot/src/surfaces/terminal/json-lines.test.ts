import { PassThrough } from 'node:stream'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { Ledger } from '../../ledger.ts'
import { Room } from '../room.ts'
import { type JsonLines, openJsonLines } from './json-lines.ts'

const CHANNELS = [
  { key: 'demo:alpha', title: 'alpha', about: 'first', speakers: [{ id: 'u-cleo', name: 'Cleo' }] },
  {
    key: 'demo:team',
    title: 'team',
    about: 'second',
    speakers: [
      { id: 'u-ann', name: 'Ann' },
      { id: 'u-ben', name: 'Ben' },
    ],
  },
] as const

const explain = () => ({ rule: undefined, source: undefined, fingerprint: undefined })

let input: PassThrough
let written: string
let ended: boolean[]
let room: Room
let ledger: Ledger
let lines: JsonLines

/** Answers a message: by default its own text, as a turn that settles before its reply. */
let answer: (channel: 'demo:alpha', text: string) => Promise<void>

beforeEach(async () => {
  ;[written, ended] = ['', []]
  ledger = new Ledger({ explain })
  room = new Room({ prefix: 'demo', channels: CHANNELS, turnOf: (channel) => ledger.latest(channel)?.turnId })
  answer = async (channel, text) => {
    begin(channel, text)
    settle(channel, text, true)
    await room.sendReply(channel, { chunks: [text.toUpperCase()] })
  }
  await room.start(({ channel, text }) => answer(channel as 'demo:alpha', text))
  input = new PassThrough()
  const output = new PassThrough()
  output.on('data', (chunk) => {
    written += chunk
  })
  lines = openJsonLines({ room, ledger, input, output, onEnd: (failed) => ended.push(failed) })
})

afterEach(() => lines.close())

const turn = (channel: 'demo:alpha', turnId: string) => ({
  turnId,
  channel,
  speaker: { id: 'u', name: 'U' },
  driver: 'process' as const,
})
const begin = (channel: 'demo:alpha', id: string) =>
  ledger.onTurn({ ...turn(channel, id), state: 'admitted', durationMs: 0 })
const settle = (channel: 'demo:alpha', id: string, ok: boolean) =>
  ledger.onTurn({ ...turn(channel, id), state: 'settled', durationMs: 5, ok })

const seen = () =>
  written
    .split('\n')
    .filter(Boolean)
    .map((line) => JSON.parse(line))
const shapes = () =>
  seen().map(({ type, channel, text, message }) => [type, channel, text ?? message].filter(Boolean).join(' '))
const ends = (failed: boolean) => expect.poll(() => ended, { timeout: 10_000 }).toEqual([failed])

test('a line is a message, as JSON or as plain text; what happens is one object per line', async () => {
  input.end('hello\n\n{"text": "hi there", "channel": "demo:team", "speaker": "u-ben"}\n')
  await ends(false)
  expect(shapes().sort()).toEqual([
    'message demo:alpha hello',
    'message demo:team hi there',
    'reply demo:alpha HELLO',
    'reply demo:team HI THERE',
    'turn demo:alpha',
    'turn demo:team',
  ])
  const byType = (type: string) => seen().find((line) => line.type === type && line.channel === 'demo:team')
  expect(byType('message')).toMatchObject({ speaker: 'u-ben', author: 'Ben', id: expect.any(Number) })
  expect(byType('reply')).toMatchObject({ turnId: 'hi there' })
  expect(byType('turn')).toMatchObject({ turnId: 'hi there', ok: true, tokens: { input: 0, output: 0 } })
})

test('the last line needs no end, and lines may come in any pieces', async () => {
  const bytes = Buffer.from('{"text": "a\u2028b \u{1f600}"}\r\nlast')
  for (const byte of bytes) input.write(Buffer.from([byte]))
  input.end()
  await ends(false)
  expect(
    seen()
      .filter(({ type }) => type === 'message')
      .map(({ text }) => text),
  ).toEqual(['a\u2028b \u{1f600}', 'last'])
})

test('messages of a channel are said one after another, and the end waits for the last answer', async () => {
  const waiting: (() => void)[] = []
  answer = async (channel, text) => {
    await new Promise<void>((done) => waiting.push(done))
    await room.sendReply(channel, { chunks: [text] })
  }
  input.end('one\ntwo\n')
  for (const count of [1, 2]) {
    await expect.poll(() => waiting.length).toBe(count)
    expect(shapes()).toHaveLength(count * 2 - 1)
    expect(ended).toEqual([])
    waiting.at(-1)?.()
  }
  await ends(false)
  const ofAlpha = [
    'message demo:alpha one',
    'reply demo:alpha one',
    'message demo:alpha two',
    'reply demo:alpha two',
  ]
  expect(shapes()).toEqual(ofAlpha)
})

test('the end waits for a turn that settles after its answer, and a turn that failed is told', async () => {
  answer = async (channel, text) => {
    begin(channel, text)
    await room.sendReply(channel, { chunks: ['sorry'] })
  }
  input.end('hello\n')
  await expect.poll(shapes).toEqual(['message demo:alpha hello', 'reply demo:alpha sorry'])
  expect(ended).toEqual([])
  settle('demo:alpha', 'hello', false)
  await ends(true)
  expect(seen().at(-1)).toMatchObject({ type: 'turn', ok: false })
})

test('what is no message is an error with its line, and the others are answered', async () => {
  const bad = [
    '{"text": 1}',
    '{"text": "a"',
    '{"text": "a", "channel": "demo:x"}',
    '{"text": "a", "speaker": "u-x"}',
  ]
  input.end([...bad, 'good'].join('\n'))
  await ends(true)
  const errors = seen().filter(({ type }) => type === 'error')
  expect(errors.map(({ line }) => line).sort()).toEqual([1, 2, 3, 4])
  expect(new Set(errors.map(({ message }) => message))).toEqual(
    new Set([
      'This is no message: {"text": "…"} or plain text is one.',
      'There is no such channel.',
      'There is no such speaker in this channel.',
    ]),
  )
  expect(shapes()).toContain('reply demo:alpha GOOD')
})

test('nothing in an answer ends its line or is obeyed by a terminal', async () => {
  const hostile = '\u001b[2J\u009b31m\n{"type":"turn"}\r\u202e\u2028end'
  answer = (channel) => room.sendReply(channel, { chunks: [hostile] })
  input.end('hello\n')
  await ends(false)
  expect(seen().map(({ type }) => type)).toEqual(['message', 'reply'])
  expect(seen()[1].text).toBe(hostile)
  // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is looked for
  expect(written).not.toMatch(/[\u0000-\u0009\u000b-\u001f\u007f-\u009f\u202a-\u202e]/)
})

test('closed early, it says nothing more and no end', async () => {
  let release = () => {}
  answer = async (channel) => {
    await new Promise<void>((done) => (release = done))
    await room.sendReply(channel, { chunks: ['late'] })
  }
  input.write('one\ntwo\n')
  await expect.poll(shapes).toEqual(['message demo:alpha one'])
  lines.close()
  lines.close()
  release()
  await expect.poll(() => room.entries().length).toBe(2)
  expect(shapes()).toEqual(['message demo:alpha one'])
  expect(ended).toEqual([])
  expect(room.listening).toBe(0)
})
