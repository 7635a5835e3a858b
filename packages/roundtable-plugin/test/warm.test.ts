import { mkdirSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Driver, WorkerSpec } from '@sandbox/docker-worker'
import { chatText, scriptedUpstream } from '@sandbox/testing'
import { expect, test, vi } from 'vitest'
import { SandboxRuntime } from '../src/defaults.ts'
import { SandboxPluginError } from '../src/errors.ts'
import type { ChannelKey } from '../src/host-contract.ts'
import { ownRoots, userOptions } from './account.ts'
import { startHost } from './killed-host.ts'
import { ann, type Kit, type KitOptions, kit, runDirs, workspaces } from './runtime-kit.ts'

const patient = { timeout: 20_000, interval: 5 }

/** A runtime whose workers wait, and the specs of all that were started. */
async function warmKit(options: KitOptions = {}): Promise<{ own: Kit; specs: WorkerSpec[] }> {
  const specs: WorkerSpec[] = []
  const own = await kit({
    ...options,
    wrap: (driver) => noting(options.wrap?.(driver) ?? driver, specs),
    runtime: { warm: {}, ...options.runtime },
  })
  return { own, specs }
}

function noting(driver: Driver, specs: WorkerSpec[]): Driver {
  return {
    kind: driver.kind,
    isolation: driver.isolation,
    check: (signal) => driver.check(signal),
    start: (spec, signal) => {
      specs.push(spec)
      return driver.start(spec, signal)
    },
    verify: (posture) => driver.verify(posture),
    sweep: (live) => driver.sweep(live),
    [Symbol.asyncDispose]: () => driver[Symbol.asyncDispose](),
  }
}

const warmed = (own: Kit, channel: ChannelKey) =>
  expect.poll(() => own.runtime.warmed(), patient).toContain(channel)

test('[worker:one-turn] a turn is handed to the worker that waits for it, and none serves twice', async () => {
  const { own, specs } = await warmKit()
  await using _own = own
  own.runtime.warm('fake:1')
  for (let turn = 0; turn < 4; turn += 1) {
    await warmed(own, 'fake:1')
    expect(await own.runtime.runTurn('fake:1', ann, `hello ${turn}`)).toEqual({ ok: true, text: 'hi' })
  }
  const bound = own.turns.filter(({ state }) => state === 'bound')
  expect(bound.map(({ warm }) => warm)).toEqual([true, true, true, true])
  expect(bound.map(({ workerId }) => workerId)).toEqual(specs.slice(0, 4).map(({ workerId }) => workerId))
  expect(new Set(bound.map(({ workerId }) => workerId)).size).toBe(4)
  // It sat on its socket before there was a turn, and history still goes on from turn to turn.
  expect(own.upstream.seen.at(-1)?.body).toContain('hello 2')
  expect(own.lines).toEqual([])
})

test('decision 7 a worker that waits does not touch the workspace', async () => {
  const { own } = await warmKit()
  await using _own = own
  own.runtime.warm('fake:1')
  await warmed(own, 'fake:1')
  const [workspace] = workspaces(own.roots.workspaceRoot)
  expect(readdirSync(join(own.roots.workspaceRoot, workspace ?? ''))).toEqual([])
})

test('[scope:own-key-only] a worker that waits has no key, and its turn spends that of its own speaker', async () => {
  const scopes: unknown[] = []
  const { own } = await warmKit({
    runtime: {
      apiKey: (scope) => {
        scopes.push(scope.speaker.id)
        return `sk-test-0123456789-${scope.speaker.id}`
      },
    },
  })
  await using _own = own
  own.runtime.warm('fake:1')
  await warmed(own, 'fake:1')
  expect(scopes).toEqual([])
  await own.runtime.runTurn('fake:1', ann, 'hello')
  await warmed(own, 'fake:1')
  await own.runtime.runTurn('fake:1', { id: 'u-bob', name: 'Bob' }, 'hello')
  expect(scopes).toEqual(['u-ann', 'u-bob'])
  expect(own.upstream.seen.map(({ headers }) => headers.authorization)).toEqual([
    'Bearer sk-test-0123456789-u-ann',
    'Bearer sk-test-0123456789-u-bob',
  ])
})

test('[turn:nonce-required] a program that calls before its turn is refused, spends nothing and asks for no key', async () => {
  let asked = 0
  const { own } = await warmKit({
    guest: `const n = await hello(); await spend({ nonce: 'x'.repeat(32) }, '/model', ask)
      await spend({ nonce: n }, '/model', ask)
      await post(n, await take(n), { ok: true, text: 'done' })`,
    runtime: { apiKey: () => `sk-test-0123456789-${++asked}` },
  })
  await using _own = own
  own.runtime.warm('fake:1')
  await expect.poll(() => own.calls.filter(({ route }) => route === 'model').length, patient).toBe(2)
  expect(await own.runtime.runTurn('fake:1', ann, 'hello')).toEqual({ ok: true, text: 'done' })
  expect(own.calls.filter(({ route }) => route === 'model').map(({ status }) => status)).toEqual([410, 410])
  expect([asked, own.upstream.seen]).toEqual([0, []])
})

test('[turn:own-result-only] a worker that said hello twice while it waited gets no turn', async () => {
  const { own, specs } = await warmKit({
    guest: `
      import { existsSync, writeFileSync } from 'node:fs'
      const mark = process.argv[process.argv.indexOf('--workspace') + 1] + '/second'
      const n = await hello()
      if (!existsSync(mark)) {
        writeFileSync(mark, '')
        await hello()
        setInterval(() => {}, 1000)
      } else await post(n, await take(n), { ok: true, text: 'from the second' })`,
  })
  await using _own = own
  own.runtime.warm('fake:1')
  await expect.poll(() => own.calls.map(({ reason }) => reason), patient).toContain('second_hello')
  expect(await own.runtime.runTurn('fake:1', ann, 'hello')).toEqual({ ok: true, text: 'from the second' })
  const bound = own.turns.find(({ state }) => state === 'bound')
  expect([bound?.warm, bound?.workerId]).toEqual([false, specs[1]?.workerId])
  expect(JSON.stringify(own.lines[0]?.fields.cause)).toMatch(/second_hello/)
})

test('T65 a worker that differs from its profile is not kept; that is logged, and tried again later', async () => {
  const { own, specs } = await warmKit({
    wrap: (driver) => ({ ...noting(driver, []), verify: () => ['It has the mount PAY-ME.'] }),
  })
  await using _own = own
  own.runtime.warm('fake:1')
  await expect.poll(() => own.lines.length, patient).toBe(1)
  expect(own.runtime.warmed()).toEqual([])
  expect(own.lines[0]).toMatchObject({
    level: 'warn',
    fields: { channel: 'fake:1', what: 'start_failed', failures: 1, retryMs: 1_000 },
  })
  expect(own.lines[0]?.fields.cause).toMatch(/differs from the profile in 1 points/)
  expect(JSON.stringify(own.lines)).not.toContain('PAY-ME')
  await expect.poll(() => specs.length, patient).toBe(2)
})

test('stop, off and dispose remove the worker that waits, with its directory', async () => {
  const { own } = await warmKit()
  await using _own = own
  own.runtime.warm('fake:1')
  own.runtime.warm('fake:2')
  await warmed(own, 'fake:1')
  await warmed(own, 'fake:2')
  expect(own.runDirs()).toHaveLength(2)
  expect(own.runtime.stop('fake:1')).toBe(false)
  await own.runtime.cool('fake:2')
  expect(own.runtime.warmed()).toEqual([])
  await expect.poll(() => own.runDirs(), patient).toEqual([])
  own.runtime.warm('fake:3')
  await warmed(own, 'fake:3')
  await own.runtime.dispose()
  expect([own.runtime.warmed(), own.runDirs(), workersOf(own.roots.runRoot)]).toEqual([[], [], []])
})

test('RL-14 a turn that is stopped leaves nothing, and no worker waits for the next until there was one', async () => {
  let seen = () => {}
  const asked = new Promise<void>((done) => (seen = done))
  const { own, specs } = await warmKit({
    script: () => {
      seen()
      return new Promise(() => {})
    },
  })
  await using _own = own
  own.runtime.warm('fake:1')
  await warmed(own, 'fake:1')
  const turn = own.runtime.runTurn('fake:1', ann, 'hello')
  await asked
  expect(own.runtime.stop('fake:1')).toBe(true)
  expect(await turn).toMatchObject({ ok: false, category: 'stopped' })
  await expect.poll(() => own.runDirs(), patient).toEqual([])
  expect([own.runtime.warmed(), workersOf(own.roots.runRoot)]).toEqual([[], []])
  own.upstream.script = () => chatText('hi')
  expect(await own.runtime.runTurn('fake:1', ann, 'hello')).toEqual({ ok: true, text: 'hi' })
  await warmed(own, 'fake:1')
  expect(specs.length).toBeGreaterThanOrEqual(3)
})

test('RL-12 starting over gives the next turn a worker that starts after it', async () => {
  const { own, specs } = await warmKit()
  await using _own = own
  own.runtime.warm('fake:1')
  await warmed(own, 'fake:1')
  own.runtime.startFresh('fake:1')
  expect(await own.runtime.runTurn('fake:1', ann, 'hello')).toEqual({ ok: true, text: 'hi' })
  const bound = own.turns.find(({ state }) => state === 'bound')
  expect(bound?.workerId).not.toBe(specs[0]?.workerId)
})

test('the sweep leaves a worker that waits alone', async () => {
  vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] })
  try {
    const { own, specs } = await warmKit()
    await using _own = own
    own.runtime.warm('fake:1')
    await warmed(own, 'fake:1')
    mkdirSync(join(own.roots.runRoot, '00000000-00000000'))
    vi.advanceTimersByTime(60_000)
    await vi.waitFor(() => expect(own.runDirs()).toHaveLength(1))
    expect(await own.runtime.runTurn('fake:1', ann, 'hello')).toEqual({ ok: true, text: 'hi' })
    const bound = own.turns.find(({ state }) => state === 'bound')
    expect([bound?.warm, bound?.workerId]).toEqual([true, specs[0]?.workerId])
  } finally {
    vi.useRealTimers()
  }
})

test('limits out of range are refused by name, and nothing is held', async () => {
  using roots = ownRoots()
  const options = {
    runRoot: roots.runRoot,
    workspaceRoot: roots.workspaceRoot,
    model: 'm',
    modelUrl: 'https://models.example/v1/chat/completions',
    apiKey: () => 'sk-test-0123456789abcdef',
    driver: 'process' as const,
    ...userOptions,
  }
  expect(() => new SandboxRuntime({ ...options, warm: { workers: -1 } })).toThrow(/^warm\.workers has to be/)
  const runtime = new SandboxRuntime(options)
  expect(() => runtime.warm('nonsense' as never)).toThrow(SandboxPluginError)
  await runtime.dispose()
})

test('50 turns in 5 channels leave nothing but the workers that wait, and dispose leaves none', async () => {
  const { own, specs } = await warmKit()
  await using _own = own
  const channels: ChannelKey[] = ['fake:1', 'fake:2', 'fake:3', 'fake:4', 'fake:5']
  await Promise.all(
    channels.map(async (channel) => {
      for (let turn = 0; turn < 10; turn += 1) await own.runtime.runTurn(channel, ann, `hello ${turn}`)
    }),
  )
  const bound = own.turns.filter(({ state }) => state === 'bound').map(({ workerId }) => workerId)
  expect([bound.length, new Set(bound).size]).toEqual([50, 50])
  expect(own.turns.filter(({ state, ok }) => state === 'settled' && ok)).toHaveLength(50)
  for (const channel of channels) await warmed(own, channel)
  expect(own.runDirs()).toHaveLength(5)
  expect(specs.length).toBeGreaterThanOrEqual(55)
  await own.runtime.dispose()
  expect([own.runDirs(), workersOf(own.roots.runRoot), own.lines]).toEqual([[], [], []])
}, 120_000)

test.skipIf(process.platform !== 'linux')(
  'T51 a host that is killed while workers wait and started again leaves nothing',
  async () => {
    using roots = ownRoots()
    await using upstream = await scriptedUpstream(() => chatText('hi'))
    const options = {
      runRoot: roots.runRoot,
      workspaceRoot: roots.workspaceRoot,
      model: 'm',
      modelUrl: `${upstream.url}/v1/chat/completions`,
      allowHttp: true,
      driver: 'process' as const,
      ...userOptions,
    }
    const host = startHost({ ...options, apiKey: 'sk-test-0123456789abcdef', keepWarm: ['fake:2', 'fake:3'] })
    await expect.poll(host.output, patient).toContain('warm')
    expect(runDirs(roots.runRoot).length).toBeGreaterThanOrEqual(2)
    host.child.kill('SIGKILL')
    await host.ended
    const runtime = new SandboxRuntime({ ...options, apiKey: () => 'sk-test-0123456789abcdef' })
    await runtime.start()
    expect([runDirs(roots.runRoot), workersOf(roots.runRoot)]).toEqual([[], []])
    await runtime.dispose()
  },
)

/** Command lines of processes that were started with a socket below a run root. */
function workersOf(runRoot: string): string[] {
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .map((pid) => {
      try {
        return readFileSync(`/proc/${pid}/cmdline`, 'utf8')
      } catch {
        return ''
      }
    })
    .filter((line) => line.includes(`${runRoot}/`) && line.includes('--socket'))
}
