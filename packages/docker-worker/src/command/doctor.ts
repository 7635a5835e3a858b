import { randomBytes } from 'node:crypto'
import { setTimeout as pause } from 'node:timers/promises'
import { PROTOCOL_VERSION, protocolMismatch, type WorkerHello } from '@sandbox/protocol'
import { DriverError, type DriverErrorCode, stopIfAborted } from '../errors.ts'
import {
  connectEngine,
  type Engine,
  type EngineInfo,
  type EngineKind,
} from '../host/container/docker-client.ts'
import { exitFailure } from '../host/container/exit-failure.ts'
import { createDockerDriver } from '../host/docker-driver.ts'
import type { Worker } from '../host/driver.ts'
import {
  type EngineFinding,
  engineFindings,
  guestOf,
  imageFindings,
  runtimeFinding,
} from '../host/engine-check.ts'
import { hostNamespaces, type SealedCheck, sealedChecks } from '../host/self-test.ts'
import type { DockerDriverOptions, WorkerGuest, WorkerRuntime, WorkerUser } from '../options.ts'
import { type ResolvedDockerOptions, resolveDockerOptions } from '../resolve-options.ts'
import { listenForHello } from './hello-listener.ts'

/** One thing that was looked at. */
export interface DoctorRow {
  readonly id: string
  readonly ok: boolean
  /** Items of the CIS Docker Benchmark 1.6.0; empty where there is none. */
  readonly cis: string
  readonly expected: string
  readonly found: string
  /** What to do. Absent when it is ok. */
  readonly mend?: string
  /** The error that a driver would throw for it. Absent when it is ok. */
  readonly code?: DriverErrorCode
}

/** What {@link doctor} needs. */
export interface DoctorRequest {
  readonly socket: string
  readonly image: string
  readonly user: WorkerUser
  /** Whose walls are tried. Absent for the engine's own. */
  readonly runtime?: WorkerRuntime
  readonly signal: AbortSignal
  progress(line: string): void
}

/** How long a worker may take to say hello. */
const HELLO_MS = 30_000

/** What has to be, and the benchmark's items, for each finding about an engine or an image. */
const ENGINE_ROWS: Readonly<Record<string, readonly [cis: string, expected: string]>> = {
  engine: ['', 'Docker 20.10 or later on a local socket'],
  linux: ['', 'a Linux engine on this machine'],
  seccomp: ['2.17', 'system call filters'],
  'same-ids': ['2.1 2.9', 'uids inside are uids outside'],
  limits: ['5.11 5.12 5.29', 'memory, swap, processes and CPU limited'],
  image: ['', 'on the engine'],
  protocol: ['', `protocol ${PROTOCOL_VERSION}`],
  runtime: ['', 'the engine knows the runtime'],
  content: ['4.10', 'a known runtime, nothing of its own'],
}

/**
 * Looks at an engine and an image the way a driver does, then starts one worker and compares what it finds inside with
 * the profile. Leaves nothing behind. Rejects only when it was called off or what it started could not be removed.
 */
export async function doctor(request: DoctorRequest): Promise<readonly DoctorRow[]> {
  const { socket, image, signal } = request
  let engine: Engine
  let info: EngineInfo
  try {
    engine = await connectEngine(socket)
    info = await engine.info()
  } catch (error) {
    if (!DriverError.isInstance(error)) throw error
    return [engineRow({ id: 'engine', code: error.code, ok: false, detail: error.message })]
  }
  stopIfAborted(signal)
  const held = await engine.image(image)
  const guest = held === undefined ? 'sealed' : guestOf(held)
  const detail = `${info.engineVersion} at ${socket}, API ${engine.address.version}`
  const rows = [
    engineRow({ id: 'engine', code: 'engine_unreachable', ok: true, detail }),
    ...engineFindings(info).map(engineRow),
    appArmorRow(info),
    runtimesRow(info),
    ...(request.runtime === undefined ? [] : [engineRow(runtimeFinding(info, request.runtime))]),
    ...imageFindings(image, held, guest).map(engineRow),
  ]
  if (rows.every(({ ok }) => ok)) rows.push(...(await tryWorker(request, engine.kind, guest)))
  return rows
}

function engineRow({ id, ok, detail, mend, code }: EngineFinding): DoctorRow {
  const [cis, expected] = ENGINE_ROWS[id] ?? ['', '']
  return { id, ok, cis, expected, found: detail, ...(ok ? {} : { code, mend: mend ?? '' }) }
}

/** The engine applies its own profile where it can; a worker's walls do not depend on it. */
function appArmorRow({ securityOptions }: EngineInfo): DoctorRow {
  const on = securityOptions.some((option) => option.startsWith('name=apparmor'))
  const found = on
    ? 'on, with the profile of the engine'
    : 'not on this machine; seccomp filters all the same'
  return { id: 'apparmor', ok: true, cis: '5.2', expected: 'on where the kernel has it', found }
}

/** Stronger walls are the operator's choice: what there is to choose from. */
function runtimesRow({ runtimes }: EngineInfo): DoctorRow {
  const found = runtimes.join(', ')
  return { id: 'runtimes', ok: true, cis: '', expected: 'runc; runsc or kata for stronger walls', found }
}

async function tryWorker(
  request: DoctorRequest,
  engine: EngineKind,
  guest: WorkerGuest,
): Promise<readonly DoctorRow[]> {
  const { socket, image, user, runtime, signal, progress } = request
  await using place = await listenForHello(user)
  const options: DockerDriverOptions = {
    image,
    guest,
    user,
    engineSocket: socket,
    installId: `sandbox-doctor-${randomBytes(6).toString('hex')}`,
    ...(runtime === undefined ? {} : { runtime }),
  }
  await using driver = createDockerDriver(options)
  progress(`starting a worker of ${image}`)
  try {
    const worker = await driver.start(
      {
        workerId: randomBytes(8).toString('hex'),
        channelHash: '0'.repeat(64),
        epoch: `doctor-${process.pid}`,
        runDir: place.runDir,
        workspaceDir: place.workspaceDir,
      },
      signal,
    )
    return helloRows(await helloOf(worker, place.hello, signal), resolveDockerOptions(options), engine)
  } catch (error) {
    if (!DriverError.isInstance(error) || error.code === 'aborted' || error.code === 'remove_failed')
      throw error
    const expected = 'starts and says hello'
    const mend =
      'Build the image anew: "sandbox-worker build". If that does not help, look at the log of the engine.'
    return [{ id: 'worker', ok: false, cis: '', expected, found: error.message, mend, code: error.code }]
  }
}

async function helloOf(
  worker: Worker,
  hello: Promise<WorkerHello>,
  signal: AbortSignal,
): Promise<WorkerHello> {
  const timer = new AbortController()
  const ended = worker.exited.then((exit): never => {
    const failure = exitFailure(exit, { output: worker.output() })
    const text = `The worker ended before it said hello. ${failure?.message ?? ''} ${worker.output().slice(-500)}`
    throw new DriverError('start_failed', text.trim(), { cause: failure })
  })
  const late = pause(HELLO_MS, undefined, { signal: AbortSignal.any([signal, timer.signal]) }).then(
    (): never => {
      throw new DriverError('start_failed', `The worker did not say hello within ${HELLO_MS} ms.`)
    },
  )
  try {
    return await Promise.race([hello, ended, late])
  } catch (error) {
    stopIfAborted(signal)
    throw error
  } finally {
    timer.abort()
    for (const loser of [ended, late]) loser.catch(() => {})
  }
}

function helloRows(
  hello: WorkerHello,
  { user, runtime, limits, network }: ResolvedDockerOptions,
  engine: EngineKind,
): readonly DoctorRow[] {
  const same = hello.protocol === PROTOCOL_VERSION
  const worker: DoctorRow = {
    id: 'worker',
    ok: same,
    cis: '',
    expected: `says hello with protocol ${PROTOCOL_VERSION}`,
    found: `${hello.posture.runtime}, protocol ${hello.protocol}`,
    ...(same ? {} : { code: 'image_protocol', mend: protocolMismatch(hello.protocol) }),
  }
  const own = { engine, network, ...(runtime === undefined ? {} : { runtime }) }
  const profile = { user, limits, hostNamespaces: hostNamespaces(), ...own }
  return [worker, ...sealedChecks(hello.posture, profile).map(wallRow)]
}

const MEND: Readonly<Record<string, string>> = {
  account: 'The engine changes uids: use one that runs as root, without userns-remap.',
  environment:
    'The engine or the image adds variables: look at its proxy settings, and build the image anew.',
  'own-limits': 'Mount the cgroup controllers that the engine lacks, and look at its "default-ulimits".',
  sockets:
    'Something put a socket into the worker: look at the image, and at the mounts and hooks of the engine.',
  mounts: 'The engine adds mounts (see "default-mounts" or plugins of its configuration): turn them off.',
}

function wallRow({ id, cis, expected, found, problems }: SealedCheck): DoctorRow {
  if (problems.length === 0) return { id, ok: true, cis, expected, found }
  const mend = MEND[id] ?? 'The engine did not do what it was asked for: use Docker 20.10 or later with runc.'
  return {
    id,
    ok: false,
    cis,
    expected,
    found,
    mend: `${problems.join(' ')} ${mend}`,
    code: 'engine_unsuitable',
  }
}
