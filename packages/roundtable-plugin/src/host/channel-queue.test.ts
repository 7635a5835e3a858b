import { expect, test } from 'vitest'
import { ChannelQueue } from './channel-queue.ts'

test('KH-05 the queue runs one task of a channel at a time, in order, and channels do not wait', async () => {
  const queue = new ChannelQueue()
  const seen: string[] = []
  let open = () => {}
  const first = queue.run('a:1', () => new Promise<void>((done) => (open = done)))
  const failing = queue.run('a:1', async () => {
    seen.push('second')
    throw new TypeError('second')
  })
  const third = queue.run('a:1', async () => void seen.push('third'))
  await queue.run('a:2', async () => void seen.push('other'))
  expect([seen, queue.size('a:1'), queue.size('a:2'), queue.busy()]).toEqual([['other'], 3, 0, ['a:1']])
  open()
  await first
  await expect(failing).rejects.toThrow('second')
  await third
  await queue.idle()
  expect([seen, queue.size('a:1'), queue.busy()]).toEqual([['other', 'second', 'third'], 0, []])
})
