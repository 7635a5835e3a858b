import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { chmodSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { describe, expect, test } from 'vitest'
import { TINY_GUEST } from '../testing/tiny-guest.ts'
import { type TestPlace, testPlace, testUser } from '../testing/worker-bench.ts'
import type { Driver, Worker } from './driver.ts'
import { createProcessDriver } from './process-driver.ts'

const STAYS = 'await guest.report({ pid: process.pid })\nsetInterval(() => {}, 1000)\n'
const root = process.getuid?.() === 0

/** A driver whose guest is the tiny one, with its run root beside the worker's directories. */
function makeDriver(place: TestPlace): Driver {
  const bundle = join(place.root, 'guest.mjs')
  writeFileSync(bundle, TINY_GUEST, { mode: 0o600 })
  return createProcessDriver({ runRoot: runRootOf(place), user: testUser(), bundle })
}

function runRootOf(place: TestPlace): string {
  const runRoot = join(place.root, 'root')
  mkdirSync(runRoot, { recursive: true, mode: 0o711 })
  chmodSync(runRoot, 0o711)
  return runRoot
}

const notes = (place: TestPlace) => readdirSync(join(place.root, 'root', 'process', 'workers'))

/** True while a process runs; one that waits to be reaped does not. */
function runs(pid: number): boolean {
  try {
    return !/^State:\s+[ZX]/m.test(readFileSync(`/proc/${pid}/status`, 'utf8'))
  } catch {
    return false
  }
}

async function heard<T>(place: TestPlace, worker: Worker): Promise<T> {
  const silent = worker.exited.then((exit) => expect.fail(`${JSON.stringify(exit)} ${worker.output()}`))
  return (await Promise.race([place.report(), silent])) as T
}

describe('process driver', () => {
  test('decision 26: says that it is no sandbox, and is exempt from posture', async () => {
    await using place = await testPlace(STAYS)
    await using driver = makeDriver(place)
    expect([driver.kind, driver.isolation]).toEqual(['process', 'none'])
    expect(driver.verify({} as never)).toEqual([])
  })

  test('decision 25: the guest gets its two paths, no environment, the worker account, its output is kept', async () => {
    await using place = await testPlace(`
      console.log('to stdout'); console.error('to stderr')
      await guest.report({
        arguments: process.argv.slice(2), environment: Object.keys(process.env),
        uid: process.getuid(), gid: process.getgid(), groups: process.getgroups().filter((group) => group !== process.getgid()),
      })
    `)
    await using driver = makeDriver(place)
    await driver.check()
    const worker = await driver.start(place.spec)
    const { runDir, workspaceDir } = place.spec
    const { uid, gid } = testUser()
    expect(await heard(place, worker)).toEqual({
      arguments: ['--socket', join(runDir, 'worker.sock'), '--workspace', workspaceDir],
      environment: [],
      uid,
      gid,
      groups: root ? [] : process.getgroups?.().filter((group) => group !== gid),
    })
    expect(await worker.exited).toEqual({ code: 0, reason: 'exited' })
    expect(worker.output()).toContain('to stdout\n')
    expect(worker.output()).toContain('to stderr\n')
    await worker.remove()
    expect(notes(place)).toEqual([])
  })

  test('remove() kills a guest that ignores SIGTERM, and its children', async () => {
    await using place = await testPlace(`
      import { spawn } from 'node:child_process'
      process.on('SIGTERM', () => {})
      const child = spawn('/bin/sleep', ['1000'], { stdio: 'ignore' })
      await guest.report({ pids: [process.pid, child.pid] })
      setInterval(() => {}, 1000)
    `)
    await using driver = makeDriver(place)
    const worker = await driver.start(place.spec)
    const { pids } = await heard<{ pids: number[] }>(place, worker)
    expect(pids.map(runs)).toEqual([true, true])
    await Promise.all([worker.remove(), worker.remove()])
    expect(pids.map(runs)).toEqual([false, false])
    expect(await worker.exited).toEqual({ signal: 'SIGKILL', reason: 'killed' })
    expect(notes(place)).toEqual([])
  })

  test('children that outlive the guest are gone after remove()', async () => {
    await using place = await testPlace(`
      import { spawn } from 'node:child_process'
      const child = spawn('/bin/sleep', ['1000'], { stdio: 'inherit' })
      await guest.report({ pid: child.pid })
      process.exit(3)
    `)
    await using driver = makeDriver(place)
    const worker = await driver.start(place.spec)
    const { pid } = (await place.report()) as { pid: number }
    expect(await worker.exited).toEqual({ code: 3, reason: 'exited' })
    await worker.remove()
    expect(runs(pid)).toBe(false)
  })

  test('an abort before or during the start leaves nothing', async () => {
    await using place = await testPlace(STAYS)
    await using driver = makeDriver(place)
    await driver.check()
    const stop = new AbortController()
    const starting = driver.start(place.spec, stop.signal)
    stop.abort('enough')
    await expect(starting).rejects.toMatchObject({ code: 'aborted', cause: 'enough' })
    expect(notes(place)).toEqual([])
    await expect(driver.start(place.spec, stop.signal)).rejects.toMatchObject({ code: 'aborted' })
  })

  test('a second worker with the same id is refused, and the first one is left alone', async () => {
    await using place = await testPlace(STAYS)
    await using driver = makeDriver(place)
    const worker = await driver.start(place.spec)
    await heard(place, worker)
    await expect(driver.start(place.spec)).rejects.toMatchObject({ code: 'start_failed' })
    expect(runs(Number(worker.id))).toBe(true)
    expect(notes(place)).toEqual([`${worker.workerId}.json`])
    await worker.remove()
  })

  test('a sweep removes what a killed host left, and nothing that lives', async () => {
    await using place = await testPlace(STAYS)
    await using driver = makeDriver(place)
    const source = fileURLToPath(new URL('./process-driver.ts', import.meta.url))
    const program = `
      const { createProcessDriver } = await import(${JSON.stringify(source)})
      const options = ${JSON.stringify({ runRoot: runRootOf(place), user: testUser(), bundle: join(place.root, 'guest.mjs') })}
      await createProcessDriver(options).start(${JSON.stringify(place.spec)})
      process.kill(process.pid, 'SIGKILL')
    `
    const host = spawn(process.execPath, ['--conditions=@sandbox/source', '-e', program], {
      stdio: 'inherit',
    })
    const [[, signal], { pid }] = (await Promise.all([once(host, 'exit'), place.report()])) as [
      [null, string],
      { pid: number },
    ]
    expect(signal).toBe('SIGKILL')
    expect(runs(pid)).toBe(true)
    expect(await driver.sweep(new Set([place.spec.workerId]))).toEqual([])
    expect(runs(pid)).toBe(true)
    expect(await driver.sweep(new Set())).toEqual([place.spec.workerId])
    expect(runs(pid)).toBe(false)
    expect(await driver.sweep(new Set())).toEqual([])
  })

  test('a sweep never kills a process that only has the number of an old worker', async () => {
    await using place = await testPlace(STAYS)
    await using driver = makeDriver(place)
    await driver.check()
    const bystander = spawn('/bin/sleep', ['1000'], { detached: true, stdio: 'ignore' })
    const bootId = readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim()
    const note = (name: string, value: unknown) =>
      writeFileSync(join(place.root, 'root', 'process', 'workers', `${name}.json`), JSON.stringify(value))
    note('00000000000000aa', { pid: bystander.pid, startTime: '1', bootId })
    note('00000000000000bb', { pid: bystander.pid, startTime: '1', bootId: 'another boot' })
    note('00000000000000cc', 'nonsense')
    const swept = await driver.sweep(new Set())
    expect([...swept].sort()).toEqual(['00000000000000aa', '00000000000000bb', '00000000000000cc'])
    expect(runs(bystander.pid as number)).toBe(true)
    bystander.kill('SIGKILL')
  })

  test('a guest program that is not built is refused by check, with what to do', async () => {
    await using place = await testPlace(STAYS)
    const bundle = join(place.root, 'nothing.mjs')
    await using driver = createProcessDriver({ runRoot: runRootOf(place), user: testUser(), bundle })
    await expect(driver.check()).rejects.toMatchObject({
      code: 'bundle_missing',
      message: expect.stringContaining('pnpm run build:guest'),
    })
  })

  test('a runtime that is none is refused', async () => {
    await using place = await testPlace(STAYS)
    const runtime = join(place.root, 'nothing')
    const options = { runRoot: runRootOf(place), user: testUser(), runtime }
    await using driver = createProcessDriver(options)
    await expect(driver.check()).rejects.toMatchObject({ code: 'runtime_unsuitable' })
  })

  test('disposing the driver kills its workers', async () => {
    await using place = await testPlace(STAYS)
    const driver = makeDriver(place)
    const worker = await driver.start(place.spec)
    await heard(place, worker)
    await driver[Symbol.asyncDispose]()
    expect(runs(Number(worker.id))).toBe(false)
    await expect(driver.start(place.spec)).rejects.toMatchObject({ code: 'closed' })
  })

  test('decision 25: root has to name an account, anybody else cannot name another one', () => {
    const runRoot = '/srv/run'
    const user = root ? undefined : { uid: 64_201, gid: 64_201 }
    const options = { runRoot, ...(user === undefined ? {} : { user }) }
    expect(() => createProcessDriver(options)).toThrow(expect.objectContaining({ code: 'options_invalid' }))
    const zero = { runRoot, user: { uid: 0, gid: 0 } }
    expect(() => createProcessDriver(zero)).toThrow(expect.objectContaining({ code: 'options_invalid' }))
  })

  test.runIf(root)(
    'decision 25: a run root that the worker account cannot pass is refused by name',
    async () => {
      await using place = await testPlace(STAYS)
      await using driver = makeDriver(place)
      chmodSync(runRootOf(place), 0o700)
      await expect(driver.check()).rejects.toMatchObject({
        code: 'options_invalid',
        message: expect.stringContaining(`cannot pass ${join(place.root, 'root')}`),
      })
    },
  )
})
