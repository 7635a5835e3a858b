import { execFileSync } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { existsSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { dockerGate, tempDir } from '@sandbox/testing'
import { describe, expect, test } from 'vitest'
import { connectEngine } from '../src/host/container/docker-client.ts'
import { exitFailure } from '../src/host/container/exit-failure.ts'
import { createDockerDriver } from '../src/host/docker-driver.ts'
import { buildImage } from '../src/host/image/build-image.ts'
import { TINY_GUEST } from '../src/testing/tiny-guest.ts'
import { testPlace, testUser } from '../src/testing/worker-bench.ts'

const SCRIPT = fileURLToPath(new URL('../../../scripts/engine.sh', import.meta.url))
const STAYS = 'await guest.report({ up: true })\nsetInterval(() => {}, 1000)\n'

/** Only root may start an engine; for others the chaos suite cuts the connections to the common one. */
const may =
  process.geteuid?.() === 0 && ['/usr/sbin/dockerd', '/usr/bin/dockerd'].some((path) => existsSync(path))

/** An engine of this test's own: short path, since a socket of containerd lives below it. */
function privateEngine() {
  const dir = `/run/sbx-${randomBytes(3).toString('hex')}`
  const engine = (verb: 'start' | 'stop') =>
    execFileSync(SCRIPT, [verb, dir], { stdio: ['ignore', 'ignore', 'inherit'], timeout: 60_000 })
  return {
    socket: `${dir}/docker.sock`,
    start: () => engine('start'),
    stop: () => engine('stop'),
    [Symbol.dispose]() {
      engine('stop')
      rmSync(dir, { recursive: true, force: true })
    },
  }
}

describe.skipIf(!dockerGate() || !may)('chaos with an engine of its own', () => {
  test('an engine that is stopped while a worker runs, and started again', { timeout: 120_000 }, async () => {
    using engine = privateEngine()
    engine.start()
    using dir = tempDir()
    const bundle = join(dir.path, 'guest.mjs')
    writeFileSync(bundle, TINY_GUEST)
    const { tag: image } = await buildImage({
      tag: 'sandbox-test-restart:1',
      engineSocket: engine.socket,
      bundle,
    })
    await using place = await testPlace(STAYS)
    const installId = `test-restart-${randomBytes(6).toString('hex')}`
    await using driver = createDockerDriver({
      image,
      installId,
      user: testUser(),
      engineSocket: engine.socket,
    })
    const worker = await driver.start(place.spec)
    await place.report()

    engine.stop()
    const exit = await worker.exited
    expect(['killed', 'lost', 'exited']).toContain(exit.reason)
    expect(exitFailure(exit)).toBeDefined()
    const spec = () => ({ ...place.spec, workerId: randomBytes(8).toString('hex') })
    await expect(driver.start(spec())).rejects.toMatchObject({ code: 'engine_unreachable' })

    engine.start()
    expect(await driver.sweep(new Set())).toEqual([place.spec.workerId])
    await worker.remove()
    place.program('await guest.report({ again: true })')
    const next = await driver.start(spec())
    expect(await next.exited).toEqual({ code: 0, reason: 'exited' })
    await next.remove()
    expect(await (await connectEngine(engine.socket)).list()).toEqual([])
  })
})
