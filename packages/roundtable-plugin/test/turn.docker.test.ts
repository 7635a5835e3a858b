import { readdirSync, readFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { buildImage, createDockerDriver, type Driver } from '@sandbox/docker-worker'
import {
  canary,
  chatText,
  chatToolCalls,
  dockerGate,
  findSecret,
  type SeenRequest,
  scriptedUpstream,
} from '@sandbox/testing'
import { beforeAll, describe, expect, test } from 'vitest'
import { SandboxRuntime } from '../src/defaults.ts'
import type { ChannelKey } from '../src/host-contract.ts'
import type { SandboxRuntimeOptions } from '../src/options.ts'
import { ownDir, ownRoots, userOptions } from './account.ts'
import { containersOf, ENGINE, engineGet } from './engine.ts'
import { guestProgram } from './guest-program.ts'
import { startHost } from './killed-host.ts'
import { recordingLogger } from './messages.ts'
import { ann, bob, runDirs, workspaces } from './runtime-kit.ts'
import { type TappedDriver, tap } from './tapped-driver.ts'

const runtimeName = process.versions.bun === undefined ? 'node' : 'bun'
const IMAGE = `sandbox-test-plugin:${runtimeName}`
const STUBBORN = `sandbox-test-stubborn:${runtimeName}`
const KEY = 'sk-test-0123456789abcdef'

/** Runs with the options of an install, and tells which id the install has. */
function options(roots: ReturnType<typeof ownRoots>, url: string, more: Partial<SandboxRuntimeOptions> = {}) {
  return {
    image: IMAGE,
    engineSocket: ENGINE,
    runRoot: roots.runRoot,
    workspaceRoot: roots.workspaceRoot,
    model: 'm',
    modelUrl: `${url}/v1/chat/completions`,
    allowHttp: true,
    warm: false as const,
    ...userOptions,
    ...more,
  }
}

type Wrap = (driver: Driver) => Driver

/** A runtime on the real engine whose install id is known. */
function runtimeOn(
  roots: ReturnType<typeof ownRoots>,
  url: string,
  more: Partial<SandboxRuntimeOptions> = {},
  wrap: Wrap = (driver) => driver,
) {
  let installId = ''
  const runtime = new SandboxRuntime({
    apiKey: () => KEY,
    ...options(roots, url, more),
    driver: (install) => {
      installId = install.installId
      const image = more.image ?? IMAGE
      return wrap(createDockerDriver({ image, installId, user: install.user, engineSocket: ENGINE }))
    },
  })
  return { runtime, installId }
}

describe.skipIf(!dockerGate())('sealed turns on a real engine', () => {
  beforeAll(async () => {
    using dir = ownDir()
    await buildImage({ tag: IMAGE, engineSocket: ENGINE })
    const bundle = guestProgram(
      dir.path,
      `for (const signal of ['SIGTERM', 'SIGINT', 'SIGHUP', 'SIGQUIT']) process.on(signal, () => {})
       const nonce = await hello(); await take(nonce); setInterval(() => {}, 1000)`,
    )
    await buildImage({ tag: STUBBORN, engineSocket: ENGINE, bundle })
  }, 180_000)

  test('the docker driver is wired as the options say, and its image is looked for at start', async () => {
    using roots = ownRoots()
    await using upstream = await scriptedUpstream(() => chatText('hi'))
    const runtime = new SandboxRuntime({ apiKey: () => KEY, ...options(roots, upstream.url) })
    expect(await runtime.runTurn('fake:1', ann, 'hello')).toEqual({ ok: true, text: 'hi' })
    await runtime.dispose()
    const missing = new SandboxRuntime({
      apiKey: () => KEY,
      ...options(roots, upstream.url, { image: 'sandbox-test-none:latest' }),
    })
    await expect(missing.start()).rejects.toThrow(/sandbox-worker build/)
    await missing.dispose()
  }, 60_000)

  test('[worker:removed-after-turn] [worker:one-turn] [worker:workspace-of-channel] 50 turns in 5 channels: a container each, and nothing is left', async () => {
    using roots = ownRoots()
    const ids = new Set<string>()
    await using upstream = await scriptedUpstream((seen) => chatText(`for ${askedBy(seen)}`))
    const { runtime, installId } = runtimeOn(roots, upstream.url, {}, (driver) => ({
      ...bindAll(driver),
      start: async (spec, signal) => {
        const worker = await driver.start(spec, signal)
        ids.add(worker.id)
        return worker
      },
    }))
    const channels: ChannelKey[] = ['fake:1', 'fake:2', 'fake:3', 'fake:4', 'fake:5']
    for (let round = 0; round < 10; round += 1) {
      const replies = await Promise.all(
        channels.map((channel) => runtime.runTurn(channel, ann, `${channel} ${round}`)),
      )
      expect(replies).toEqual(channels.map((channel) => ({ ok: true, text: `for ${channel} ${round}` })))
    }
    expect(ids.size).toBe(50)
    expect(await containersOf(installId)).toEqual([])
    expect(runDirs(roots.runRoot)).toEqual([])
    expect(workspaces(roots.workspaceRoot)).toHaveLength(5)
    for (const { body } of upstream.seen) expect(channelsIn(body)).toHaveLength(1)
    await runtime.dispose()
  }, 300_000)

  test('[worker:removed-after-abort] a cancelled turn leaves nothing', async () => {
    using roots = ownRoots()
    let seen = () => {}
    const asked = new Promise<void>((done) => (seen = done))
    await using upstream = await scriptedUpstream(() => {
      seen()
      return new Promise(() => {})
    })
    const { runtime, installId } = runtimeOn(roots, upstream.url)
    const turn = runtime.runTurn('fake:1', ann, 'hello')
    await asked
    expect(await containersOf(installId)).toHaveLength(1)
    expect(runtime.stop('fake:1')).toBe(true)
    expect(await turn).toMatchObject({ ok: false, category: 'stopped' })
    expect([await containersOf(installId), runDirs(roots.runRoot)]).toEqual([[], []])
    await runtime.dispose()
  }, 60_000)

  test('[worker:removed-after-abort] T49 a turn over its deadline leaves nothing, although its guest ignores every signal it can', async () => {
    using roots = ownRoots()
    await using upstream = await scriptedUpstream(() => chatText('hi'))
    const more = { image: STUBBORN, turnTimeoutMs: 4_000 }
    // Its report of itself is made up, so it would get no turn; here the deadline is what is tried.
    const believe: Wrap = (driver) => ({ ...bindAll(driver), verify: () => [] })
    const { runtime, installId } = runtimeOn(roots, upstream.url, more, believe)
    await runtime.start()
    expect(await runtime.runTurn('fake:1', ann, 'hello')).toMatchObject({ ok: false, category: 'timeout' })
    expect([await containersOf(installId), runDirs(roots.runRoot)]).toEqual([[], []])
    await runtime.dispose()
  }, 60_000)

  test('T65 a guest whose report of itself does not fit the profile gets no turn, and is removed', async () => {
    using roots = ownRoots()
    await using upstream = await scriptedUpstream(() => chatText('hi'))
    const { logger, lines } = recordingLogger()
    const { runtime, installId } = runtimeOn(roots, upstream.url, { image: STUBBORN, logger })
    expect(await runtime.runTurn('fake:1', ann, 'hello')).toMatchObject({ ok: false, category: 'container' })
    expect(lines.find(({ level }) => level === 'error')?.fields.cause).toMatch(
      /differs from the profile in \d+ points/,
    )
    expect([await containersOf(installId), runDirs(roots.runRoot)]).toEqual([[], []])
    await runtime.dispose()
  }, 60_000)

  test('[worker:removed-after-crash] T51 a host that is killed in mid-turn and started again leaves nothing', async () => {
    using roots = ownRoots()
    let seen = () => {}
    const asked = new Promise<void>((done) => (seen = done))
    await using upstream = await scriptedUpstream(() => {
      seen()
      return new Promise(() => {})
    })
    const host = startHost({ ...options(roots, upstream.url), apiKey: KEY })
    await asked
    host.child.kill('SIGKILL')
    await host.ended
    expect(runDirs(roots.runRoot)).toHaveLength(1)
    upstream.script = () => chatText('hi')
    const { runtime, installId } = runtimeOn(roots, upstream.url)
    expect(await containersOf(installId)).toHaveLength(1)
    await runtime.start()
    expect([await containersOf(installId), runDirs(roots.runRoot)]).toEqual([[], []])
    expect(await runtime.runTurn('fake:1', ann, 'hello')).toEqual({ ok: true, text: 'hi' })
    await runtime.dispose()
  }, 60_000)

  test('[secret:not-in-guest-bytes] [secret:not-in-host-output] T31 no byte that reached a container, and no line of the host, holds the key in any encoding', async () => {
    using roots = ownRoots()
    using taps = ownDir()
    const secret = canary()
    const seenInside: Buffer[] = []
    let tapped: TappedDriver | undefined
    const told: unknown[] = []
    const { logger, lines } = recordingLogger()
    await using upstream = await scriptedUpstream(async ({ body, headers }, response) => {
      seenInside.push(...(await inspectAll(tapped)))
      if (body.includes('echo refused'))
        return void response.writeHead(401).end(JSON.stringify({ error: headers }))
      if (body.includes('echo')) return chatText(`your key is ${headers.authorization}`)
      if (body.includes('"role":"tool"')) return chatText('done')
      return chatToolCalls([{ name: 'memory_set', input: { scope: 'speaker', key: 'k', text: 'v' } }])
    })
    const { runtime } = runtimeOn(
      roots,
      upstream.url,
      {
        apiKey: () => secret,
        logger,
        onCall: (event) => told.push(event),
        onTurn: (event) => told.push(event),
      },
      (driver) => {
        tapped = tap(driver, taps.path)
        return tapped
      },
    )
    expect(await runtime.runTurn('fake:1', ann, 'hello')).toEqual({ ok: true, text: 'done' })
    expect(await runtime.runTurn('fake:2', ann, 'please echo')).toMatchObject({ ok: false })
    expect(await runtime.runTurn('fake:3', bob, 'echo refused')).toMatchObject({
      ok: false,
      category: 'credential',
    })
    await runtime.dispose()

    expect(upstream.seen.every(({ headers }) => headers.authorization === `Bearer ${secret}`)).toBe(true)
    const traffic = Buffer.concat([...(tapped?.inward ?? []), ...(tapped?.outward ?? [])])
    // The tap works: the placeholder is in it, and so is what was said.
    expect(traffic.includes('sandbox-dummy-key') && traffic.includes('done')).toBe(true)
    expect(seenInside.length).toBeGreaterThanOrEqual(12)
    const captured = {
      traffic,
      inside: Buffer.concat(seenInside),
      workspaces: filesBelow(roots.workspaceRoot),
      outputs: (tapped?.outputs ?? []).join('\n'),
      host: JSON.stringify([lines, told]),
    }
    expect(captured.workspaces.length).toBeGreaterThan(0)
    for (const [where, bytes] of Object.entries(captured))
      expect([where, findSecret(bytes, secret)]).toEqual([where, []])
    rmSync(taps.path, { recursive: true, force: true })
  }, 120_000)
})

/** What the engine knows of the running worker, labels and environment included, and its writable files. */
async function inspectAll(tapped: TappedDriver | undefined): Promise<Buffer[]> {
  const id = tapped?.last?.id
  if (id === undefined) return []
  const paths = ['json', 'logs?stdout=1&stderr=1', 'archive?path=/tmp', 'archive?path=/run/sandbox']
  const answers = await Promise.all(paths.map((path) => engineGet(`/containers/${id}/${path}`)))
  expect(answers[0]?.status).toBe(200)
  return answers.map(({ body }) => body)
}

function filesBelow(directory: string): Buffer {
  const files = readdirSync(directory, { recursive: true, withFileTypes: true }).filter((entry) =>
    entry.isFile(),
  )
  return Buffer.concat(files.map((entry) => readFileSync(join(entry.parentPath, entry.name))))
}

/** The newest message of a model call. */
function askedBy({ body }: SeenRequest): string {
  const messages = (JSON.parse(body) as { messages: { role: string; content: string }[] }).messages
  const last = messages.filter(({ role }) => role === 'user').at(-1)?.content ?? '{}'
  return (JSON.parse(last) as { message: string }).message
}

/** The channels whose messages a model call carries, history included. */
function channelsIn(body: string): string[] {
  return [...new Set([...body.matchAll(/fake:\d/g)].map(([channel]) => channel))]
}

function bindAll(driver: Driver): Driver {
  return {
    kind: driver.kind,
    isolation: driver.isolation,
    check: (signal) => driver.check(signal),
    start: (spec, signal) => driver.start(spec, signal),
    verify: (posture) => driver.verify(posture),
    sweep: (live) => driver.sweep(live),
    [Symbol.asyncDispose]: () => driver[Symbol.asyncDispose](),
  }
}
