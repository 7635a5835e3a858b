import { randomBytes } from 'node:crypto'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { dockerGate, tempDir } from '@sandbox/testing'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { connectEngine } from '../host/container/docker-client.ts'
import { removeContainer } from '../host/container/reconcile.ts'
import { IMAGE_FILES } from '../host/container/sealed-spec.ts'
import { createDockerDriver } from '../host/docker-driver.ts'
import { buildImage } from '../host/image/build-image.ts'
import { ENGINE, tinyImage } from '../testing/tiny-image.ts'
import { testPlace, testUser } from '../testing/worker-bench.ts'
import { runCommand } from './run-command.ts'

interface Ran {
  readonly code: number
  readonly out: string
  readonly progress: string
  readonly stdout: string
  readonly stderr: string
}

async function command(args: readonly string[], signal = new AbortController().signal): Promise<Ran> {
  const lines = { out: [] as string[], progress: [] as string[] }
  const bytes: Record<number, Buffer[]> = { 1: [], 2: [] }
  const code = await runCommand(args, {
    env: { DOCKER_HOST: `unix://${ENGINE}` },
    signal,
    out: (line) => lines.out.push(line),
    progress: (line) => lines.progress.push(line),
    write: (stream, chunk) => bytes[stream]?.push(Buffer.from(chunk)),
  })
  const text = (stream: number) => Buffer.concat(bytes[stream] ?? []).toString('utf8')
  return {
    code,
    out: lines.out.join('\n'),
    progress: lines.progress.join('\n'),
    stdout: text(1),
    stderr: text(2),
  }
}

const INSTALL = `test-command-${randomBytes(4).toString('hex')}`
const SEALED = `sandbox-test-sealed:${process.versions.bun ? 'bun' : 'node'}`

describe.skipIf(!dockerGate())('sandbox-worker on a real engine', () => {
  let tiny: string
  beforeAll(async () => {
    tiny = await tinyImage()
    await buildImage({ tag: SEALED, engineSocket: ENGINE })
  })
  afterAll(async () => {
    const engine = await connectEngine(ENGINE)
    const left = await engine.list(INSTALL)
    await Promise.all(left.map(({ id }) => removeContainer(engine, id)))
    expect(left).toEqual([])
  })

  /** Runs JavaScript sealed, in the runtime of the tiny image. */
  async function sealed(source: string, more: readonly string[] = [], signal?: AbortSignal): Promise<Ran> {
    await using place = await testPlace('')
    const { runDir } = place.spec
    const options = ['--image', tiny, '--run-dir', runDir, '--install', INSTALL, ...more]
    const user = testUser()
    const account = ['--user', `${user.uid}:${user.gid}`]
    return await command(['run', ...options, ...account, '--', IMAGE_FILES.runtime, '-e', source], signal)
  }

  const idsOf = async () => (await (await connectEngine(ENGINE)).list()).map(({ installId }) => installId)

  test('T65 doctor shows every wall of a real worker, its item of the benchmark, and leaves nothing', async () => {
    const { code, out, progress } = await command(['doctor', '--image', SEALED])
    expect(`${out}${progress}`).not.toContain('FAIL')
    expect(code).toBe(0)
    for (const [id, cis] of Object.entries({
      account: '4.1',
      capabilities: '5.4',
      'no-new-privileges': '5.26',
      'system-calls': '5.22',
      network: '5.10',
      root: '5.13',
      mounts: '5.6',
      namespaces: '5.16',
      limits: '5.11',
      apparmor: '5.2',
      'own-limits': '5.11',
      sockets: '5.32',
    }))
      expect(out).toMatch(new RegExp(`^ok +${id} +${cis.replace('.', '\\.')}`, 'm'))
    expect(out).toMatch(/^ok +capabilities +\S+ \S+ +none +none$/m)
    expect(out).toMatch(/^ok +own-limits .*(memoryBytes 536870912, .*tmpBytes 67108864) +\1$/m)
    expect(out).toMatch(/^ok +sockets .* "\/run\/sandbox\/worker\.sock"$/m)
    expect((await idsOf()).filter((id) => id.startsWith('sandbox-doctor'))).toEqual([])
  })

  test('build says what it does, prints its result as text and as JSON, and has nothing to do a second time', async () => {
    using dir = tempDir()
    const bundle = join(dir.path, 'guest.mjs')
    writeFileSync(bundle, `console.log('${INSTALL}')`)
    const tag = `sandbox-test-command-build:${INSTALL}`
    const first = await command(['build', '--tag', tag, '--bundle', bundle, '--json'])
    expect(first.progress).toMatch(/^runtime .*\ncontent .*\nloading .*\nimage /)
    expect(first.code).toBe(0)
    const image = JSON.parse(first.out)
    expect(image).toMatchObject({ tag, built: true, contentHash: expect.stringMatching(/^[0-9a-f]{64}$/) })
    const second = await command(['build', '--tag', tag, '--bundle', bundle])
    expect(second).toMatchObject({ code: 0, out: `unchanged ${tag}` })
    expect(second.progress).toContain('is up to date')
    await (await connectEngine(ENGINE)).removeImage(image.id)
    const failed = await command(['build', '--tag', tag, '--runtime', '/bin/ls', '--json'])
    expect(failed.code).toBe(1)
    expect(JSON.parse(failed.out)).toMatchObject({ error: { code: 'runtime_unsuitable' } })
    expect(await command(['build', '--tag', '-x'])).toMatchObject({ code: 2 })
  })

  test('build --pi makes an image of the real agent, with the operator’s content in it', async () => {
    using dir = tempDir()
    writeFileSync(join(dir.path, 'index.mjs'), `export const workerContent = () => ({}) // ${INSTALL}`)
    const tag = `sandbox-test-command-pi:${INSTALL}`
    const built = await command(['build', '--pi', '--content', dir.path, '--tag', tag, '--json'])
    expect([built.code, built.progress]).toEqual([0, expect.stringMatching(/^content .* MiB$/m)])
    const image = JSON.parse(built.out)
    expect(image).toMatchObject({ tag, built: true })
    const options = { image: tag, user: testUser(), engineSocket: ENGINE, installId: INSTALL }
    await using driver = createDockerDriver({ ...options, guest: 'pi' })
    await driver.check()
    await using sealedDriver = createDockerDriver(options)
    await expect(sealedDriver.check()).rejects.toThrow(/holds the guest pi/)
    await (await connectEngine(ENGINE)).removeImage(image.id)
  })

  test('sweep removes what an install left and no other container', async () => {
    await using place = await testPlace('await guest.report(1); setInterval(() => {}, 1000)')
    const options = { image: tiny, user: testUser(), engineSocket: ENGINE }
    await using driver = createDockerDriver({ ...options, installId: `${INSTALL}-sweep` })
    await using other = createDockerDriver({ ...options, installId: `${INSTALL}-other` })
    await driver.start(place.spec)
    const stays = await other.start({ ...place.spec, workerId: randomBytes(8).toString('hex') })
    const args = ['sweep', '--install', `${INSTALL}-sweep`]
    expect(await command([...args, '--json'])).toMatchObject({
      code: 0,
      out: JSON.stringify({ removed: [place.spec.workerId] }),
    })
    expect(await command(args)).toMatchObject({ code: 0, out: 'removed 0' })
    expect(await (await connectEngine(ENGINE)).state(stays.id)).toMatchObject({ running: true })
  })

  test('doctor says what is wrong with a worker that says something else than hello', async () => {
    const { code, out } = await command(['doctor', '--image', tiny, '--json'])
    expect(code).toBe(1)
    const { ok, findings } = JSON.parse(out)
    expect(ok).toBe(false)
    expect(findings.at(-1)).toMatchObject({ id: 'worker', ok: false, code: 'start_failed' })
    expect((await idsOf()).filter((id) => id.startsWith('sandbox-doctor'))).toEqual([])
  })

  test('run passes output and exit code on, and the program sits behind every wall', async () => {
    const source = `
      const fs = require('node:fs')
      const status = fs.readFileSync('/proc/self/status', 'utf8')
      const attempt = (path) => { try { fs.writeFileSync(path, ''); return 'done' } catch (error) { return error.code } }
      console.log(JSON.stringify({
        devices: fs.readFileSync('/proc/net/dev', 'utf8').trim().split('\\n').length - 2,
        caps: /CapBnd:\\s*(\\S+)/.exec(status)[1],
        seccomp: /Seccomp:\\s*(\\d)/.exec(status)[1],
        cwd: process.cwd(), root: attempt('/own'), run: attempt('/run/sandbox/own'), work: attempt('/workspace/own'),
        socket: fs.statSync('/run/sandbox/worker.sock').isSocket(),
      }))
      console.error('to stderr')
      process.exitCode = 7`
    const { code, stdout, stderr, progress } = await sealed(source)
    expect(progress).toBe('')
    expect(code).toBe(7)
    expect(stderr).toBe('to stderr\n')
    expect(JSON.parse(stdout)).toEqual({
      devices: 1,
      caps: '0'.repeat(16),
      seccomp: '2',
      cwd: '/workspace',
      root: 'EROFS',
      run: 'EROFS',
      work: 'done',
      socket: true,
    })
  })

  test('run removes a program whose time is over: exit code 124', async () => {
    const { code, progress } = await sealed('setInterval(() => {}, 1000)', ['--timeout', '1'])
    expect(progress).toContain('worker_deadline')
    expect(code).toBe(124)
  })

  test('T63 run says what a program died of', async () => {
    const eats = 'const held = []; for (;;) held.push(Buffer.alloc(8 * 2 ** 20, 1))'
    expect(await sealed(eats, ['--memory', '64'])).toMatchObject({
      code: 137,
      progress: expect.stringContaining('worker_out_of_memory'),
    })
    expect(await sealed(`process.kill(process.pid, 'SIGKILL')`)).toMatchObject({
      code: 137,
      progress: expect.stringContaining('likely memory'),
    })
    expect(await sealed(`process.kill(process.pid, 'SIGTERM')`)).toMatchObject({
      code: 143,
      progress: expect.stringContaining('worker_killed'),
    })
  })

  test('T63 run says that a program met its limit of processes', async () => {
    const forks = `
      const { spawn } = require('node:child_process')
      for (let n = 0; n < 200; n++) spawn(process.execPath, ['-e', 'setTimeout(() => {}, 60000)']).on('error', () => {})
      setInterval(() => {}, 1000)`
    const { code, progress } = await sealed(forks, ['--pids', '24', '--timeout', '4'])
    // Bun aborts where Node is told EAGAIN.
    const bun = process.versions.bun !== undefined
    expect(progress).toMatch(bun ? /worker_(pid_limit|killed)/ : /worker_pid_limit/)
    expect(bun ? [124, 134] : [124]).toContain(code)
  })

  test('run --json tells the end, with a tail of the output', async () => {
    const { code, out, stdout } = await sealed(`console.log('hello')`, ['--json'])
    expect(code).toBe(0)
    expect(stdout).toBe('')
    expect(JSON.parse(out)).toMatchObject({ code: 0, reason: 'exited', timedOut: false, output: 'hello\n' })
  })

  test('run that is called off leaves nothing: exit code 130', async () => {
    const stop = new AbortController()
    const running = sealed('setInterval(() => {}, 1000)', [], stop.signal)
    const engine = await connectEngine(ENGINE)
    const up = async () => (await engine.list(INSTALL)).some(({ state }) => state === 'running')
    await expect.poll(up, { timeout: 15_000 }).toBe(true)
    stop.abort('SIGINT')
    expect(await running).toMatchObject({ code: 130 })
    expect(await engine.list(INSTALL)).toEqual([])
  })

  test('run of an image that is not there is 125, of a program 127 as in a shell', async () => {
    const missing = ['run', '--image', 'sandbox-test-nothing:1', '--run-dir', '/tmp', '--', 'x']
    expect(await command(missing)).toMatchObject({
      code: 125,
      progress: expect.stringContaining('image_missing'),
    })
    await using place = await testPlace('')
    const { code, stderr } = await command([
      ...['run', '--image', tiny, '--run-dir', place.spec.runDir, '--install', INSTALL, '--', '/nothing'],
    ])
    expect(stderr).toContain('/nothing')
    expect(code).toBe(127)
  })

  test('run with a file for a directory is wrong usage, and says which', async () => {
    using dir = tempDir()
    const file = join(dir.path, 'file')
    writeFileSync(file, '')
    for (const [name, places] of Object.entries({
      '--run-dir': ['--run-dir', file],
      '--workspace': ['--run-dir', dir.path, '--workspace', file],
    })) {
      const { code, progress } = await command(['run', '--image', tiny, ...places, '--', '/x'])
      expect([code, progress]).toEqual([2, expect.stringContaining(`${name} is no directory: ${file}.`)])
    }
  })

  test('W-63 ps lists the workers of one install or of all, as text and as JSON', async () => {
    await using place = await testPlace('await guest.report(1); setInterval(() => {}, 1000)')
    const other = `${INSTALL}-ps`
    await using driver = createDockerDriver({
      image: tiny,
      installId: other,
      user: testUser(),
      engineSocket: ENGINE,
    })
    const worker = await driver.start(place.spec)
    const [image, settings] = (await driver.identity?.())?.split(' ') ?? []
    const { code, out } = await command(['ps', '--install', other, '--json'])
    expect(code).toBe(0)
    expect(JSON.parse(out).workers).toEqual([
      {
        id: worker.id,
        install: other,
        worker: place.spec.workerId,
        channelHash: place.spec.channelHash,
        image,
        settings,
        ageMs: expect.any(Number),
        state: 'running',
      },
    ])
    const line = new RegExp(`^${worker.id.slice(0, 12)} +${other} +${place.spec.workerId} .* running$`, 'm')
    expect((await command(['ps'])).out).toMatch(line)
    expect((await command(['ps', '--install', `${INSTALL}-none`, '--json'])).out).toBe('{"workers":[]}')
  })
})
