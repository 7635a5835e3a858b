import { expect, test } from 'vitest'
import { CallSlots } from './call-slots.ts'

const never = new AbortController().signal

/** Whether a promise is settled, asked after everything that was ready has run. */
async function settled(promise: Promise<unknown>): Promise<boolean> {
  const open = Symbol('open')
  const tick = new Promise((done) => setImmediate(() => done(open)))
  return (await Promise.race([promise, tick])) !== open
}

test('W-29 slots go round in order of arrival, and leaving twice frees one', async () => {
  const slots = new CallSlots({ concurrent: 1, queued: 2 })
  const leave = await slots.enter(never)
  const [second, third] = [slots.enter(never), slots.enter(never)]
  expect(slots.full).toBe(true)
  leave()
  leave()
  expect([await settled(second), await settled(third)]).toEqual([true, false])
  expect(slots.full).toBe(false)
  ;(await second)()
  ;(await third)()
  await slots.enter(never)
  expect(await settled(slots.enter(never))).toBe(false)
})

test('a waiter whose signal fires leaves the line and gets the reason; the next one moves up', async () => {
  const slots = new CallSlots({ concurrent: 1, queued: 2 })
  const leave = await slots.enter(never)
  const control = new AbortController()
  const waiting = expect(slots.enter(control.signal)).rejects.toBe('why')
  const next = slots.enter(never)
  control.abort('why')
  await waiting
  expect(slots.full).toBe(false)
  leave()
  expect(await settled(next)).toBe(true)
})

test('an aborted signal takes nothing', async () => {
  const slots = new CallSlots({ concurrent: 1, queued: 0 })
  await expect(slots.enter(AbortSignal.abort('why'))).rejects.toBe('why')
  expect(slots.full).toBe(false)
})
