import { randomBytes } from 'node:crypto'
import { chownSync, existsSync, mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { buildImage, createDockerDriver, createProcessDriver, type WorkerSpec } from '@sandbox/docker-worker'
import { dockerGate } from '@sandbox/testing'
import { describe, expect, test } from 'vitest'
import { type EarlierContainers, mindEarlierContainers } from '../src/runtime/earlier-containers.ts'
import { account, ownDir } from './account.ts'
import { containersOf, ENGINE } from './engine.ts'
import { guestProgram } from './guest-program.ts'

const IMAGE = `sandbox-test-sleeper:${process.versions.bun === undefined ? 'node' : 'bun'}`

const whereOf = (runRoot: string, installId: string): EarlierContainers => ({
  runRoot,
  installId,
  engineSocket: ENGINE,
  openContainers: (engineSocket) =>
    createDockerDriver({ image: 'none', installId, user: account, engineSocket }),
  openProcesses: () => createProcessDriver({ runRoot, user: account }),
})

describe.skipIf(!dockerGate())('containers of an earlier host', () => {
  test('T51 a host that goes on with plain processes sweeps what the last one left in containers', async () => {
    using dir = ownDir()
    await buildImage({
      tag: IMAGE,
      engineSocket: ENGINE,
      bundle: guestProgram(dir.path, 'setInterval(() => {}, 1000)'),
    })
    const installId = randomBytes(16).toString('hex')
    const [runRoot, runDir, workspaceDir] = ['r', 'r/1', 'w'].map((name) => join(dir.path, name)) as [
      string,
      string,
      string,
    ]
    for (const path of [runRoot, runDir, workspaceDir]) mkdirSync(path)
    const where = whereOf(runRoot, installId)
    const workerId = randomBytes(8).toString('hex')
    const spec: WorkerSpec = { workerId, channelHash: 'a'.repeat(64), epoch: '1', runDir, workspaceDir }
    // Nobody disposes of this one: its host is gone.
    const first = mindEarlierContainers(
      createDockerDriver({ image: IMAGE, installId, user: account, engineSocket: ENGINE }),
      where,
    )
    const worker = await first.start(spec)
    expect(await containersOf(installId)).toEqual([worker.id])
    await using second = mindEarlierContainers(createProcessDriver({ runRoot, user: account }), {
      ...where,
      engineSocket: '/nonexistent',
    })
    expect(await second.sweep(new Set())).toEqual([workerId])
    expect(await containersOf(installId)).toEqual([])
    expect(existsSync(join(runRoot, 'engine'))).toBe(false)
    expect(await second.sweep(new Set())).toEqual([])
    await first[Symbol.asyncDispose]()
  }, 60_000)

  test('T51 and a host that goes on in containers kills what the last one left as plain processes', async () => {
    using dir = ownDir()
    const [runRoot, runDir, workspaceDir] = ['r', 'r/1', 'w'].map((name) => join(dir.path, name)) as [
      string,
      string,
      string,
    ]
    for (const path of [runRoot, runDir, workspaceDir]) mkdirSync(path)
    if (process.geteuid?.() === 0) chownSync(workspaceDir, account.uid, account.gid)
    const up = join(workspaceDir, 'up')
    const says = `;(await import('node:fs')).writeFileSync('${up}', ''); setInterval(() => {}, 1000)`
    const bundle = guestProgram(dir.path, says)
    const installId = randomBytes(16).toString('hex')
    const where = whereOf(runRoot, installId)
    const workerId = randomBytes(8).toString('hex')
    const first = createProcessDriver({ runRoot, user: account, bundle })
    const spec: WorkerSpec = { workerId, channelHash: 'a'.repeat(64), epoch: '1', runDir, workspaceDir }
    const worker = await first.start(spec)
    await expect.poll(() => existsSync(up), { timeout: 20_000 }).toBe(true)
    await using second = mindEarlierContainers(
      createDockerDriver({ image: IMAGE, installId, user: account, engineSocket: ENGINE }),
      where,
    )
    expect(await second.sweep(new Set([workerId]))).toEqual([])
    expect(await second.sweep(new Set())).toEqual([workerId])
    expect((await worker.exited).reason).toBe('killed')
    expect(await second.sweep(new Set())).toEqual([])
  }, 60_000)
})
