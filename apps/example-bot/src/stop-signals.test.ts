import { expect, test } from 'vitest'
import { stopSignals } from './stop-signals.ts'

test.each(['SIGINT', 'SIGTERM', 'SIGHUP'] as const)(
  '%s stops once, and forces when it comes again',
  async (name) => {
    const seen: string[] = []
    const signals = stopSignals({
      onStop: () => seen.push('stop'),
      onForce: () => seen.push('force'),
      sameWithinMs: -1,
    })
    process.kill(process.pid, name)
    await expect.poll(() => seen).toEqual(['stop'])
    process.kill(process.pid, name)
    await expect.poll(() => seen).toEqual(['stop', 'force'])
    signals.release()
    expect(process.listenerCount(name)).toBe(before[name])
  },
)

const before = {
  SIGINT: process.listenerCount('SIGINT'),
  SIGTERM: process.listenerCount('SIGTERM'),
  SIGHUP: process.listenerCount('SIGHUP'),
}

test('the copy that a package manager passes on does not force', () => {
  const seen: string[] = []
  const signals = stopSignals({
    onStop: () => seen.push('stop'),
    onForce: () => seen.push('force'),
    sameWithinMs: 1e9,
  })
  signals.raise()
  signals.raise()
  expect(seen).toEqual(['stop'])
  signals.release()
})
