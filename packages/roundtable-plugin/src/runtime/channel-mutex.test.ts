import { expect, test } from 'vitest'
import { ChannelMutex } from './channel-mutex.ts'

test('W-70 one holder at a time, in the order of asking', async () => {
  const mutex = new ChannelMutex()
  const seen: string[] = []
  const first = await mutex.take()
  const second = mutex.take().then((release) => {
    seen.push('second')
    return release
  })
  const third = mutex.take().then((release) => {
    seen.push('third')
    return release
  })
  await new Promise((done) => setImmediate(done))
  expect(seen).toEqual([])
  first()
  first()
  const release = await second
  await new Promise((done) => setImmediate(done))
  expect(seen).toEqual(['second'])
  release()
  ;(await third)()
  expect(seen).toEqual(['second', 'third'])
  expect(mutex.taken).toBe(false)
})

test('who gives up waiting holds nothing, and lets nobody in before their time', async () => {
  const mutex = new ChannelMutex()
  const first = await mutex.take()
  const gone = new AbortController()
  const waiting = mutex.take(gone.signal)
  let got = false
  const last = mutex.take().then((release) => {
    got = true
    return release
  })
  gone.abort(new Error('enough'))
  await expect(waiting).rejects.toThrow('enough')
  await new Promise((done) => setImmediate(done))
  expect(got).toBe(false)
  first()
  ;(await last)()
  await expect(mutex.take(gone.signal)).rejects.toThrow('enough')
  expect(mutex.taken).toBe(false)
})
