import { PROTOCOL_LABEL, PROTOCOL_VERSION, protocolMismatch } from '@sandbox/protocol'
import { DriverError, type DriverErrorCode } from '../errors.ts'
import type { WorkerGuest, WorkerRuntime } from '../options.ts'
import type { EngineImage, EngineInfo } from './container/docker-client.ts'
import { GUEST_LABEL, PRECHECK_LABEL, RUNTIME_LABEL } from './image/image-archive.ts'

/** One thing that was looked at. */
export interface EngineFinding {
  readonly id: string
  readonly ok: boolean
  /** What was found. */
  readonly detail: string
  /** What to do. Absent when it is ok. */
  readonly mend?: string
  /** The code of the error that this finding is, when it is not ok. */
  readonly code: DriverErrorCode
}

/** Says whether an engine would enforce the sealed profile. Pure: one finding for each thing looked at. */
export function engineFindings(info: EngineInfo): readonly EngineFinding[] {
  const has = (name: string) => info.securityOptions.some((option) => option.startsWith(`name=${name}`))
  const remapped = ['rootless', 'userns'].filter(has)
  const missing = [...(info.cgroupDriver === 'none' ? ['CgroupDriver'] : []), ...info.missingLimits]
  return [
    finding(
      'linux',
      info.osType === 'linux' && !/docker desktop/i.test(info.operatingSystem),
      `The engine runs on ${info.operatingSystem} (${info.osType}).`,
      'Use a Linux engine on this very machine: Unix sockets do not reach into a virtual one.',
    ),
    finding(
      'seccomp',
      has('seccomp'),
      has('seccomp') ? 'System calls can be filtered.' : 'The engine cannot filter system calls.',
      'Use an engine and a kernel that are built with seccomp.',
    ),
    finding(
      'same-ids',
      remapped.length === 0,
      remapped.length === 0
        ? 'Uids inside are uids of this machine.'
        : `The engine gives workers other uids (${remapped.join(', ')}), which cannot open their sockets.`,
      'Use an engine that runs as root, without userns-remap.',
    ),
    finding(
      'limits',
      missing.length === 0,
      missing.length === 0
        ? `Memory, swap, processes and CPU can be limited (${info.cgroupDriver}).`
        : `The engine would ignore limits: ${missing.join(', ')}.`,
      'Mount the cgroup controllers that the engine lacks.',
    ),
  ]
}

/** Under which names engines know a runtime: the packages' own first. */
const RUNTIME_NAMES: Readonly<Record<WorkerRuntime, readonly string[]>> = {
  runc: ['runc', 'io.containerd.runc.v2'],
  runsc: ['runsc', 'io.containerd.runsc.v1'],
  kata: ['kata', 'kata-runtime', 'io.containerd.kata.v2'],
}

/** The engine's own name of a runtime; `undefined` when the engine was not told of it. */
export function engineRuntimeName(info: EngineInfo, runtime: WorkerRuntime): string | undefined {
  return RUNTIME_NAMES[runtime].find((name) => info.runtimes.includes(name))
}

/** Says whether an engine knows the runtime that was asked for. Pure. */
export function runtimeFinding(info: EngineInfo, runtime: WorkerRuntime): EngineFinding {
  const name = engineRuntimeName(info, runtime)
  return finding(
    'runtime',
    name !== undefined,
    `The engine knows the runtimes ${info.runtimes.join(', ') || '(none)'}; ${runtime} was asked for.`,
    `Install ${runtime}, name it under "runtimes" in the engine's daemon.json, and restart the engine.`,
  )
}

/** The command that makes an image. */
export function buildCommand(name: string, guest: WorkerGuest): string {
  return `sandbox-worker build ${guest === 'pi' ? '--pi ' : ''}--tag ${name}`
}

/** Says whether an image fits this host and holds this guest. Pure. */
export function imageFindings(
  name: string,
  image: EngineImage | undefined,
  guest: WorkerGuest = 'sealed',
): readonly EngineFinding[] {
  const build = `Make it with "${buildCommand(name, guest)}".`
  if (!image) return [finding('image', false, `There is no image ${name}.`, build)]
  const version = image.labels[PROTOCOL_LABEL]
  const foreign = [
    ...image.environment.map((variable) => variable.split('=')[0]).filter((variable) => variable !== 'PATH'),
    ...image.volumes,
  ]
  const holds = guestOf(image)
  return [
    finding('image', true, `${name} is ${image.id}.`, build),
    version === undefined
      ? finding('protocol', false, `${name} is no worker image: it has no label ${PROTOCOL_LABEL}.`, build)
      : version === String(PROTOCOL_VERSION)
        ? finding('protocol', true, `The image speaks protocol ${version}.`, build)
        : finding('protocol', false, protocolMismatch(version), `For this image: --tag ${name}.`),
    finding(
      'content',
      foreign.length === 0 && runtimeOf(image) !== undefined && holdsGuest(image, guest),
      !holdsGuest(image, guest)
        ? `The image holds the guest ${holds}, not ${guest}.`
        : foreign.length > 0
          ? `The image brings variables or volumes of its own: ${foreign.join(', ')}.`
          : `The image holds ${runtimeOf(image) ?? `no known runtime (label ${RUNTIME_LABEL})`}.`,
      build,
    ),
  ]
}

/** The guest that an image says it holds. */
export function guestOf(image: EngineImage): WorkerGuest {
  return image.labels[GUEST_LABEL] === 'pi' ? 'pi' : 'sealed'
}

/** The program of prechecks is in every sealed image, but for those of older builds. */
function holdsGuest(image: EngineImage, guest: WorkerGuest): boolean {
  return guest === 'precheck' ? image.labels[PRECHECK_LABEL] !== undefined : guestOf(image) === guest
}

/** The runtime that an image says it holds. */
export function runtimeOf(image: EngineImage): 'node' | 'bun' | undefined {
  const runtime = image.labels[RUNTIME_LABEL]
  return runtime === 'node' || runtime === 'bun' ? runtime : undefined
}

/** Throws the first finding that is not ok. */
export function requireFindings(findings: readonly EngineFinding[]): void {
  const bad = findings.find(({ ok }) => !ok)
  if (bad) throw new DriverError(bad.code, `${bad.detail} ${bad.mend ?? ''}`.trim())
}

const CODES: Readonly<Record<string, DriverErrorCode>> = {
  image: 'image_missing',
  protocol: 'image_protocol',
  content: 'image_unsuitable',
}

function finding(id: string, ok: boolean, detail: string, mend: string): EngineFinding {
  return { id, ok, detail, code: CODES[id] ?? 'engine_unsuitable', ...(ok ? {} : { mend }) }
}
