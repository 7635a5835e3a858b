import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { PROTOCOL_LABEL, PROTOCOL_VERSION } from '@sandbox/protocol'
import { tempDir } from '@sandbox/testing'
import { expect, test } from 'vitest'
import type { DockerDriverOptions } from '../options.ts'
import { scriptedEngine } from '../testing/scripted-engine.ts'
import { createDockerDriver } from './docker-driver.ts'
import type { WorkerSpec } from './driver.ts'
import { RUNTIME_LABEL } from './image/image-archive.ts'

const INFO = {
  OSType: 'linux',
  OperatingSystem: 'scripted',
  CgroupDriver: 'systemd',
  SecurityOptions: ['name=seccomp'],
  MemoryLimit: true,
  SwapLimit: true,
  PidsLimit: true,
  CpuCfsQuota: true,
}
const IMAGE = {
  Id: 'sha256:image',
  Config: { Labels: { [PROTOCOL_LABEL]: String(PROTOCOL_VERSION), [RUNTIME_LABEL]: 'node' } },
}

/** An engine that creates containers, cannot attach to them, and removes them when it is told to. */
async function stuckEngine() {
  const state = { stuck: true, created: 0 }
  const scripted = await scriptedEngine((call) => {
    if (call === 'GET /info') return { status: 200, body: INFO }
    if (call.startsWith('GET /images/')) return { status: 200, body: IMAGE }
    if (call === 'POST /containers/create') {
      state.created += 1
      return { status: 201, body: { Id: `container${state.created}` } }
    }
    return call.startsWith('DELETE ') ? { status: state.stuck ? 500 : 204 } : undefined
  })
  const actions = () => scripted.calls.filter((call) => /^DELETE|create$/.test(call)).map(short)
  return { ...scripted, state, actions }
}

const short = (call: string) => call.replace('/containers/', '').replace('POST ', '')

function specOf(root: string, workerId: string, channel: string): WorkerSpec {
  const [runDir, workspaceDir] = [join(root, workerId), join(root, channel)] as const
  for (const path of [runDir, workspaceDir]) mkdirSync(path, { recursive: true })
  return { workerId: workerId.repeat(16), channelHash: channel.repeat(64), epoch: 'e', runDir, workspaceDir }
}

const install = { image: 'i', installId: 'scripted-install', user: { uid: 1000, gid: 1000 } }

test('W-60 decision 7: after a start whose removal failed, the channel starts nothing before that container is gone', async () => {
  using dir = tempDir()
  await using engine = await stuckEngine()
  const driver = createDockerDriver({ ...install, engineSocket: engine.path })
  const thrice = ['DELETE container1', 'DELETE container1', 'DELETE container1']
  for (const workerId of ['1', '2']) {
    await expect(driver.start(specOf(dir.path, workerId, 'a'))).rejects.toMatchObject({
      code: 'remove_failed',
    })
  }
  expect(engine.actions()).toEqual(['create', ...thrice, ...thrice])
  engine.state.stuck = false
  await expect(driver.start(specOf(dir.path, '3', 'a'))).rejects.not.toMatchObject({ code: 'remove_failed' })
  expect(engine.actions().slice(7)).toEqual(['DELETE container1', 'create', 'DELETE container2'])
  await expect(driver.start(specOf(dir.path, '4', 'a'))).rejects.toThrow()
  expect(engine.actions().slice(10)).toEqual(['create', 'DELETE container3'])
  await driver[Symbol.asyncDispose]()
})

test('W-60 another channel does not wait for it, and the driver does not end without it', async () => {
  using dir = tempDir()
  await using engine = await stuckEngine()
  const driver = createDockerDriver({ ...install, engineSocket: engine.path })
  await expect(driver.start(specOf(dir.path, '1', 'a'))).rejects.toThrow('container1')
  await expect(driver.start(specOf(dir.path, '2', 'b'))).rejects.toThrow('container2')
  await expect(driver[Symbol.asyncDispose]()).rejects.toMatchObject({ code: 'remove_failed' })
  engine.state.stuck = false
  await driver[Symbol.asyncDispose]()
  expect(engine.actions().slice(-2)).toEqual(['DELETE container1', 'DELETE container2'])
})

test('W-63 what a worker would be started from changes with the id of the image and with every setting of the container', async () => {
  let image = IMAGE
  await using scripted = await scriptedEngine((call) => {
    if (call === 'GET /info') return { status: 200, body: { ...INFO, Runtimes: { runc: {}, runsc: {} } } }
    return call.startsWith('GET /images/') ? { status: 200, body: image } : undefined
  })
  const identityOf = async (more: Partial<DockerDriverOptions>) => {
    await using driver = createDockerDriver({ ...install, engineSocket: scripted.path, ...more })
    return driver.identity?.() ?? ''
  }
  const first = await identityOf({})
  expect(first).toMatch(/^sha256:image [0-9a-f]{64}$/)
  expect(await identityOf({ installId: 'another-install', image: 'other-name' })).toBe(first)
  const others = await Promise.all([
    identityOf({ limits: { pids: 65 } }),
    identityOf({ limits: { memoryBytes: 2 ** 30 } }),
    identityOf({ user: { uid: 1000, gid: 1001 } }),
    identityOf({ runtime: 'runsc' }),
    identityOf({ network: 'loopback' }),
  ])
  expect(new Set([first, ...others]).size).toBe(6)
  await using driver = createDockerDriver({ ...install, engineSocket: scripted.path })
  expect(await driver.identity?.()).toBe(first)
  image = { ...IMAGE, Id: 'sha256:rebuilt' }
  expect(await driver.identity?.()).toBe(first.replace('sha256:image', 'sha256:rebuilt'))
})
