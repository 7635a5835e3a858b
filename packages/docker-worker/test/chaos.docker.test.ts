import { randomBytes } from 'node:crypto'
import { readdirSync, readlinkSync } from 'node:fs'
import { globalAgent } from 'node:http'
import { dockerGate } from '@sandbox/testing'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { connectEngine, type Engine } from '../src/host/container/docker-client.ts'
import { exitFailure } from '../src/host/container/exit-failure.ts'
import { removeContainer } from '../src/host/container/reconcile.ts'
import { createDockerDriver } from '../src/host/docker-driver.ts'
import type { Driver, Worker } from '../src/host/driver.ts'
import { workspaceSize } from '../src/host/workspace-size.ts'
import type { WorkerLimits } from '../src/options.ts'
import { ENGINE, tinyImage } from '../src/testing/tiny-image.ts'
import { type TestPlace, testPlace, testUser } from '../src/testing/worker-bench.ts'
import { engineProxy } from './engine-proxy.ts'

const MIB = 2 ** 20
const STAYS = 'await guest.report({ up: true })\nsetInterval(() => {}, 1000)\n'
const IGNORES = `for (const name of ['SIGTERM', 'SIGINT', 'SIGHUP', 'SIGQUIT']) process.on(name, () => {})\n${STAYS}`
const FORKS = `
import { spawn } from 'node:child_process'
let refused = 0
for (let n = 0; n < 2000; n++) {
  try {
    spawn(process.execPath, ['-e', 'setInterval(() => {}, 1000)'], { detached: true, stdio: 'ignore' })
      .on('error', () => { refused++ }).unref()
  } catch { refused++ }
}
setTimeout(() => guest.report({ refused }), 500)
setInterval(() => {}, 1000)
`
const FILLS = (path: string) => `
import { openSync, writeSync } from 'node:fs'
let bytes = 0
let code
const piece = Buffer.alloc(1024 * 1024, 1)
for (let n = 0; n < 40 && code === undefined; n++) {
  try {
    const file = openSync(${JSON.stringify(path)} + '/' + n, 'w')
    for (let m = 0; m < 8; m++) bytes += writeSync(file, piece)
  } catch (error) { code = error.code }
}
await guest.report({ bytes, code })
setInterval(() => {}, 1000)
`
const FLOODS = `await guest.report({ up: true })\nconst line = 'x'.repeat(65536)\nfor (;;) console.log(line)\n`
const EATS = 'const held = []\nfor (;;) held.push(Buffer.alloc(8 * 2 ** 20, 1))\n'

/** Sockets and pipes of this process that nobody keeps for the next call: what a lost connection would be. */
function descriptors(): number {
  const idle = Object.values(globalAgent.freeSockets ?? {}).flat().length
  const open = readdirSync('/proc/self/fd').filter((fd) => {
    try {
      return /^(socket|pipe):/.test(readlinkSync(`/proc/self/fd/${fd}`))
    } catch {
      return false
    }
  }).length
  return open - idle
}

/** A small generator, so that a seed tells the whole run. */
function randomFrom(seed: number): () => number {
  let state = seed
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0
    return state / 2 ** 32
  }
}

describe.skipIf(!dockerGate())('chaos', () => {
  const install = `test-chaos-${randomBytes(6).toString('hex')}`
  let image: string
  let engine: Engine
  let driver: Driver
  let bystander: { place: TestPlace; worker: Worker }
  let beats = 0
  let before = 0

  beforeAll(async () => {
    image = await tinyImage()
    engine = await connectEngine(ENGINE)
    driver = makeDriver(`${install}-other`)
    const place = await testPlace(`
      for (;;) {
        await guest.report({ beat: true })
        await new Promise((resolve) => setTimeout(resolve, 50))
      }`)
    bystander = { place, worker: await driver.start(place.spec) }
    await place.report()
    void listen(place)
  })
  afterAll(async () => {
    await bystander.worker.remove()
    await driver[Symbol.asyncDispose]()
    await bystander.place[Symbol.asyncDispose]()
    const left = [...(await engine.list(install)), ...(await engine.list(`${install}-other`))]
    await Promise.all(left.map(({ id }) => removeContainer(engine, id)))
    expect(left).toEqual([])
  })
  beforeEach(() => {
    before = descriptors()
  })
  /** After each: no container, no descriptor, the other channel's worker goes on, and this channel answers again. */
  afterEach(async () => {
    expect(await engine.list(install)).toEqual([])
    await expect.poll(descriptors, { timeout: 5_000 }).toBeLessThanOrEqual(before)
    expect((await engine.state(bystander.worker.id))?.running).toBe(true)
    const heard = beats
    await expect.poll(() => beats, { timeout: 5_000 }).toBeGreaterThan(heard)
  })

  async function listen(place: TestPlace): Promise<void> {
    for (;;) {
      await place.report()
      beats++
    }
  }

  function makeDriver(
    installId = install,
    more: { engineSocket?: string; limits?: WorkerLimits } = {},
  ): Driver {
    return createDockerDriver({ image, user: testUser(), engineSocket: ENGINE, ...more, installId })
  }

  /** One worker that does its worst, and is removed when it has reported. */
  async function worst(
    program: string,
    limits: WorkerLimits = {},
    look?: (place: TestPlace) => Promise<void>,
  ) {
    await using place = await testPlace(program)
    await using own = makeDriver(install, { limits })
    const worker = await own.start(place.spec)
    const ended = worker.exited.then((exit) => ({ exit }))
    const told = await Promise.race([place.report(), ended])
    await worker.remove()
    await look?.(place)
    expect(await engine.state(worker.id)).toBeUndefined()
    await answersAgain(own, place)
    return { told, exit: await worker.exited, output: worker.output() }
  }

  async function answersAgain(own: Driver, place: TestPlace): Promise<void> {
    place.program('await guest.report({ again: true })')
    const worker = await own.start({ ...place.spec, workerId: randomBytes(8).toString('hex') })
    // It ends by itself once its report was taken.
    expect(await worker.exited).toEqual({ code: 0, reason: 'exited' })
    await worker.remove()
  }

  test('a guest that ignores every signal', async () => {
    expect((await worst(IGNORES)).exit).toMatchObject({ reason: 'killed' })
  })

  test('T61 a guest that forks 2,000 children, each in a group of its own', async () => {
    const { told, exit } = await worst(FORKS, { pids: 32, memoryBytes: 1024 * MIB })
    // Bun aborts where Node is told EAGAIN.
    if (process.versions.bun !== undefined && 'exit' in (told as object)) {
      expect(exit).toMatchObject({ reason: 'killed', signal: 'SIGABRT' })
      return
    }
    expect((told as { refused: number }).refused).toBeGreaterThan(1900)
    expect(exit.limit).toBe('pids')
    expect(exitFailure(exit)?.code).toBe('worker_pid_limit')
  })

  test('a guest that fills its /tmp', async () => {
    const { told } = await worst(FILLS('/tmp'), { tmpBytes: 16 * MIB })
    expect(told).toMatchObject({ code: 'ENOSPC', bytes: expect.any(Number) })
    expect((told as { bytes: number }).bytes).toBeLessThanOrEqual(16 * MIB)
  })

  test('W-66 a guest that fills its workspace is seen', async () => {
    const { told } = await worst(FILLS('/workspace'), { memoryBytes: 256 * MIB }, async ({ spec }) => {
      const size = await workspaceSize(spec.workspaceDir, { limitBytes: 32 * MIB })
      expect(size).toMatchObject({ over: 'bytes' })
    })
    expect((told as { bytes: number }).bytes).toBeGreaterThan(32 * MIB)
  })

  test('W-62 a guest that floods its output', async () => {
    const { output } = await worst(FLOODS)
    expect(output.length).toBeLessThan(70_000)
  })

  test('T63 a guest that allocates until it is killed', async () => {
    const { exit } = await worst(EATS, { memoryBytes: 96 * MIB })
    expect(exit).toMatchObject({ reason: 'oom' })
    expect(exitFailure(exit)?.code).toBe('worker_out_of_memory')
  })

  test('W-60 20 starts that are called off at random moments', { timeout: 60_000 }, async () => {
    const seed = Number(process.env.SANDBOX_CHAOS_SEED ?? randomBytes(4).readUInt32LE())
    const random = randomFrom(seed)
    await using place = await testPlace(STAYS)
    await using own = makeDriver()
    await own.check()
    const runs = Array.from({ length: 20 }, async () => {
      const stop = new AbortController()
      const timer = setTimeout(() => stop.abort('chaos'), random() * 1500)
      const spec = { ...place.spec, workerId: randomBytes(8).toString('hex') }
      try {
        const worker = await own.start(spec, stop.signal)
        await worker.remove()
        return 'started'
      } catch (error) {
        return (error as { code?: string }).code
      } finally {
        clearTimeout(timer)
      }
    })
    const outcomes = await Promise.all(runs)
    const told = `seed ${seed}: ${outcomes.join(' ')}`
    expect(
      outcomes.filter((outcome) => outcome !== 'started' && outcome !== 'aborted'),
      told,
    ).toEqual([])
    expect(await engine.list(install), told).toEqual([])
  })

  test('an engine that refuses to create or to start', async () => {
    await using proxy = await engineProxy(ENGINE)
    await using place = await testPlace(STAYS)
    await using own = makeDriver(install, { engineSocket: proxy.path })
    await own.check()
    for (const calls of [
      /^POST \S+\/containers\/create/,
      /^POST \S+\/start/,
      /^POST \S+\/attach/,
      /^POST \S+\/wait/,
    ]) {
      proxy.refuse(calls)
      const spec = { ...place.spec, workerId: randomBytes(8).toString('hex') }
      await expect(own.start(spec)).rejects.toMatchObject({ code: 'start_failed' })
      expect(await engine.list(install)).toEqual([])
    }
    proxy.refuse(undefined)
    await answersAgain(own, place)
  })

  test('T52 an engine that refuses to remove: told, never taken for done, and done later', async () => {
    await using proxy = await engineProxy(ENGINE)
    await using place = await testPlace(STAYS)
    await using own = makeDriver(install, { engineSocket: proxy.path })
    const worker = await own.start(place.spec)
    await place.report()
    proxy.refuse(/^DELETE /)
    await expect(worker.remove()).rejects.toMatchObject({ code: 'remove_failed' })
    expect((await engine.list(install)).map(({ id }) => id)).toEqual([worker.id])
    proxy.refuse(undefined)
    await worker.remove()
    expect(await engine.state(worker.id)).toBeUndefined()
  })

  test('an engine that goes away while a worker runs, and comes back', async () => {
    await using proxy = await engineProxy(ENGINE)
    await using place = await testPlace(STAYS)
    await using own = makeDriver(install, { engineSocket: proxy.path })
    const worker = await own.start(place.spec)
    await place.report()
    proxy.down()
    const exit = await worker.exited
    expect(exit).toEqual({ reason: 'lost' })
    expect(exitFailure(exit)?.code).toBe('worker_lost')
    await expect(own.start({ ...place.spec, workerId: '0'.repeat(16) })).rejects.toMatchObject({
      code: 'engine_unreachable',
    })
    proxy.up()
    expect(await own.sweep(new Set())).toEqual([place.spec.workerId])
    await worker.remove()
    await answersAgain(own, place)
  })
})
