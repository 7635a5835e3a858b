import { PROTOCOL_LABEL, PROTOCOL_VERSION, protocolMismatch } from '@sandbox/protocol'
import { DriverError, type DriverErrorCode } from '../errors.ts'
import type { EngineImage, EngineInfo } from './container/docker-client.ts'
import { RUNTIME_LABEL } from './image/image-archive.ts'

/** One thing that was looked at. */
export interface EngineFinding {
  readonly id: string
  readonly ok: boolean
  /** What was found, and what to do when it is not ok. */
  readonly detail: string
  /** The code of the error that this finding is, when it is not ok. */
  readonly code: DriverErrorCode
}

/** Says whether an engine would enforce the sealed profile. Pure: one finding for each thing looked at. */
export function engineFindings(info: EngineInfo): readonly EngineFinding[] {
  const has = (name: string) => info.securityOptions.some((option) => option.startsWith(`name=${name}`))
  const code = 'engine_unsuitable' as const
  return [
    {
      id: 'linux',
      code,
      ok: info.osType === 'linux' && !/docker desktop/i.test(info.operatingSystem),
      detail: `${info.operatingSystem}. A Linux engine on this machine is needed: Unix sockets do not reach into a Docker Desktop machine.`,
    },
    {
      id: 'seccomp',
      code,
      ok: has('seccomp'),
      detail:
        'System call filters (seccomp). Without them use an engine and a kernel that are built with seccomp.',
    },
    {
      id: 'same-ids',
      code,
      ok: !has('rootless') && !has('userns'),
      detail:
        'Uids of containers are uids of the host. A rootless engine or one with userns-remap gives the worker another uid, which cannot open its socket: use a rootful engine without remap.',
    },
    {
      id: 'limits',
      code,
      ok: info.cgroupDriver !== 'none' && info.missingLimits.length === 0,
      detail: `Limits by cgroups: driver ${info.cgroupDriver}, missing: ${info.missingLimits.join(', ') || 'nothing'}. Without them memory, processes and CPU are not limited: mount the cgroup controllers.`,
    },
  ]
}

/** Says whether an image fits this host. Pure. */
export function imageFindings(name: string, image: EngineImage | undefined): readonly EngineFinding[] {
  const build = `Make it with "sandbox-worker build --tag ${name}".`
  if (!image) return [{ id: 'image', code: 'image_missing', ok: false, detail: `No image ${name}. ${build}` }]
  const version = image.labels[PROTOCOL_LABEL]
  const foreign = image.environment.filter((variable) => !variable.startsWith('PATH='))
  return [
    { id: 'image', code: 'image_missing', ok: true, detail: `${name} is ${image.id}` },
    {
      id: 'protocol',
      code: 'image_protocol',
      ok: version === String(PROTOCOL_VERSION),
      detail:
        version === undefined
          ? `${name} is no worker image: it has no ${PROTOCOL_LABEL} label. ${build}`
          : version === String(PROTOCOL_VERSION)
            ? `protocol ${version}`
            : protocolMismatch(version),
    },
    {
      id: 'content',
      code: 'image_unsuitable',
      ok: foreign.length === 0 && image.volumes.length === 0 && runtimeOf(image) !== undefined,
      detail: `The image brings no volumes and variables, and says which runtime it holds (${RUNTIME_LABEL}). ${build}`,
    },
  ]
}

/** The runtime that an image says it holds. */
export function runtimeOf(image: EngineImage): 'node' | 'bun' | undefined {
  const runtime = image.labels[RUNTIME_LABEL]
  return runtime === 'node' || runtime === 'bun' ? runtime : undefined
}

/** Throws the first finding that is not ok. */
export function requireFindings(findings: readonly EngineFinding[]): void {
  const bad = findings.find(({ ok }) => !ok)
  if (bad) throw new DriverError(bad.code, bad.detail)
}
