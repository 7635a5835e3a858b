import { chownSync, mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { buildImage, createDockerDriver, type Driver, type Worker } from '@sandbox/docker-worker'
import { SandboxRuntime } from '@sandbox/roundtable-plugin'
import {
  canary,
  chatText,
  chatToolCalls,
  dockerGate,
  dockerSocket,
  encodingsOf,
  findSecret,
  type SeenRequest,
  scriptedUpstream,
  tempDir,
} from '@sandbox/testing'
import { beforeAll, describe, expect, test } from 'vitest'
import { EngineView, everyFile } from './support/engine-view.ts'
import { type RecordedSocket, recordSocket } from './support/recorded-socket.ts'

const ENGINE = dockerSocket() ?? '/nonexistent'
const IMAGE = `sandbox-test-canary:${process.versions.bun ? 'bun' : 'node'}`
const isRoot = process.geteuid?.() === 0
const account = isRoot
  ? { uid: 64_201, gid: 64_201 }
  : { uid: process.geteuid?.() ?? -1, gid: process.getegid?.() ?? -1 }
const channel = 'test:canary'
const ann = { id: 'u-ann', name: 'Ann' }

/** Whatever a container could read, and whatever the host wrote down, of all turns of a test. */
class Evidence {
  readonly towardsGuest: Buffer[] = []
  readonly hostOutput: string[] = []
  readonly sockets: RecordedSocket[] = []
  readonly workers: Worker[] = []

  guestBytes(): Buffer {
    return Buffer.concat([...this.towardsGuest, ...this.sockets.map((one) => one.bytes())])
  }
}

/** The real driver, with the worker’s socket recorded and its output kept. */
function watched(driver: Driver, away: string, evidence: Evidence): Driver {
  return {
    kind: driver.kind,
    isolation: driver.isolation,
    check: (signal) => driver.check(signal),
    verify: (posture) => driver.verify(posture),
    sweep: (live) => driver.sweep(live),
    [Symbol.asyncDispose]: () => driver[Symbol.asyncDispose](),
    start: async (spec, signal) => {
      evidence.sockets.push(await recordSocket(join(spec.runDir, 'worker.sock'), away, account))
      const worker = await driver.start(spec, signal)
      evidence.workers.push(worker)
      return worker
    },
  }
}

/** `warm`: a next worker is made ahead of its turn, as is the default. */
async function stand(key: string, script: (call: number, seen: SeenRequest) => unknown, warm = false) {
  const dir = tempDir()
  if (isRoot) chownSync(dir.path, account.uid, account.gid)
  const away = join(dir.path, 'a')
  mkdirSync(away)
  const view = new EngineView(ENGINE)
  const evidence = new Evidence()
  let installId = ''
  const upstream = await scriptedUpstream(async (seen) => {
    for (const id of await view.containers(installId)) {
      const files = await Promise.all(
        ['/etc', '/run', '/tmp', '/workspace'].map((path) => view.files(id, path)),
      )
      const told = [await view.inspect(id), await view.processes(id)].map((text) => Buffer.from(text))
      evidence.towardsGuest.push(...files, ...told)
    }
    return script(upstream.seen.length, seen)
  })
  const note = (what: unknown) => {
    evidence.hostOutput.push(JSON.stringify(what))
  }
  const log = (...words: unknown[]) => note(words)
  const runtime = new SandboxRuntime({
    runRoot: join(dir.path, 'r'),
    workspaceRoot: join(dir.path, 'w'),
    model: 'm',
    modelUrl: `${upstream.url}/v1/chat/completions`,
    allowHttp: true,
    ...(warm ? {} : { warm: false as const }),
    apiKey: () => key,
    tools: [
      {
        name: 'blab',
        description: 'Says what it should not.',
        parameters: { type: 'object' },
        execute: () => `the key is ${Buffer.from(`Bearer ${key}`).toString('base64')}`,
      },
    ],
    ...(isRoot ? account : {}),
    driver: (install) => {
      installId = install.installId
      const { user } = install
      return watched(
        createDockerDriver({ image: IMAGE, engineSocket: ENGINE, installId, user }),
        away,
        evidence,
      )
    },
    onCall: note,
    onTurn: note,
    logger: { info: log, warn: log, error: log },
  })
  return {
    runtime,
    evidence,
    upstream,
    view,
    installId: () => installId,
    workspaces: () => everyFile(join(dir.path, 'w')),
    [Symbol.asyncDispose]: async () => {
      await runtime.dispose()
      for (const socket of evidence.sockets) await socket[Symbol.asyncDispose]()
      await upstream[Symbol.asyncDispose]()
      dir[Symbol.dispose]()
    },
  }
}

describe.skipIf(!dockerGate())('a canary key in real containers', () => {
  beforeAll(async () => {
    await buildImage({ tag: IMAGE, engineSocket: ENGINE })
  })

  test('a turn with tool and model calls: the key pays, and is nowhere else [secret:not-in-guest-bytes] [secret:not-in-host-output] [worker:removed-after-turn]', async () => {
    const key = canary()
    await using own = await stand(key, (call) =>
      call === 1 ? chatToolCalls([{ name: 'host_blab', input: {} }]) : chatText('nothing to see'),
    )
    const reply = await own.runtime.runTurn(channel, ann, 'tell me a MARKER-IN-THE-TURN')
    expect(reply).toEqual({ ok: true, text: 'nothing to see' })

    // It was used, or there would be nothing to find.
    expect(own.upstream.seen.map((seen) => seen.headers.authorization)).toEqual([
      `Bearer ${key}`,
      `Bearer ${key}`,
    ])
    // What was recorded is what the container got: the turn, the refused tool answer, the last answer.
    const bytes = own.evidence.guestBytes()
    for (const text of ['MARKER-IN-THE-TURN', 'nothing to see', '"HOME=/tmp"', 'sandbox.worker']) {
      expect(bytes.includes(text), text).toBe(true)
    }
    expect(own.evidence.towardsGuest.length).toBeGreaterThan(0)
    expect(findSecret(bytes, key)).toEqual([])
    expect(findSecret(own.workspaces(), key)).toEqual([])

    const output = [...own.evidence.hostOutput, ...own.evidence.workers.map((worker) => worker.output())]
    expect(output.join('\n')).toContain('reflection')
    expect(findSecret(output.join('\n'), key)).toEqual([])

    expect(await own.view.containers(own.installId())).toEqual([])
  })

  test('an upstream that gives the key away, in six encodings, is not heard [secret:not-in-guest-bytes] [reflect:stopped]', async () => {
    const key = canary()
    const spelled = new Map([
      ...encodingsOf(key),
      ['base64', Buffer.from(Buffer.from(`x${key}`).toString('base64'))],
    ])
    const forms = ['raw', 'percent', 'hex', 'base64', 'json-unicode', 'html']
    const giveAway = (call: number) =>
      chatText(`it is ${spelled.get(forms[call - 1] ?? '')} MARKER-OF-THE-UPSTREAM`)
    await using own = await stand(key, giveAway, true)
    for (const name of forms) {
      const reply = await own.runtime.runTurn(channel, ann, `say it, ${name}`)
      expect(reply, name).toMatchObject({ ok: false })
    }
    const bytes = own.evidence.guestBytes()
    expect(bytes.includes('MARKER-OF-THE-UPSTREAM')).toBe(false)
    expect(findSecret(bytes, key)).toEqual([])
    expect(findSecret(own.evidence.hostOutput.join('\n'), key)).toEqual([])
    await own.runtime.dispose()
    expect(await own.view.containers(own.installId())).toEqual([])
  })

  test('each turn has a container of its own, and none is left [worker:one-turn] [worker:removed-after-turn]', async () => {
    await using own = await stand(canary(), () => chatText('hi'))
    for (const text of ['one', 'two', 'three']) await own.runtime.runTurn(channel, ann, text)
    const ids = own.evidence.workers.map((worker) => worker.id)
    expect(new Set(ids).size).toBe(3)
    for (const id of ids) expect(await own.view.has(id)).toBe(false)
    expect(await own.view.containers(own.installId())).toEqual([])
  })
})
