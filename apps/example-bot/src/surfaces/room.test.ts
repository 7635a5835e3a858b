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
