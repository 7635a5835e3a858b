import { buildImage, createDockerDriver, type Worker } from '@sandbox/docker-worker'
import { chatText, dockerGate, scriptedUpstream } from '@sandbox/testing'
import { beforeAll, describe, expect, test } from 'vitest'
import { SandboxRuntime } from '../src/defaults.ts'
import type { ChannelKey } from '../src/host-contract.ts'
import type { SandboxRuntimeOptions } from '../src/options.ts'
import type { TurnEvent } from '../src/runtime/turn-state.ts'
import { ownRoots, userOptions } from './account.ts'
import { containersOf, ENGINE, engineGet } from './engine.ts'
import { startHost } from './killed-host.ts'
import { recordingLogger } from './messages.ts'
import { ann, runDirs, workspaces } from './runtime-kit.ts'

const IMAGE = `sandbox-test-plugin:${process.versions.bun === undefined ? 'node' : 'bun'}`
const KEY = 'sk-test-0123456789abcdef'
const patient = { timeout: 30_000, interval: 10 }

/** A runtime on the engine: its workers in the order of their starts, and its turns. */
function warmRuntime(
  roots: ReturnType<typeof ownRoots>,
  url: string,
  warm: NonNullable<SandboxRuntimeOptions['warm']> = {},
) {
  const workers: Worker[] = []
  const turns: TurnEvent[] = []
  const { logger, lines } = recordingLogger()
  let installId = ''
  const runtime = new SandboxRuntime({
    ...options(roots, url),
    apiKey: () => KEY,
    warm,
    logger,
    onTurn: (event) => turns.push(event),
    driver: (install) => {
      installId = install.installId
      const driver = createDockerDriver({ image: IMAGE, installId, user: install.user, engineSocket: ENGINE })
      const { start } = driver
      driver.start = async (spec, signal) => {
        const worker = await start.call(driver, spec, signal)
        workers.push(worker)
        return worker
      }
      return driver
    },
  })
  const warmed = (channel: ChannelKey) => expect.poll(() => runtime.warmed(), patient).toContain(channel)
  const served = () => turns.filter(({ state }) => state === 'bound')
  return { runtime, installId, workers, lines, warmed, served }
}

function options(roots: ReturnType<typeof ownRoots>, url: string) {
  return {
    image: IMAGE,
    engineSocket: ENGINE,
    runRoot: roots.runRoot,
    workspaceRoot: roots.workspaceRoot,
    model: 'm',
    modelUrl: `${url}/v1/chat/completions`,
    allowHttp: true,
    ...userOptions,
  }
}

describe.skipIf(!dockerGate())('workers that wait on a real engine', () => {
  beforeAll(async () => {
    await buildImage({ tag: IMAGE, engineSocket: ENGINE })
  }, 180_000)

  test('[worker:one-turn] T65 a turn is handed to the container that waits for it, which proved its walls before', async () => {
    using roots = ownRoots()
    await using upstream = await scriptedUpstream(() => chatText('hi'))
    const { runtime, installId, workers, warmed, served, lines } = warmRuntime(roots, upstream.url)
    runtime.warm('fake:1')
    for (let turn = 0; turn < 3; turn += 1) {
      await warmed('fake:1')
      expect(await runtime.runTurn('fake:1', ann, `hello ${turn}`)).toEqual({ ok: true, text: 'hi' })
    }
    await warmed('fake:1')
    expect(served().map(({ warm }) => warm)).toEqual([true, true, true])
    expect(served().map(({ workerId }) => workerId)).toEqual(
      workers.slice(0, 3).map(({ workerId }) => workerId),
    )
    expect(await containersOf(installId)).toEqual([workers[3]?.id])
    expect(lines).toEqual([])
    await runtime.dispose()
    expect([await containersOf(installId), runDirs(roots.runRoot)]).toEqual([[], []])
  }, 120_000)

  test('decision 7 RL-10 the container of the turn before is dead when the next turn is handed over', async () => {
    using roots = ownRoots()
    let before: Worker | undefined
    const states: unknown[] = []
    await using upstream = await scriptedUpstream(async () => {
      if (before) {
        const { status, body } = await engineGet(`/containers/${before.id}/json`)
        states.push(status === 404 || JSON.parse(body.toString()).State.Running === false)
      }
      return chatText('hi')
    })
    const { runtime, workers, warmed, served } = warmRuntime(roots, upstream.url)
    runtime.warm('fake:1')
    for (let turn = 0; turn < 4; turn += 1) {
      await warmed('fake:1')
      await runtime.runTurn('fake:1', ann, 'hello')
      before = workers.find(({ workerId }) => workerId === served().at(-1)?.workerId)
    }
    expect(states).toEqual([true, true, true])
    await runtime.dispose()
  }, 120_000)

  test('T49 a container that is killed while it waits is never used, and another waits in its place', async () => {
    using roots = ownRoots()
    await using upstream = await scriptedUpstream(() => chatText('hi'))
    const { runtime, workers, warmed, served, lines } = warmRuntime(roots, upstream.url)
    runtime.warm('fake:1')
    await warmed('fake:1')
    await workers[0]?.remove()
    expect(await runtime.runTurn('fake:1', ann, 'hello')).toEqual({ ok: true, text: 'hi' })
    expect(served()[0]?.workerId).not.toBe(workers[0]?.workerId)
    expect(lines).toMatchObject([{ level: 'warn', fields: { what: 'died', channel: 'fake:1' } }])
    await warmed('fake:1')
    await runtime.dispose()
  }, 120_000)

  test('[worker:removed-after-crash] T51 a host that is killed while workers wait and started again leaves nothing', async () => {
    using roots = ownRoots()
    await using upstream = await scriptedUpstream(() => chatText('hi'))
    const host = startHost({ ...options(roots, upstream.url), apiKey: KEY, keepWarm: ['fake:1', 'fake:2'] })
    await expect.poll(host.output, patient).toContain('warm')
    host.child.kill('SIGKILL')
    await host.ended
    const { runtime, installId } = warmRuntime(roots, upstream.url)
    expect(await containersOf(installId)).toHaveLength(2)
    await runtime.start()
    expect([await containersOf(installId), runDirs(roots.runRoot)]).toEqual([[], []])
    await runtime.dispose()
  }, 120_000)

  test('[worker:removed-after-turn] 50 turns in 5 channels: a container each, no more than the limit wait, and dispose leaves none', async () => {
    using roots = ownRoots()
    await using upstream = await scriptedUpstream(() => chatText('hi'))
    const { runtime, installId, served, lines } = warmRuntime(roots, upstream.url, { workers: 3 })
    const channels: ChannelKey[] = ['fake:1', 'fake:2', 'fake:3', 'fake:4', 'fake:5']
    const replies = await Promise.all(
      channels.map(async (channel) => {
        const own = []
        for (let turn = 0; turn < 10; turn += 1) own.push(await runtime.runTurn(channel, ann, 'hello'))
        return own
      }),
    )
    expect(replies.flat().filter(({ ok }) => ok)).toHaveLength(50)
    expect(new Set(served().map(({ workerId }) => workerId)).size).toBe(50)
    expect(served().some(({ warm }) => warm)).toBe(true)
    await expect.poll(() => runtime.warmed().length, patient).toBe(3)
    await expect.poll(async () => (await containersOf(installId)).length, patient).toBe(3)
    await expect.poll(() => runDirs(roots.runRoot).length, patient).toBe(3)
    await runtime.dispose()
    expect([await containersOf(installId), runDirs(roots.runRoot), lines]).toEqual([[], [], []])
    expect(workspaces(roots.workspaceRoot)).toHaveLength(5)
  }, 300_000)
})
