import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { dockerGate, tempDir } from '@sandbox/testing'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { TINY_GUEST } from '../testing/tiny-guest.ts'
import { ENGINE } from '../testing/tiny-image.ts'
import { testPlace, testUser } from '../testing/worker-bench.ts'
import { connectEngine, type Engine } from './container/docker-client.ts'
import { createDockerDriver } from './docker-driver.ts'
import type { Driver, Worker } from './driver.ts'
import { buildImage } from './image/build-image.ts'
import { createWarmPool } from './warm-pool.ts'

const IMAGE = `sandbox-test-warm:${process.versions.bun ? 'bun' : 'node'}`
const INSTALL = 'test-warm-pool'
const STAYS = 'await guest.report({ version: globalThis.version })\nsetInterval(() => {}, 1000)\n'

async function build(version: number): Promise<void> {
  using dir = tempDir()
  const bundle = join(dir.path, 'guest.mjs')
  writeFileSync(bundle, `globalThis.version = ${version}\n${TINY_GUEST}`)
  await buildImage({ tag: IMAGE, engineSocket: ENGINE, bundle })
}

/** A pool on the engine; a place knows what its guest reported. */
function poolOn(driver: Driver) {
  return createWarmPool({
    driver,
    refillMs: 60_000,
    prepare: async () => {
      const own = await testPlace(STAYS)
      let reported: Promise<unknown> | undefined
      return {
        spec: own.spec,
        version: () => reported,
        ready: async (worker: Worker) => {
          reported ??= Promise.race([own.report(), worker.exited.then(() => 'ended')])
          await reported
        },
        dispose: async (worker: Worker | undefined) => {
          await worker?.remove()
          await own[Symbol.asyncDispose]()
        },
      }
    },
  })
}

describe.skipIf(!dockerGate())('a warm pool on a real engine', () => {
  let engine: Engine
  let driver: Driver

  beforeAll(async () => {
    await build(1)
    engine = await connectEngine(ENGINE)
    driver = createDockerDriver({ image: IMAGE, installId: INSTALL, user: testUser(), engineSocket: ENGINE })
  }, 120_000)
  afterAll(() => driver?.[Symbol.asyncDispose]())

  test('W-63 a container of an image that was rebuilt while it waited is not used, and the new one is', async () => {
    await using pool = poolOn(driver)
    pool.warm('a')
    await expect.poll(() => pool.waiting(), { timeout: 20_000 }).toEqual(['a'])
    const first = await pool.acquire('a')
    expect([first.warm, await first.place.version()]).toEqual([true, { version: 1 }])
    await first.place.dispose(first.worker)
    pool.warm('b')
    await expect.poll(() => pool.waiting(), { timeout: 20_000 }).toEqual(['b'])
    await build(2)
    const second = await pool.acquire('b')
    expect([second.warm, await second.place.version()]).toEqual([false, { version: 2 }])
    await second.place.dispose(second.worker)
  }, 120_000)

  test('a container that is killed while it waits is replaced, and dispose leaves none', async () => {
    const pool = poolOn(driver)
    pool.warm('a')
    await expect.poll(() => pool.waiting(), { timeout: 20_000 }).toEqual(['a'])
    const [before] = await engine.list(INSTALL)
    await engine.remove(before?.id ?? '')
    await expect.poll(async () => (await engine.list(INSTALL)).length, { timeout: 20_000 }).toBe(1)
    const next = await pool.acquire('a')
    expect(next.worker.workerId).not.toBe(before?.workerId)
    await next.place.dispose(next.worker)
    pool.warm('b')
    await pool[Symbol.asyncDispose]()
    expect(await engine.list(INSTALL)).toEqual([])
  }, 60_000)
})
