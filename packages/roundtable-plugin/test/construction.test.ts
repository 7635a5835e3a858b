import { chmodSync, mkdirSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import type { HostTool } from '@sandbox/broker'
import { createProcessDriver } from '@sandbox/docker-worker'
import { expect, test } from 'vitest'
import { SandboxRuntime } from '../src/defaults.ts'
import type { SandboxRuntimeOptions } from '../src/options.ts'
import { ownRoots, userOptions } from './account.ts'

function options(
  roots: ReturnType<typeof ownRoots>,
  more: Partial<SandboxRuntimeOptions> = {},
): SandboxRuntimeOptions {
  return {
    runRoot: roots.runRoot,
    workspaceRoot: roots.workspaceRoot,
    model: 'm',
    modelUrl: 'https://models.example/v1/chat/completions',
    apiKey: () => 'sk-test-0123456789abcdef',
    driver: 'process',
    ...userOptions,
    ...more,
  }
}

const tool = (parts: Partial<HostTool> = {}): HostTool => ({
  name: 'look',
  description: 'Looks.',
  parameters: { type: 'object', properties: {} },
  execute: () => '',
  ...parts,
})

test('CS-17 RL-01 everything is checked at construction, and the key is not asked for', async () => {
  using roots = ownRoots()
  let asked = 0
  const apiKey = () => {
    asked += 1
    return 'sk-test-0123456789abcdef'
  }
  const runtime = new SandboxRuntime(options(roots, { apiKey, tools: [tool()] }))
  await runtime.start()
  await runtime.dispose()
  expect(asked).toBe(0)
})

test.each<[string, RegExp, Partial<SandboxRuntimeOptions>]>([
  ['a blank model', /^model: must name a model/, { model: ' ' }],
  ['a relative run root', /runRoot run is not absolute. Give the whole path/, { runRoot: 'run' }],
  [
    'a slip in the name of an option',
    /^turnTimeoutMS: there is no such option. The closest one is "turnTimeoutMs"/,
    { turnTimeoutMS: 5_000 } as never,
  ],
  ['an option of nothing', /^colour: there is no such option. Known are: image, /, { colour: 1 } as never],
  [
    'a slip in the name of a limit',
    /^limits.memory: there is no such option. The closest one is "limits.memoryBytes"/,
    { limits: { memory: 1 } as never },
  ],
  [
    'a slip in the name of a warm limit',
    /^warm.worker: .*The closest one is "warm.workers"/,
    { warm: { worker: 1 } as never },
  ],
  [
    'no run root',
    /^runRoot: must be the absolute path of a directory, and is undefined/,
    { runRoot: undefined as never },
  ],
  ['an unknown scheme', /modelUrl/, { modelUrl: 'ftp://models.example/v1' }],
  ['http to another machine', /modelUrl/, { modelUrl: 'http://models.example/v1', allowHttp: true }],
  ['http without the option', /modelUrl/, { modelUrl: 'http://127.0.0.1:9/v1' }],
  ['a key that is no function', /apiKey/, { apiKey: 'sk' as never }],
  ['a bad tool name', /tools/, { tools: [tool({ name: 'Bad-Name' })] }],
  ['two tools of one name', /tools/, { tools: [tool(), tool()] }],
  [
    'tools too large for a worker',
    /^tools: their descriptions are \d+ bytes/,
    { tools: [...'abcde'].map((name) => tool({ name, description: 'd'.repeat(8_000) })) },
  ],
  ['an unknown driver', /driver: must be "docker", "process" or a function/, { driver: 'podman' as never }],
  [
    'docker without an image',
    /image: must name the worker image. Build it with "sandbox-worker build"/,
    { driver: 'docker' },
  ],
])('RL-01 refused at construction: %s', async (_what, message, more) => {
  using roots = ownRoots()
  expect(() => new SandboxRuntime(options(roots, more))).toThrow(message)
  // Nothing is held after a refusal: the same roots can be used at once.
  await new SandboxRuntime(options(roots)).dispose()
})

test('[process:says-so] RL-01 docker is the default, and no engine means no start: never a plain process in its place', async () => {
  using roots = ownRoots()
  const { driver: _process, ...rest } = options(roots)
  const runtime = new SandboxRuntime({
    ...rest,
    image: 'sandbox-worker:none',
    engineSocket: join(roots.free, 'no.sock'),
  })
  expect(runtime.driver).toEqual({ kind: 'docker', isolation: 'container' })
  await expect(runtime.start()).rejects.toThrow(/no\.sock/)
  await runtime.dispose()
})

test('RL-04 a world-readable root is refused, with the command that mends it', () => {
  using roots = ownRoots()
  mkdirSync(roots.runRoot, { recursive: true })
  chmodSync(roots.runRoot, 0o755)
  expect(() => new SandboxRuntime(options(roots))).toThrow(/Run: ch(mod|own)/)
})

test.runIf(process.geteuid?.() === 0)('decision 25: a root host without uid and gid is refused', () => {
  using roots = ownRoots()
  const { uid: _uid, gid: _gid, ...rest } = options(roots)
  expect(() => new SandboxRuntime(rest)).toThrow(/runs as root.*name a uid and a gid/s)
})

test('one host per run root: a second runtime is refused until the first is disposed', async () => {
  using roots = ownRoots()
  const first = new SandboxRuntime(options(roots))
  expect(() => new SandboxRuntime(options(roots))).toThrow(/used by another host/)
  await first.dispose()
  await first.dispose()
  await new SandboxRuntime(options(roots)).dispose()
  expect(readdirSync(roots.runRoot).filter((name) => name.endsWith('.lock'))).toEqual([])
})

test('RL-02 the docker driver is refused where there is no Linux; a driver of the operator’s own is not', async () => {
  const real = process.platform
  Object.defineProperty(process, 'platform', { value: 'darwin' })
  try {
    using refused = ownRoots()
    expect(() => new SandboxRuntime(options(refused, { driver: 'docker', image: 'x' }))).toThrow(
      /needs Linux/,
    )
    using roots = ownRoots()
    const own = new SandboxRuntime(
      options(roots, { driver: ({ runRoot, user }) => createProcessDriver({ runRoot, user }) }),
    )
    await own.dispose()
  } finally {
    Object.defineProperty(process, 'platform', { value: real })
  }
})
