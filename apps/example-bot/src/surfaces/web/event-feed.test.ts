import { expect, test } from 'vitest'
import { eventFeed, type SendEvent } from './event-feed.ts'

test('an event is a name and one line of JSON', async () => {
  const response = eventFeed((send) => {
    send('entry', { text: 'two\nlines' })
    return () => {}
  })
  const reader = response.body?.getReader()
  const { value } = (await reader?.read()) ?? {}
  expect(new TextDecoder().decode(value)).toBe('event: entry\ndata: {"text":"two\\nlines"}\n\n')
})

test('a reader that does not read is dropped, once, and no longer kept in memory', async () => {
  let send: SendEvent = () => {}
  let ends = 0
  const response = eventFeed((given) => {
    send = given
    return () => {
      ends += 1
    }
  })
  const big = 'x'.repeat(1024 * 1024)
  for (let n = 0; n < 40; n += 1) send('entry', big)
  expect(ends).toBe(1)
  await expect(response.text()).rejects.toThrow('too slow')
})
