import { randomBytes } from 'node:crypto'
import { chmodSync, chownSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import type { WorkerHello } from '@sandbox/protocol'
import { dockerGate } from '@sandbox/testing'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { runCommand } from '../src/command/run-command.ts'
import { connectEngine, type Engine } from '../src/host/container/docker-client.ts'
import { createDockerDriver } from '../src/host/docker-driver.ts'
import { buildImage } from '../src/host/image/build-image.ts'
import type { WorkerLimits } from '../src/options.ts'
import { probeProgram, probeResults } from '../src/testing/syscall-probe.ts'
import { ENGINE, tinyImage } from '../src/testing/tiny-image.ts'
import { testPlace, testUser } from '../src/testing/worker-bench.ts'
import { openWorkerHost } from '../src/testing/worker-host.ts'

const SEALED = `sandbox-test-sealed:${process.versions.bun ? 'bun' : 'node'}`

/** Wherever the engine was told of gVisor; "scripts/engine.sh" tells its own when runsc is installed. */
const runtimes = dockerGate() ? (await (await connectEngine(ENGINE)).info()).runtimes : []

const INSPECTS = `
import { spawnSync } from 'node:child_process'
import { closeSync, openSync, writeFileSync } from 'node:fs'
import { connect } from 'node:net'
const attempt = (action) => { try { action(); return 'done' } catch (error) { return error.code } }
const outside = () => new Promise((resolve) => {
  const socket = connect({ host: '192.0.2.1', port: 80 })
  socket.on('connect', () => resolve('connected')).on('error', (error) => resolve(error.code))
})
const { stdout } = spawnSync('/workspace/probe')
const open = []
const manyFiles = attempt(() => { for (;;) open.push(openSync('/proc/self/status', 'r')) })
for (const file of open) closeSync(file)
await guest.report({
  manyFiles,
  calls: stdout.toString('hex'),
  outside: await outside(),
  writeRoot: attempt(() => writeFileSync('/own', '')),
  writeRun: attempt(() => writeFileSync('/run/sandbox/own', '')),
  writeWorkspace: attempt(() => writeFileSync('/workspace/own', '')),
  executeTmp: attempt(() => {
    writeFileSync('/tmp/own', '')
    const { error } = spawnSync('/tmp/own')
    if (error) throw error
  }),
  fileSize: attempt(() => writeFileSync('/workspace/large', Buffer.alloc(2 ** 21))),
})
`

describe.skipIf(!runtimes.includes('runsc'))('gVisor', () => {
  const installId = `test-gvisor-${randomBytes(6).toString('hex')}`
  let engine: Engine
  let tiny: string
  beforeAll(async () => {
    engine = await connectEngine(ENGINE)
    tiny = await tinyImage()
    await buildImage({ tag: SEALED, engineSocket: ENGINE })
  })
  afterAll(async () => {
    expect(await engine.list(installId)).toEqual([])
  })

  const makeDriver = (image: string, limits: WorkerLimits = {}) =>
    createDockerDriver({ image, installId, user: testUser(), engineSocket: ENGINE, runtime: 'runsc', limits })

  test('a sealed turn: hello from inside every wall that gVisor shows, the turn, the result', async () => {
    await using host = await openWorkerHost({})
    await using place = await testPlace('')
    const runDir = dirname(host.socketPath)
    if (process.getuid?.() === 0) {
      const { uid, gid } = testUser()
      for (const path of [runDir, host.socketPath]) chownSync(path, uid, gid)
    }
    await using driver = makeDriver(SEALED)
    await driver.check()
    const worker = await driver.start({ ...place.spec, runDir })
    expect(await worker.exited, worker.output()).toEqual({ code: 0, reason: 'exited' })
    await worker.remove()
    const [hello] = host.bodies('/worker/hello') as unknown as WorkerHello[]
    expect(driver.verify((hello as WorkerHello).posture)).toEqual([])
    expect(host.outcome()).toEqual({ ok: true, text: 'Hi.' })
  })

  test('what its kernel keeps but does not show: no new privileges, no way out, limits of files', async () => {
    await using place = await testPlace(INSPECTS)
    const [PRCTL, GET_NO_NEW_PRIVS, SETUID] = [157, 39, 105]
    const probe = join(place.spec.workspaceDir, 'probe')
    writeFileSync(
      probe,
      probeProgram([
        [PRCTL, GET_NO_NEW_PRIVS, 0, 0, 0],
        [SETUID, 0],
      ]),
    )
    chmodSync(probe, 0o755)
    await using driver = makeDriver(tiny, { openFiles: 128, fileBytes: 2 ** 20 })
    const worker = await driver.start(place.spec)
    const silent = worker.exited.then((exit) => expect.fail(`${JSON.stringify(exit)} ${worker.output()}`))
    const told = (await Promise.race([place.report(), silent])) as Record<string, string>
    silent.catch(() => {})
    await worker.remove()
    if (process.arch === 'x64') expect(probeResults(Buffer.from(told.calls ?? '', 'hex'))).toEqual([1, -1])
    expect(told).toMatchObject({
      outside: expect.stringMatching(/^(ENETUNREACH|EHOSTUNREACH|ECONNREFUSED)$/),
      writeRoot: expect.stringMatching(/^(EROFS|EACCES)$/),
      writeRun: expect.stringMatching(/^(EROFS|EACCES)$/),
      writeWorkspace: 'done',
      executeTmp: 'EACCES',
      fileSize: 'EFBIG',
      manyFiles: 'EMFILE',
    })
  })

  test('a worker that stays is gone after remove(), and one that eats memory is killed', async () => {
    await using stays = await testPlace('await guest.report({ up: true })\nsetInterval(() => {}, 1000)\n')
    await using eats = await testPlace('const held = []\nfor (;;) held.push(Buffer.alloc(8 * 2 ** 20, 1))\n')
    await using driver = makeDriver(tiny, { memoryBytes: 160 * 2 ** 20 })
    const worker = await driver.start(stays.spec)
    await stays.report()
    await worker.remove()
    expect(await engine.state(worker.id)).toBeUndefined()
    const hungry = await driver.start(eats.spec)
    expect((await hungry.exited).reason).not.toBe('lost')
    expect(await hungry.exited).not.toMatchObject({ code: 0 })
    await hungry.remove()
  })

  test('doctor tries a worker in it, and says what gVisor answers for', async () => {
    const out: string[] = []
    const code = await runCommand(['doctor', '--image', SEALED, '--engine-runtime', 'runsc'], {
      env: { DOCKER_HOST: `unix://${ENGINE}` },
      signal: new AbortController().signal,
      out: (line) => out.push(line),
      progress: () => {},
      write: () => {},
    })
    expect(out.join('\n')).not.toContain('FAIL')
    expect(code).toBe(0)
    expect(out.join('\n')).toMatch(
      /^ok +system-calls +5\.22 +answered by gVisor, not by this kernel +seccomp 0$/m,
    )
  })
})
