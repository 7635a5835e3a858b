import { randomBytes } from 'node:crypto'
import { rmSync } from 'node:fs'
import { setTimeout as pause } from 'node:timers/promises'
import { isWorkerHello, type WorkerHello } from '@sandbox/protocol'
import { dockerGate } from '@sandbox/testing'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { DriverError, type DriverErrorCode } from '../errors.ts'
import type { WorkerLimits } from '../options.ts'
import { ENGINE, tinyImage } from '../testing/tiny-image.ts'
import { type TestPlace, testPlace, testUser } from '../testing/worker-bench.ts'
import { connectEngine, type Engine } from './container/docker-client.ts'
import { removeContainer } from './container/reconcile.ts'
import { sealedName } from './container/sealed-spec.ts'
import { createDockerDriver } from './docker-driver.ts'
import type { Driver, Worker } from './driver.ts'
import { buildImage } from './image/build-image.ts'

const STAYS = 'await guest.report({ up: true })\nsetInterval(() => {}, 1000)\n'
const INSPECTS = `
import { readFileSync, readdirSync, writeFileSync } from 'node:fs'
import { copyFileSync } from 'node:fs'
import { spawnSync } from 'node:child_process'
import { createSocket } from 'node:dgram'
import { createServer } from 'node:net'
import { networkInterfaces } from 'node:os'
const read = (path) => readFileSync(path, 'utf8')
const attempt = (action) => { try { action(); return 'done' } catch (error) { return error.code } }
const listen = (where) => new Promise((resolve) => {
  const server = createServer().on('error', (error) => resolve(\`refused \${error.code}\`))
  server.listen(where, () => server.close(() => resolve('done')))
})
const datagram = () => new Promise((resolve) => {
  const refused = (error) => resolve(\`refused \${error.code}\`)
  try {
    createSocket('udp4').on('error', refused).bind(0, '127.0.0.1', () => resolve('done'))
  } catch (error) { refused(error) }
})
const loader = /\\S*\\/ld-\\S*/.exec(read('/proc/self/maps'))[0]
const execute = (path) => {
  try {
    copyFileSync(loader, path)
    return spawnSync(path, ['--version']).error?.code ?? 'done'
  } catch (error) { return error.code }
}
await guest.report({
  status: read('/proc/self/status'),
  mounts: read('/proc/self/mountinfo').trim().split('\\n').map((line) => line.split(' ')[4]),
  devices: read('/proc/net/dev').trim().split('\\n').slice(2).map((line) => line.split(':')[0].trim()),
  routes: read('/proc/net/route').trim().split('\\n').length - 1,
  environment: Object.keys(process.env).sort(),
  init: read('/proc/1/comm').trim(),
  udp: await datagram(),
  netlink: attempt(() => networkInterfaces()) === 'done' ? 'done' : 'refused',
  executeTmp: execute('/tmp/program'),
  executeWorkspace: execute('/workspace/program'),
  tcp: await listen({ host: '127.0.0.1', port: 0 }),
  unix: await listen('/tmp/own.sock'),
  writeRoot: attempt(() => writeFileSync('/own', '')),
  writeRun: attempt(() => writeFileSync('/run/sandbox/own', '')),
  writeWorkspace: attempt(() => writeFileSync('/workspace/own', '')),
  writeTmp: attempt(() => writeFileSync('/tmp/own', '')),
  shm: attempt(() => readdirSync('/dev/shm')),
})
`

const PODMAN_MOUNTS = [
  ...['/etc/group', '/etc/hosts', '/etc/passwd'],
  ...['/run', '/run/podman-init', '/var/tmp'],
]

/** The next report of a worker; its output when it ends without one. */
async function heard(place: TestPlace, worker: Worker): Promise<unknown> {
  const silent = worker.exited.then((exit) => expect.fail(`${JSON.stringify(exit)} ${worker.output()}`))
  return Promise.race([place.report(), silent])
}

/** The same suite for every engine: Podman's is a service that root runs, and another one than the common engine. */
const PODMAN = process.env.SANDBOX_PODMAN_SOCKET
const ENGINES = [
  ...(dockerGate() ? [{ name: 'a real engine', socket: ENGINE, podman: false }] : []),
  ...(PODMAN === undefined ? [] : [{ name: 'Podman', socket: PODMAN, podman: true }]),
]

describe.each(ENGINES)('docker driver on $name', ({ socket, podman }) => {
  let image: string
  let engine: Engine
  const installs: string[] = []

  beforeAll(async () => {
    image = await tinyImage(socket)
    engine = await connectEngine(socket)
  })
  afterAll(async () => {
    const left = await Promise.all(installs.map((install) => engine.list(install)))
    await Promise.all(left.flat().map(({ id }) => removeContainer(engine, id)))
    expect(left.flat()).toEqual([])
  })

  function makeDriver(more: { installId?: string; image?: string; limits?: WorkerLimits } = {}): Driver {
    const installId = more.installId ?? `test-${randomBytes(6).toString('hex')}`
    installs.push(installId)
    return createDockerDriver({ image, user: testUser(), engineSocket: socket, ...more, installId })
  }

  const lastInstall = () => installs.at(-1) as string

  test('a cold worker says hello, its output is kept, and removal leaves nothing', async () => {
    await using place = await testPlace(
      `console.log('to stdout'); console.error('to stderr'); await guest.report({ hello: 1 })`,
    )
    await using driver = makeDriver()
    await driver.check()
    const worker = await driver.start(place.spec)
    expect(await heard(place, worker)).toEqual({ hello: 1 })
    expect(await worker.exited).toEqual({ code: 0, reason: 'exited' })
    expect(worker.output()).toContain('to stdout\n')
    expect(worker.output()).toContain('to stderr\n')
    await worker.remove()
    expect(await engine.state(worker.id)).toBeUndefined()
    expect(await engine.list(lastInstall())).toEqual([])
  })

  test('DD-05..DD-09 W-66 seen from inside [container:no-network] [container:no-privilege] [container:read-only-root] [container:two-directories] [container:empty-environment]', async () => {
    await using place = await testPlace(INSPECTS)
    await using driver = makeDriver()
    const worker = await driver.start(place.spec)
    const seen = (await heard(place, worker)) as Record<string, unknown> & {
      status: string
      mounts: string[]
    }
    await worker.remove()
    const line = (name: string) => new RegExp(`^${name}:\\s*(.*?)\\s*$`, 'm').exec(seen.status)?.[1]
    const { uid, gid } = testUser()
    const none = '0'.repeat(16)
    const status = ['CapInh', 'CapPrm', 'CapEff', 'CapBnd', 'CapAmb', 'NoNewPrivs', 'Seccomp'].map(line)
    expect(status).toEqual([none, none, none, none, none, '1', '2'])
    expect(line('Uid')).toBe([uid, uid, uid, uid].join('\t'))
    expect(line('Gid')).toBe([gid, gid, gid, gid].join('\t'))
    expect(line('Groups')).toMatch(new RegExp(`^(${gid})?$`))
    const kernel = /^\/(proc|sys|dev)(\/|$)/
    expect(seen.mounts.filter((target) => !kernel.test(target)).sort()).toEqual(
      [
        ...['/', '/etc/hostname', '/run/sandbox', '/tmp', '/workspace'],
        ...(podman ? PODMAN_MOUNTS : ['/sbin/docker-init']),
      ].sort(),
    )
    expect(seen).toMatchObject({
      devices: ['lo'],
      routes: 0,
      environment: ['HOME', 'HOSTNAME', 'PATH', ...(podman ? ['TERM', 'container'] : [])],
      init: podman ? 'podman-init' : 'docker-init',
      udp: expect.stringMatching(/^refused/),
      netlink: 'refused',
      executeTmp: 'EACCES',
      executeWorkspace: 'done',
      tcp: expect.stringMatching(/^refused/),
      unix: 'done',
      writeRoot: 'EROFS',
      writeRun: 'EROFS',
      writeWorkspace: 'done',
      writeTmp: 'done',
      shm: 'ENOENT',
    })
  })

  test('T65 the guest of this package finds itself inside the profile', async () => {
    const tag = `sandbox-test-sealed:${process.versions.bun ? 'bun' : 'node'}`
    await buildImage({ tag, engineSocket: socket })
    await using place = await testPlace('')
    await using driver = makeDriver({ image: tag })
    const worker = await driver.start(place.spec)
    const hello = await heard(place, worker)
    await worker.remove()
    expect(isWorkerHello(hello)).toBe(true)
    expect(driver.verify((hello as WorkerHello).posture)).toEqual([])
    const elsewhere = createDockerDriver({
      image: tag,
      installId: lastInstall(),
      user: { uid: 1, gid: 1 },
      engineSocket: socket,
    })
    // Which engine it is, and so what its workers may have, is known once it was looked at.
    await elsewhere.check()
    expect(elsewhere.verify((hello as WorkerHello).posture)).toHaveLength(
      testUser().gid === 1 ? 1 : 2 + Number((hello as WorkerHello).posture.groups.length > 0),
    )
  })

  test('DD-09 a read-only workspace cannot be written', async () => {
    await using place = await testPlace(INSPECTS)
    await using driver = makeDriver()
    const worker = await driver.start({ ...place.spec, workspaceReadOnly: true })
    expect(await heard(place, worker)).toMatchObject({ writeWorkspace: 'EROFS' })
    await worker.remove()
  })

  test('DD-12 a guest that ignores SIGTERM is gone after remove()', async () => {
    const ignores = `for (const name of ['SIGTERM', 'SIGINT', 'SIGHUP']) process.on(name, () => {})\n${STAYS}`
    await using place = await testPlace(ignores)
    await using driver = makeDriver()
    const worker = await driver.start(place.spec)
    await heard(place, worker)
    await worker.remove()
    expect(await engine.state(worker.id)).toBeUndefined()
    expect(await worker.exited).toMatchObject({ reason: 'killed' })
  })

  test('W-62 a guest that floods its output is removed, and only a tail is kept', async () => {
    const floods = `await guest.report({ up: true })\nconst line = 'x'.repeat(65536)\nfor (;;) console.log(line)\n`
    await using place = await testPlace(floods)
    await using driver = makeDriver()
    const worker = await driver.start(place.spec)
    await heard(place, worker)
    await pause(200)
    await worker.remove()
    expect(await engine.state(worker.id)).toBeUndefined()
    expect(worker.output().length).toBeGreaterThan(60_000)
    expect(worker.output().length).toBeLessThan(66_000)
  })

  test('T63 memory over the limit ends with reason oom, in the worker and in its child', async () => {
    const eats = 'const held = []\nfor (;;) held.push(Buffer.alloc(8 * 2 ** 20, 1))\n'
    const child = `
      import { spawnSync } from 'node:child_process'
      spawnSync(process.execPath, ['-e', ${JSON.stringify(eats)}])
    `
    await using driver = makeDriver({ limits: { memoryBytes: 96 * 2 ** 20 } })
    // Podman does not tell who was out of memory: the end of a worker is a kill that nobody sent, a child's is unseen.
    for (const program of podman ? [eats] : [eats, child]) {
      await using place = await testPlace(program)
      const worker = await driver.start(place.spec)
      const told = podman ? { reason: 'killed', limit: 'memory_likely' } : { reason: 'oom' }
      expect(await worker.exited).toMatchObject(told)
      await worker.remove()
    }
  })

  test('T58 output and exit of a container that ends at once are never lost', async () => {
    await using place = await testPlace(`console.log('short'); process.exit(7)`)
    await using driver = makeDriver()
    for (let run = 0; run < 5; run++) {
      const workerId = randomBytes(8).toString('hex')
      const worker = await driver.start({ ...place.spec, workerId })
      expect(await worker.exited).toEqual({ code: 7, reason: 'exited' })
      expect(worker.output()).toBe('short\n')
      await worker.remove()
    }
  })

  test('W-60 an abort at any moment of a start leaves nothing', async () => {
    await using place = await testPlace(STAYS)
    await using driver = makeDriver()
    await driver.check()
    for (const delayMs of [0, 2, 5, 10, 20, 40, 60, 80]) {
      const stop = new AbortController()
      const workerId = randomBytes(8).toString('hex')
      const starting = driver.start({ ...place.spec, workerId }, stop.signal)
      const timer = setTimeout(() => stop.abort('enough'), delayMs)
      const outcome = await starting.then(
        (worker) => ({ worker, late: stop.signal.aborted }),
        (error: unknown) => ({ error, late: true }),
      )
      clearTimeout(timer)
      // Once aborted, a start never succeeds: it was over before, or it is refused.
      if (outcome.late) expect(outcome).toMatchObject({ error: { code: 'aborted', cause: 'enough' } })
      else if ('worker' in outcome) await outcome.worker.remove()
      expect(await engine.list(lastInstall())).toEqual([])
    }
    const before = driver.start(place.spec, AbortSignal.abort('never'))
    await expect(before).rejects.toMatchObject({ code: 'aborted' })
  })

  test('W-65 a second worker with the same id is refused, and the first one is left alone', async () => {
    await using place = await testPlace(STAYS)
    await using driver = makeDriver()
    const first = await driver.start(place.spec)
    await expect(driver.start(place.spec)).rejects.toMatchObject({ code: 'start_failed' })
    expect((await engine.list(lastInstall())).map(({ id }) => id)).toEqual([first.id])
    await first.remove()
  })

  test('a missing image is refused by check and by start, with the command that mends it', async () => {
    await using place = await testPlace(STAYS)
    await using driver = makeDriver({ image: 'sandbox-test-nothing:1' })
    const refused = {
      code: 'image_missing',
      message: expect.stringContaining('"sandbox-worker build --tag sandbox-test-nothing:1"'),
    }
    await expect(driver.check()).rejects.toMatchObject(refused)
    await expect(driver.start(place.spec)).rejects.toMatchObject(refused)
  })

  test('a run directory that is not there is refused and not created', async () => {
    await using place = await testPlace(STAYS)
    rmSync(place.spec.runDir, { recursive: true })
    await using driver = makeDriver()
    await expect(driver.start(place.spec)).rejects.toMatchObject({ code: 'spec_invalid' })
  })

  test('DD-13 removals of one container at the same time all succeed', async () => {
    await using place = await testPlace(STAYS)
    await using driver = makeDriver()
    const worker = await driver.start(place.spec)
    await heard(place, worker)
    const others = [removeContainer(engine, worker.id), removeContainer(engine, worker.id)]
    await Promise.all([worker.remove(), worker.remove(), ...others])
    expect(await engine.state(worker.id)).toBeUndefined()
    expect(await worker.exited).toMatchObject({ reason: 'killed' })
    await worker.remove()
  })

  test('T50 a sweep touches only its own install, and no live worker', async () => {
    await using first = await testPlace(STAYS)
    await using second = await testPlace(STAYS)
    await using third = await testPlace(STAYS)
    await using ours = makeDriver()
    await using theirs = makeDriver()
    const live = await ours.start(first.spec)
    const left = await ours.start(second.spec)
    const foreign = await theirs.start(third.spec)
    expect(await ours.sweep(new Set([live.workerId]))).toEqual([left.workerId])
    expect(await engine.state(left.id)).toBeUndefined()
    expect(await engine.state(live.id)).toMatchObject({ running: true })
    expect(await engine.state(foreign.id)).toMatchObject({ running: true })
    expect(await ours.sweep(new Set())).toEqual([live.workerId])
    expect(await left.exited).toMatchObject({ reason: 'killed' })
  })

  test('the name is set before create, and two installs with equal worker ids do not share one', async () => {
    await using place = await testPlace(STAYS)
    await using driver = makeDriver()
    const worker = await driver.start(place.spec)
    const name = sealedName(lastInstall(), place.spec.workerId)
    expect(await engine.state(name)).toMatchObject({ running: true })
    await using other = makeDriver()
    await using elsewhere = await testPlace(STAYS)
    await other.start({ ...elsewhere.spec, workerId: place.spec.workerId })
    await worker.remove()
    expect(await engine.list(lastInstall())).toHaveLength(1)
  })

  test('a worker that starts while its driver is disposed does not stay', async () => {
    await using place = await testPlace(STAYS)
    const driver = makeDriver()
    await driver.check()
    const starting = driver.start(place.spec)
    await driver[Symbol.asyncDispose]()
    const worker = await starting
    expect(await engine.state(worker.id)).toBeUndefined()
    expect(await engine.list(lastInstall())).toEqual([])
  })

  test('disposing a driver removes its workers, and it starts no more', async () => {
    await using place = await testPlace(STAYS)
    const driver = makeDriver()
    const worker = await driver.start(place.spec)
    await driver[Symbol.asyncDispose]()
    expect(await engine.state(worker.id)).toBeUndefined()
    const closed: DriverErrorCode = 'closed'
    await expect(driver.start(place.spec)).rejects.toMatchObject({ code: closed })
    expect(DriverError.isInstance(await driver.check().catch((error: unknown) => error))).toBe(true)
  })
})
