import { readdirSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { buildImage, createDockerDriver, type Driver } from '@sandbox/docker-worker'
import { chatText, dockerGate, scriptedUpstream } from '@sandbox/testing'
import { beforeAll, describe, expect, test } from 'vitest'
import { SandboxRuntime } from '../src/defaults.ts'
import { ownDir, ownRoots, userOptions } from './account.ts'
import { ENGINE } from './engine.ts'
import { guestProgram } from './guest-program.ts'
import { ann, runDirs, workspaces } from './runtime-kit.ts'

const IMAGE = `sandbox-test-filler:${process.versions.bun === undefined ? 'node' : 'bun'}`
const MIB = 2 ** 20

/** Plants what could harm whoever measures, then leaves two files of 1 MiB behind. */
const FILLS = `
  const { existsSync, mkdirSync, symlinkSync, writeFileSync } = await import('node:fs')
  const { createServer } = await import('node:net')
  const nonce = await hello()
  const turn = await take(nonce)
  if (!existsSync('/workspace/deep')) {
    mkdirSync('/workspace/deep')
    symlinkSync('/', '/workspace/deep/root')
    symlinkSync('..', '/workspace/deep/loop')
    await new Promise((done) => createServer().listen('/workspace/deep/socket', done))
    for (const name of ['one', 'two']) writeFileSync('/workspace/' + name, Buffer.alloc(${MIB}, 1))
  }
  await post(nonce, turn, { ok: true, text: 'done' })
`

describe.skipIf(!dockerGate())('workspaces of real containers', () => {
  beforeAll(async () => {
    using dir = ownDir()
    await buildImage({ tag: IMAGE, engineSocket: ENGINE, bundle: guestProgram(dir.path, FILLS) })
  }, 180_000)

  test('W-66 a container that fills its workspace is the last of its channel until there is less', async () => {
    await using upstream = await scriptedUpstream(() => chatText('hi'))
    using roots = ownRoots()
    await using runtime = new SandboxRuntime({
      image: IMAGE,
      engineSocket: ENGINE,
      runRoot: roots.runRoot,
      workspaceRoot: roots.workspaceRoot,
      model: 'm',
      modelUrl: `${upstream.url}/v1/chat/completions`,
      allowHttp: true,
      apiKey: () => 'sk-test-0123456789abcdef',
      warm: false,
      workspaceBytes: 2 * MIB,
      ...userOptions,
      driver: ({ installId, user }) => {
        const real = createDockerDriver({ image: IMAGE, installId, user, engineSocket: ENGINE })
        return lenient(real)
      },
    })
    expect(await runtime.runTurn('fake:1', ann, 'fill')).toEqual({ ok: true, text: 'done' })
    expect(await runtime.runTurn('fake:1', ann, 'again')).toMatchObject({ ok: false, category: 'workspace' })
    const [own = ''] = workspaces(roots.workspaceRoot)
    expect(readdirSync(join(roots.workspaceRoot, own)).sort()).toEqual(['deep', 'one', 'two'])
    rmSync(join(roots.workspaceRoot, own, 'one'))
    expect(await runtime.runTurn('fake:1', ann, 'again')).toEqual({ ok: true, text: 'done' })
    expect(runDirs(roots.runRoot)).toEqual([])
  })
})

/** The guest of this test does not examine itself. */
function lenient(driver: Driver): Driver {
  return {
    kind: driver.kind,
    isolation: driver.isolation,
    check: (signal) => driver.check(signal),
    start: (spec, signal) => driver.start(spec, signal),
    verify: () => [],
    sweep: (live) => driver.sweep(live),
    [Symbol.asyncDispose]: () => driver[Symbol.asyncDispose](),
  }
}
