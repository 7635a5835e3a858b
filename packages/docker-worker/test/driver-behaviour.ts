import { randomBytes } from 'node:crypto'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { expect, test } from 'vitest'
import type { Driver, Worker, WorkerSpec } from '../src/host/driver.ts'
import { type TestPlace, testPlace } from '../src/testing/worker-bench.ts'

const STAYS = 'await guest.report({ up: true })\nsetInterval(() => {}, 1000)\n'

/** What a kind of driver brings to {@link driverBehaviour}. */
export interface DriverUnderTest {
  /** A driver of an install of its own, whose guest is the tiny one. `place` has room for its files. */
  open(place: TestPlace, options?: { scrub?(text: string): string }): Driver
  /** Names whatever is left of the workers of this place's drivers: containers, notes, processes. */
  left(place: TestPlace): Promise<readonly string[]>
}

const anotherWorker = (spec: WorkerSpec): WorkerSpec => ({
  ...spec,
  workerId: randomBytes(8).toString('hex'),
})

/** The next report of a worker; its output when it ends without one. */
async function heard(place: TestPlace, worker: Worker): Promise<unknown> {
  const silent = worker.exited.then((exit) => expect.fail(`${JSON.stringify(exit)} ${worker.output()}`))
  return await Promise.race([place.report(), silent])
}

/** What every {@link Driver} does, whatever it starts workers as: the promises of the interface, one test for each. */
export function driverBehaviour({ open, left }: DriverUnderTest): void {
  test('a worker talks on its socket, its exit and output are told, and removal leaves nothing', async () => {
    await using place = await testPlace(
      `console.log('to stdout'); console.error('to stderr'); await guest.report({ hello: 1 }); process.exitCode = 7`,
    )
    await using driver = open(place)
    await driver.check()
    const worker = await driver.start(place.spec)
    expect(worker.workerId).toBe(place.spec.workerId)
    expect(await heard(place, worker)).toEqual({ hello: 1 })
    expect(await worker.exited).toEqual({ code: 7, reason: 'exited' })
    expect(worker.output()).toContain('to stdout\n')
    expect(worker.output()).toContain('to stderr\n')
    await worker.remove()
    expect(await left(place)).toEqual([])
  })

  test('PD-08 W-62 output is bounded, scrubbed, and without control characters; a flood stalls nobody', async () => {
    const floods = `
      await guest.report({ up: true })
      for (let n = 0; n < 64; n++) process.stdout.write('x'.repeat(65536))
      process.stdout.write('\\u001b[31msecret\\u0007 end', () => process.exit(0))`
    await using place = await testPlace(floods)
    await using driver = open(place, { scrub: (text) => text.replaceAll('secret', '[cut]') })
    const worker = await driver.start(place.spec)
    await heard(place, worker)
    expect(await worker.exited).toEqual({ code: 0, reason: 'exited' })
    expect(worker.output()).toMatch(/^\[\d+ bytes cut\]\nx+\[cut\] end$/)
    expect(worker.output().length).toBeLessThan(66_000)
    await worker.remove()
  })

  test('DD-12 DD-13 PD-07 a worker that ignores signals is dead after remove(), however often it is called', async () => {
    const ignores = `for (const name of ['SIGTERM', 'SIGINT', 'SIGHUP']) process.on(name, () => {})\n${STAYS}`
    await using place = await testPlace(ignores)
    await using driver = open(place)
    const worker = await driver.start(place.spec)
    await heard(place, worker)
    await Promise.all([worker.remove(), worker.remove()])
    await worker.remove()
    expect(await worker.exited).toMatchObject({ reason: 'killed', signal: 'SIGKILL' })
    expect(await left(place)).toEqual([])
  })

  test('DD-04 a spec that is wrong, or names a directory that is not there, starts nothing', async () => {
    await using place = await testPlace(STAYS)
    await using driver = open(place)
    const missing = join(place.root, 'missing')
    for (const [field, change] of [
      ['workerId', { workerId: 'x' }],
      ['channelHash', { channelHash: 'general' }],
      ['runDir', { runDir: missing }],
      ['workspaceDir', { workspaceDir: missing }],
      ['workspaceDir', { workspaceDir: place.spec.runDir }],
    ] as const) {
      await expect(driver.start({ ...place.spec, ...change })).rejects.toMatchObject({
        code: 'spec_invalid',
        message: expect.stringContaining(`spec.${field}`),
      })
    }
    expect(await left(place)).toEqual([])
  })

  test('W-60 a start that is called off, before or at any moment, leaves nothing', async () => {
    await using place = await testPlace(STAYS)
    await using driver = open(place)
    await driver.check()
    await expect(driver.start(place.spec, AbortSignal.abort('enough'))).rejects.toMatchObject({
      code: 'aborted',
      cause: 'enough',
    })
    for (const delayMs of [0, 5, 20, 60]) {
      const stop = new AbortController()
      const starting = driver.start(anotherWorker(place.spec), stop.signal)
      starting.catch(() => {})
      await pause(delayMs)
      stop.abort('enough')
      // It may have been there before: then it is the caller's.
      const worker = await starting.catch((error: unknown) => {
        expect(error).toMatchObject({ code: 'aborted' })
      })
      await worker?.remove()
      expect(await left(place)).toEqual([])
    }
  })

  test('W-65 a second worker with the same id is refused, and the first one is left alone', async () => {
    await using place = await testPlace(STAYS)
    await using driver = open(place)
    const worker = await driver.start(place.spec)
    await heard(place, worker)
    await expect(driver.start(place.spec)).rejects.toMatchObject({ code: 'start_failed' })
    expect(await left(place)).toHaveLength(1)
    await worker.remove()
  })

  test('T50 a sweep removes whatever is not in use, and says what', async () => {
    await using place = await testPlace(STAYS)
    await using driver = open(place)
    const specs = [place.spec, anotherWorker(place.spec), anotherWorker(place.spec)] as const
    const workers = await Promise.all(specs.map((spec) => driver.start(spec)))
    const removed = await driver.sweep(new Set([specs[0].workerId]))
    expect([...removed].sort()).toEqual([specs[1].workerId, specs[2].workerId].sort())
    const ends = await Promise.all(workers.slice(1).map(({ exited }) => exited))
    expect(ends.map(({ reason }) => reason)).toEqual(['killed', 'killed'])
    expect(await left(place)).toHaveLength(1)
    expect(await driver.sweep(new Set([specs[0].workerId]))).toEqual([])
  })

  test('disposing a driver removes its workers, those that start too, and it does nothing more', async () => {
    await using place = await testPlace(STAYS)
    const driver = open(place)
    await driver.start(place.spec)
    const late = driver.start(anotherWorker(place.spec))
    await driver[Symbol.asyncDispose]()
    await late.catch(() => {})
    expect(await left(place)).toEqual([])
    const closed = { code: 'closed' }
    await expect(driver.start(anotherWorker(place.spec))).rejects.toMatchObject(closed)
    await expect(driver.check()).rejects.toMatchObject(closed)
    await expect(driver.sweep(new Set())).rejects.toMatchObject(closed)
  })
}
