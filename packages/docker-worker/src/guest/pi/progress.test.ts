import type { PiProgress } from '@sandbox/protocol'
import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { ProgressReporter } from './progress.ts'

beforeEach(() => void vi.useFakeTimers())
afterEach(() => void vi.useRealTimers())

function reporter(send: (piece: PiProgress) => Promise<void> = async () => {}) {
  const sent: PiProgress[] = []
  const progress = new ProgressReporter({
    turnId: 't',
    send: (piece) => {
      sent.push(piece)
      return send(piece)
    },
  })
  return { progress, sent }
}

test('pieces are gathered, at most one each 250 ms, each says where it begins', async () => {
  const { progress, sent } = reporter()
  for (const word of ['Good ', 'morn', 'ing']) progress.add(word)
  expect(sent).toEqual([])
  await vi.advanceTimersByTimeAsync(250)
  progress.add('.')
  await vi.advanceTimersByTimeAsync(249)
  expect(sent).toHaveLength(1)
  await vi.advanceTimersByTimeAsync(1)
  expect(sent).toEqual([
    { turnId: 't', seq: 0, at: 0, text: 'Good morning' },
    { turnId: 't', seq: 1, at: 12, text: '.' },
  ])
})

test('another message starts the text anew', async () => {
  const { progress, sent } = reporter()
  progress.add('Let me look.')
  await vi.advanceTimersByTimeAsync(250)
  progress.restart()
  progress.add('Found it.')
  await vi.advanceTimersByTimeAsync(250)
  expect(sent.at(-1)).toEqual({ turnId: 't', seq: 1, at: 0, text: 'Found it.' })
})

test('a long text goes in pieces of 8,192 characters, one at a time, and ends at 100,000', async () => {
  let release = () => {}
  const { progress, sent } = reporter(
    () =>
      new Promise<void>((resolve) => {
        release = resolve
      }),
  )
  progress.add('x'.repeat(20_000))
  await vi.advanceTimersByTimeAsync(10_000)
  expect(sent.map(({ text }) => text.length)).toEqual([8192])
  release()
  await vi.advanceTimersByTimeAsync(250)
  expect(sent.map(({ at }) => at)).toEqual([0, 8192])
  progress.add('y'.repeat(200_000))
  progress.add('z')
  for (let round = 0; round < 60; round += 1) {
    release()
    await vi.advanceTimersByTimeAsync(250)
  }
  expect(sent.map(({ text }) => text).join('')).not.toContain('z')
})

test('a lost piece stays lost, and the next follows; nothing comes after the end', async () => {
  const { progress, sent } = reporter(async () => {
    throw new Error('gone')
  })
  progress.add('one')
  await vi.advanceTimersByTimeAsync(250)
  progress.add('two')
  await vi.advanceTimersByTimeAsync(250)
  expect(sent.map(({ text }) => text)).toEqual(['one', 'two'])
  progress.add('three')
  progress.close()
  progress.add('four')
  await vi.advanceTimersByTimeAsync(1_000)
  expect(sent).toHaveLength(2)
})
