import { spawn } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import { setTimeout as pause } from 'node:timers/promises'
import { dockerGate } from '@sandbox/testing'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { connectEngine, type Engine } from '../src/host/container/docker-client.ts'
import { createDockerDriver } from '../src/host/docker-driver.ts'
import { ENGINE, tinyImage } from '../src/testing/tiny-image.ts'
import { testPlace, testUser } from '../src/testing/worker-bench.ts'

const DRIVER = new URL('../src/host/docker-driver.ts', import.meta.url).href

/** A host in a process of its own: says `checked` and `started`, then waits to be killed. */
const HOST = `
const [driverUrl, options, spec] = process.argv.slice(-3)
const { createDockerDriver } = await import(driverUrl)
const driver = createDockerDriver(JSON.parse(options))
await driver.check()
console.log('checked')
const worker = await driver.start(JSON.parse(spec))
console.log('started')
setInterval(() => {}, 1000)
`

/** Milliseconds after the check, when the start is under way; and after the start. */
const STAGES: readonly (readonly ['checked' | 'started', number])[] = [
  ['checked', 0],
  ['checked', 15],
  ['checked', 40],
  ['checked', 90],
  ['checked', 160],
  ['started', 0],
  ['started', 200],
]

describe.skipIf(!dockerGate())('a host that is killed', () => {
  const installId = `test-killed-${randomBytes(6).toString('hex')}`
  let image: string
  let engine: Engine
  beforeAll(async () => {
    image = await tinyImage()
    engine = await connectEngine(ENGINE)
  })
  afterAll(async () => {
    expect(await engine.list(installId)).toEqual([])
  })

  test.each(STAGES)(
    'T51 SIGKILL when it had %s, and %i ms later: the next host sweeps it',
    async (stage, ms) => {
      const options = { image, installId, user: testUser(), engineSocket: ENGINE }
      await using place = await testPlace('await guest.report({ up: true })\nsetInterval(() => {}, 1000)\n')
      const flags = ['--conditions=@sandbox/source', '--input-type=module', '-e', HOST]
      const args = [...flags, '--', DRIVER, JSON.stringify(options), JSON.stringify(place.spec)]
      const host = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'inherit'] })
      const gone = once(host, 'exit')
      for await (const line of createInterface(host.stdout)) if (line === stage) break
      await pause(ms)
      host.kill('SIGKILL')
      await gone

      await using next = createDockerDriver(options)
      // What the dead host had asked for may still come: that is why a sweep is repeated.
      const swept = async () => {
        await next.sweep(new Set())
        await pause(300)
        return (await engine.list(installId)).length
      }
      await expect.poll(swept, { timeout: 10_000 }).toBe(0)
      place.program('await guest.report({ again: true })')
      const worker = await next.start({ ...place.spec, workerId: randomBytes(8).toString('hex') })
      expect(await worker.exited).toEqual({ code: 0, reason: 'exited' })
      await worker.remove()
    },
  )
})
