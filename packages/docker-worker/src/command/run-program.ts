import { randomBytes } from 'node:crypto'
import { chownSync } from 'node:fs'
import { mkdtemp, realpath, stat } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DriverError, stopIfAborted } from '../errors.ts'
import { createBoundedOutput } from '../host/container/bounded-output.ts'
import { connectEngine, type Engine } from '../host/container/docker-client.ts'
import { exitFailure } from '../host/container/exit-failure.ts'
import { startContainer } from '../host/container/sealed-container.ts'
import { sealedCreateBody, sealedName } from '../host/container/sealed-spec.ts'
import type { Worker, WorkerExit } from '../host/driver.ts'
import { engineFindings, requireFindings } from '../host/engine-check.ts'
import { removeTree } from '../host/remove-tree.ts'
import {
  checkedImage,
  checkedInstallId,
  checkedPath,
  checkWorkerSpec,
  resolveLimits,
} from '../resolve-options.ts'
import type { CommandValues } from './arguments.ts'
import { deferred } from './deferred.ts'
import type { CommandPorts } from './ports.ts'
import { namedUser } from './user.ts'

/** What {@link runProgram} needs. */
export interface RunRequest {
  readonly values: CommandValues
  readonly socket: string
  readonly program: readonly string[]
  readonly ports: CommandPorts
}

const MIB = 2 ** 20
const ARGUMENTS_BYTES = 128 * 1024
/** What a program may write to the terminal or file behind this command. More is thrown away and counted. */
const OUTPUT_BYTES = 16 * MIB
const EXIT = { timeout: 124, unknown: 125, calledOff: 130 } as const

/** Runs one program of any image sealed, passes its output on and returns its exit code. Leaves nothing behind. */
export async function runProgram({ values, socket, program, ports }: RunRequest): Promise<number> {
  const plan = readPlan(values, program)
  const engine = await connectEngine(socket)
  requireFindings(engineFindings(await engine.info()))
  const imageId = await checkedProgramImage(engine, plan.image)
  using workspace = await openWorkspace(values.workspace, plan.user)
  const worker = {
    workerId: randomBytes(8).toString('hex'),
    channelHash: '0'.repeat(64),
    epoch: `run-${process.pid}`,
    runDir: await realDirectory('--run-dir', plan.runDir),
    workspaceDir: workspace.path,
  }
  checkWorkerSpec(worker)
  stopIfAborted(ports.signal)
  const output = passOn(ports, values.json === true)
  const startedAt = performance.now()
  const { installId, user, limits } = plan
  const started = await startContainer({
    engine,
    workerId: worker.workerId,
    name: sealedName(installId, worker.workerId),
    body: sealedCreateBody({ worker, installId, imageId, runtime: 'node', user, limits, program }),
    output,
    signal: ports.signal,
  })
  const end = await untilEnd(started, plan.timeoutMs, ports.signal)
  const { code, message } = readEnd(end, plan.timeoutMs, started.output())
  const cut = output.dropped()
  const notes = [
    ...(message === undefined ? [] : [message]),
    ...(cut > 0 ? [`${cut} bytes of output were cut.`] : []),
  ]
  if (values.json) {
    const durationMs = Math.round(performance.now() - startedAt)
    ports.out(
      JSON.stringify({
        code,
        ...end.exit,
        timedOut: end.timedOut,
        durationMs,
        notes,
        output: started.output(),
      }),
    )
  } else for (const note of notes) ports.progress(`sandbox-worker run: ${note}`)
  return code
}

function readPlan(values: CommandValues, program: readonly string[]) {
  const bytes = program.reduce((sum, word) => sum + Buffer.byteLength(word) + 1, 0)
  if (program.some((word) => word.includes('\0')) || program[0] === '' || bytes > ARGUMENTS_BYTES) {
    throw new DriverError(
      'options_invalid',
      `The program has to be at most ${ARGUMENTS_BYTES} bytes without NUL.`,
    )
  }
  const memory = wholeNumber('--memory', values.memory ?? '512', 64, 2 ** 20)
  return {
    image: checkedImage('--image', values.image ?? ''),
    installId: checkedInstallId(values.install ?? `sandbox-run-${process.geteuid?.() ?? 0}`),
    user: namedUser(values.user),
    runDir: values['run-dir'] ?? '',
    timeoutMs: wholeNumber('--timeout', values.timeout ?? '600', 1, 86_400) * 1000,
    limits: resolveLimits({
      memoryBytes: memory * MIB,
      tmpBytes: Math.min(64, memory) * MIB,
      pids: wholeNumber('--pids', values.pids ?? '64', 8, 1_000_000),
    }),
  }
}

function wholeNumber(name: string, text: string, min: number, max: number): number {
  const value = /^\d{1,9}$/.test(text) ? Number(text) : Number.NaN
  if (value >= min && value <= max) return value
  throw new DriverError('options_invalid', `${name} has to be a whole number from ${min} to ${max}.`)
}

/** A volume of an image would be a directory that can be written without any limit. */
async function checkedProgramImage(engine: Engine, name: string): Promise<string> {
  const image = await engine.image(name)
  if (!image) {
    const text = `There is no image ${name} on this engine, and none is pulled. Load it with "docker load" or "docker pull".`
    throw new DriverError('image_missing', text)
  }
  if (image.volumes.length === 0) return image.id
  const text = `${name} brings volumes of its own (${image.volumes.join(', ')}). Build one without VOLUME.`
  throw new DriverError('image_unsuitable', text)
}

async function realDirectory(name: string, path: string): Promise<string> {
  checkedPath('options_invalid', name, path)
  const real = await realpath(path).catch((cause: unknown) => {
    throw new DriverError('options_invalid', `${name} does not exist: ${path}.`, { cause })
  })
  if ((await stat(real)).isDirectory()) return real
  throw new DriverError('options_invalid', `${name} is no directory: ${path}.`)
}

async function openWorkspace(named: string | undefined, user: { uid: number; gid: number }) {
  if (named !== undefined) {
    return { path: await realDirectory('--workspace', named), [Symbol.dispose]: () => {} }
  }
  const path = await realpath(await mkdtemp(join(tmpdir(), 'sbx-run-')).catch(noPlace))
  if (process.geteuid?.() === 0) chownSync(path, user.uid, user.gid)
  return { path, [Symbol.dispose]: () => removeTree(path) }
}

function noPlace(cause: unknown): never {
  const text = `No directory can be made in ${tmpdir()}: set TMPDIR, or name one with --workspace.`
  throw new DriverError('options_invalid', text, { cause })
}

/** Every byte goes to the caller up to a bound, and a tail is kept. Never waits: a stalled reader would stall the engine. */
function passOn(ports: CommandPorts, keepOnly: boolean) {
  const tail = createBoundedOutput()
  let passed = 0
  let dropped = 0
  return {
    ...tail,
    push(chunk: Uint8Array, stream = 1) {
      tail.push(chunk)
      if (keepOnly) return
      const part = chunk.subarray(0, Math.max(0, OUTPUT_BYTES - passed))
      passed += part.length
      dropped += chunk.length - part.length
      if (part.length > 0) ports.write(stream, Uint8Array.from(part))
    },
    dropped: () => dropped,
  }
}

interface End {
  readonly exit: WorkerExit
  readonly timedOut: boolean
  readonly calledOff: boolean
}

async function untilEnd(worker: Worker, timeoutMs: number, signal: AbortSignal): Promise<End> {
  const over = deferred<'timeout' | 'calledOff'>()
  const stop = () => over.resolve('calledOff')
  const timer = setTimeout(() => over.resolve('timeout'), timeoutMs)
  signal.addEventListener('abort', stop, { once: true })
  if (signal.aborted) stop()
  try {
    const first = await Promise.race([worker.exited.then(() => 'exited' as const), over.promise])
    await worker.remove()
    return { exit: await worker.exited, timedOut: first === 'timeout', calledOff: first === 'calledOff' }
  } finally {
    clearTimeout(timer)
    signal.removeEventListener('abort', stop)
  }
}

function readEnd({ exit, timedOut, calledOff }: End, timeoutMs: number, output: string) {
  if (calledOff) return { code: EXIT.calledOff, message: 'Called off; the container is removed.' }
  const failure = exitFailure(exit, { output, ...(timedOut ? { deadlineMs: timeoutMs } : {}) })
  const message =
    failure && failure.code !== 'worker_failed' ? `${failure.message} (${failure.code})` : undefined
  return { code: timedOut ? EXIT.timeout : (exit.code ?? EXIT.unknown), message }
}
