import type { InboundMessage } from '@sandbox/roundtable-plugin'
import { beforeEach, expect, test } from 'vitest'
import { Room, type RoomEvent } from './room.ts'

const CHANNELS = [{ key: 'demo:a', title: 'a', about: '', speakers: [{ id: 'u-1', name: 'Ann' }] }] as const
const hello = { channel: 'demo:a', speakerId: 'u-1', text: 'hello' }

let room: Room
let events: RoomEvent[]

beforeEach(() => {
  room = new Room({ prefix: 'demo', channels: CHANNELS })
  events = []
  room.subscribe((event) => events.push(event))
})

test('a message reaches the host as one to the bot in a shared channel', async () => {
  const taken: InboundMessage[] = []
  await room.start(async (message) => {
    taken.push(message)
  })
  room.post(hello)
  expect(taken).toMatchObject([
    {
      channel: 'demo:a',
      authorId: 'u-1',
      authorName: 'Ann',
      text: 'hello',
      isDirect: false,
      mentionsBot: true,
    },
  ])
  expect(taken[0]?.messageId).toMatch(/^[0-9a-f-]{36}$/)
})

test('chunks of a reply are one entry, and typing is told once', async () => {
  const stops = [room.startTyping('demo:a'), room.startTyping('demo:a')]
  expect(room.typing()).toEqual(['demo:a'])
  stops[0]?.()
  stops[0]?.()
  expect(room.typing()).toEqual(['demo:a'])
  stops[1]?.()
  await room.sendReply('demo:a', { chunks: ['one', 'two'] })
  expect(events).toMatchObject([
    { type: 'typing', on: true },
    { type: 'typing', on: false },
    { type: 'entry', entry: { kind: 'reply', text: 'one\n\ntwo' } },
  ])
})

test('a host that throws is told in the channel', async () => {
  await room.start(() => Promise.reject(new TypeError('secret detail')))
  room.post(hello)
  await expect.poll(() => room.entries().length).toBe(2)
  expect(room.entries()[1]).toMatchObject({ kind: 'reply', text: 'The host could not take this message.' })
})

test('only so many messages may wait, and an answered one makes room', async () => {
  const waiting: (() => void)[] = []
  await room.start(() => new Promise((done) => waiting.push(done)))
  for (let n = 0; n < 20; n += 1) room.post(hello)
  expect(() => room.post(hello)).toThrow('20 messages wait for an answer here already.')
  waiting[0]?.()
  await expect.poll(() => room.post(hello).text).toBe('hello')
})

test('old entries go', async () => {
  for (let n = 0; n < 500; n += 1) await room.sendReply('demo:a', { chunks: [String(n)] })
  expect(room.entries()).toHaveLength(400)
  expect(room.entries().at(-1)?.text).toBe('499')
})

test('files of a reply are kept under names that lead nowhere, and the oldest go first', async () => {
  const big = new Uint8Array(30 * 1024 * 1024)
  const names = ['../../etc/pass\u0000wd', '..', 'C:\\x\\report\u202efdp.exe', 'a.bin', 'b.bin', 'c.bin']
  for (const name of names) {
    const data = name.endsWith('.bin') ? big : new Uint8Array([1])
    await room.sendReply('demo:a', { chunks: ['here'], files: [{ name, data }] })
  }
  const files = room.entries().flatMap(({ files = [] }) => files)
  expect(files.map(({ name }) => name)).toEqual([
    'pass\u25a1wd',
    'file',
    'report\u25a1fdp.exe',
    'a.bin',
    'b.bin',
    'c.bin',
  ])
  expect(files.map(({ id }) => room.file(id) !== undefined)).toEqual([false, false, false, false, true, true])
  expect(room.file('../x')).toBeUndefined()
})

test('a growing answer is told while somebody types, and forgotten with the answer', async () => {
  room.draft('demo:a', 'too early')
  const end = room.startTyping('demo:a')
  room.draft('demo:a', 'Hel')
  expect(room.drafts()).toEqual([{ channel: 'demo:a', text: 'Hel' }])
  await room.sendReply('demo:a', { chunks: ['Hello'] })
  expect(room.drafts()).toEqual([])
  room.draft('demo:a', 'more')
  end()
  expect(room.drafts()).toEqual([])
  expect(events.filter(({ type }) => type === 'draft')).toHaveLength(2)
})

test('a history of long texts is no longer than a view can take at once', async () => {
  for (let n = 0; n < 300; n += 1) await room.sendReply('demo:a', { chunks: ['x'.repeat(32_000)] })
  expect(room.entries().reduce((sum, { text }) => sum + text.length, 0)).toBeLessThanOrEqual(1_000_000)
  expect(room.entries().length).toBeGreaterThan(20)
})
