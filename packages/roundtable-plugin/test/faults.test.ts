import type { Driver, Worker } from '@sandbox/docker-worker'
import { expect, test, vi } from 'vitest'
import { SandboxRuntime } from '../src/defaults.ts'
import { ann, kit } from './runtime-kit.ts'

/** A driver whose members can be replaced one by one. */
function plain(driver: Driver): Driver {
  return {
    kind: driver.kind,
    isolation: driver.isolation,
    check: (signal) => driver.check(signal),
    start: (spec, signal) => driver.start(spec, signal),
    verify: (posture) => driver.verify(posture),
    sweep: (live) => driver.sweep(live),
    [Symbol.asyncDispose]: () => driver[Symbol.asyncDispose](),
  }
}

test('W-27 a logger that throws, or rejects, does not touch the turn', async () => {
  const boom = (): never => {
    throw new TypeError('disk full')
  }
  const fails = async () => boom()
  for (const logger of [
    { info: boom, warn: boom, error: boom },
    { info: fails, warn: fails, error: fails },
  ]) {
    await using own = await kit({ guest: `console.error('words'); process.exit(7)`, runtime: { logger } })
    expect(await own.runtime.runTurn('fake:1', ann, 'hello')).toMatchObject({ ok: false, category: 'worker' })
  }
})

test('RL-15 a dispose that cannot remove a worker rejects, gives the roots back, and may be tried again', async () => {
  let stuck = true
  await using own = await kit({
    wrap: (driver) => ({
      ...plain(driver),
      [Symbol.asyncDispose]: async () => {
        if (stuck) throw new TypeError('engine says no')
        await driver[Symbol.asyncDispose]()
      },
    }),
  })
  await expect(own.runtime.dispose()).rejects.toThrow('engine says no')
  await expect(own.runtime.runTurn('fake:1', ann, 'hello')).rejects.toMatchObject({ code: 'closed' })
  await new SandboxRuntime({ ...own.options, driver: 'process' }).dispose()
  stuck = false
  await own.runtime.dispose()
})

/** Workers whose removal waits until `free` is called, as on an engine that hangs. */
function hangingEngine() {
  const { promise: freed, resolve: free } = Promise.withResolvers<void>()
  const hold = (worker: Worker): Worker => ({
    id: worker.id,
    workerId: worker.workerId,
    exited: worker.exited,
    output: () => worker.output(),
    remove: async () => {
      await freed
      await worker.remove()
    },
  })
  return { free, hold }
}

test('decision 7: a reply without an answer does not wait for an engine that hangs; the next turn does', async () => {
  let workers = 0
  const { free, hold } = hangingEngine()
  await using own = await kit({
    guest: 'await hello(); setInterval(() => {}, 1000)',
    runtime: { turnTimeoutMs: 1_500 },
    wrap: (driver) => ({
      ...plain(driver),
      start: async (spec, signal) => {
        workers += 1
        return hold(await driver.start(spec, signal))
      },
    }),
  })
  const timeout = { ok: false, category: 'timeout' }
  expect(await own.runtime.runTurn('fake:1', ann, 'first')).toMatchObject(timeout)
  expect(own.turns.at(-1)?.cause).toMatch(/its worker is still being removed/)
  expect(await own.runtime.runTurn('fake:1', ann, 'second')).toMatchObject(timeout)
  expect(workers).toBe(1)
  free()
  expect(await own.runtime.runTurn('fake:1', ann, 'third')).toMatchObject(timeout)
  expect(workers).toBe(2)
  await own.runtime.dispose()
  expect(own.runDirs()).toEqual([])
})

test('RL-17 decision 7: an answer does not wait for an engine that hangs either; the next turn does', async () => {
  const { free, hold } = hangingEngine()
  let stuck: string | undefined
  await using own = await kit({
    wrap: (driver) => ({
      ...plain(driver),
      start: async (spec, signal) => {
        stuck ??= spec.channelHash
        const worker = await driver.start(spec, signal)
        return spec.channelHash === stuck ? hold(worker) : worker
      },
    }),
  })
  // Nothing is freed before the answer is there.
  expect(await own.runtime.runTurn('fake:1', ann, 'first')).toEqual({ ok: true, text: 'hi' })
  expect([own.turns.at(-1)?.state, own.runDirs().length]).toEqual(['settled', 1])
  let over = false
  const second = own.runtime.runTurn('fake:1', ann, 'second').finally(() => {
    over = true
  })
  await own.runtime.runTurn('fake:2', ann, 'elsewhere')
  expect(over).toBe(false)
  free()
  expect(await second).toEqual({ ok: true, text: 'hi' })
  expect(own.upstream.seen.at(-1)?.body).toContain('first')
  await own.runtime.dispose()
  expect(own.runDirs()).toEqual([])
})

test('decision 7: a start that hangs in the engine is given up long before the deadline of its turn', async () => {
  const hung = Promise.withResolvers<never>()
  const asked = Promise.withResolvers<void>()
  await using own = await kit({
    runtime: { turnTimeoutMs: 600_000 },
    wrap: (driver) => ({
      ...plain(driver),
      // It does not listen to its signal either.
      start: () => {
        asked.resolve()
        return hung.promise
      },
    }),
  })
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
  try {
    const running = own.runtime.runTurn('fake:1', ann, 'hello')
    await asked.promise
    await vi.advanceTimersByTimeAsync(65_000)
    expect(await running).toMatchObject({ ok: false, category: 'container' })
  } finally {
    vi.useRealTimers()
  }
  expect(own.turns.at(-1)?.cause).toMatch(/^no worker was ready in time: step start/)
  hung.reject(new TypeError('gone'))
  await own.runtime.dispose()
  expect(own.runDirs()).toEqual([])
})

test('decision 7 T65: nor does it when the worker is refused in its hello', async () => {
  const { free, hold } = hangingEngine()
  await using own = await kit({
    wrap: (driver) => ({
      ...plain(driver),
      verify: () => ['The worker shares a namespace with the host.'],
      start: async (spec, signal) => hold(await driver.start(spec, signal)),
    }),
  })
  const refused = { ok: false, category: 'container' }
  // Nothing is freed before the reply is there.
  expect(await own.runtime.runTurn('fake:1', ann, 'first')).toMatchObject(refused)
  expect(own.turns.at(-1)?.cause).toMatch(/^verify: .*; its worker is still being removed$/)
  expect(own.runDirs()).toHaveLength(1)
  const second = own.runtime.runTurn('fake:1', ann, 'second')
  free()
  expect(await second).toMatchObject(refused)
  await own.runtime.dispose()
  expect(own.runDirs()).toEqual([])
})

test('decision 7: nor does it when the turn is stopped while its worker says hello', async () => {
  const { free, hold } = hangingEngine()
  const started = Promise.withResolvers<void>()
  await using own = await kit({
    guest: 'setInterval(() => {}, 1000)',
    wrap: (driver) => ({
      ...plain(driver),
      start: async (spec, signal) => {
        const worker = hold(await driver.start(spec, signal))
        started.resolve()
        return worker
      },
    }),
  })
  const turn = own.runtime.runTurn('fake:1', ann, 'first')
  await started.promise
  own.runtime.stop('fake:1')
  expect(await turn).toMatchObject({ ok: false, category: 'stopped' })
  expect(own.runDirs()).toHaveLength(1)
  free()
  await own.runtime.dispose()
  expect(own.runDirs()).toEqual([])
})
