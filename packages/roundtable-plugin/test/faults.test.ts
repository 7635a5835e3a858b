import { expect, test } from 'vitest'
import { SandboxRuntime } from '../src/defaults.ts'
import { ann, kit } from './runtime-kit.ts'

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
      kind: driver.kind,
      isolation: driver.isolation,
      check: (signal) => driver.check(signal),
      start: (spec, signal) => driver.start(spec, signal),
      verify: (posture) => driver.verify(posture),
      sweep: (live) => driver.sweep(live),
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
