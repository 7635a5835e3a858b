import { createHash } from 'node:crypto'
import { PROTOCOL_LABEL, PROTOCOL_VERSION, RUN_DIR, WORKSPACE_DIR } from '@sandbox/protocol'
import type { WorkerNetwork, WorkerUser } from '../../options.ts'
import type { WorkerSpec } from '../driver.ts'
import { LOOPBACK_SECCOMP, SEALED_SECCOMP } from './seccomp-profile.ts'

/** Labels of every container of ours. Names and labels are set before create, so that nothing can be orphaned. */
export const LABELS = {
  install: 'sandbox.install',
  channel: 'sandbox.channel',
  worker: 'sandbox.worker',
  epoch: 'sandbox.epoch',
  body: 'sandbox.body',
  protocol: PROTOCOL_LABEL,
} as const

/** Where the image keeps the program and the guests. */
export const IMAGE_FILES = {
  runtime: '/sandbox/runtime',
  bundle: '/sandbox/sealed.mjs',
  precheck: '/sandbox/precheck.mjs',
} as const

/** Limits with every default filled in. */
export interface ResolvedLimits {
  readonly memoryBytes: number
  readonly cpus: number
  readonly pids: number
  readonly openFiles: number
  readonly fileBytes: number
  readonly tmpBytes: number
}

/** Everything that a sealed container is made from. Paths are real ones and were checked. */
export interface SealedSpec {
  readonly worker: WorkerSpec
  readonly installId: string
  readonly imageId: string
  /** Which program the image holds: it decides how the heap is bounded. */
  readonly runtime: 'node' | 'bun'
  readonly user: WorkerUser
  readonly limits: ResolvedLimits
  /** `loopback` also lets it make TCP sockets, which reach nothing but the container's own `lo`. Default `none`. */
  readonly network?: WorkerNetwork
  /** The engine's name of the container runtime; absent for its default. */
  readonly engineRuntime?: string
  /** Started instead of the guest, in the workspace: program and arguments, for images of somebody else. */
  readonly program?: readonly string[]
}

/** The container's name: the install's hash keeps two installs apart, the worker id is never used twice. */
export function sealedName(installId: string, workerId: string): string {
  return `sandbox-${createHash('sha256').update(installId).digest('hex').slice(0, 12)}-${workerId}`
}

/**
 * The body of `POST /containers/create` for one sealed worker. Pure. Nothing of the spec reaches `HostConfig` but
 * its two directories and the workspace's read-only flag; limits arrive as numbers that were checked.
 */
export function sealedCreateBody(spec: SealedSpec) {
  const { worker, installId, imageId, user, limits } = spec
  return {
    Image: imageId,
    Hostname: 'sandbox',
    User: `${user.uid}:${user.gid}`,
    WorkingDir: spec.program ? WORKSPACE_DIR : '/',
    Entrypoint: spec.program ? [...spec.program] : guestEntrypoint(spec),
    Cmd: [] as string[],
    Env: ['HOME=/tmp'],
    Labels: {
      [LABELS.install]: installId,
      [LABELS.channel]: worker.channelHash,
      [LABELS.worker]: worker.workerId,
      [LABELS.epoch]: worker.epoch,
      [LABELS.protocol]: String(PROTOCOL_VERSION),
    } as Readonly<Record<string, string>>,
    Healthcheck: { Test: ['NONE'] },
    AttachStdin: false,
    AttachStdout: true,
    AttachStderr: true,
    OpenStdin: false,
    StdinOnce: false,
    Tty: false,
    // The engine builds a whole network for "none" unless this is set too: 160 ms per start.
    NetworkDisabled: true,
    HostConfig: {
      NetworkMode: 'none',
      // Mounts and not Binds: a missing source is an error instead of a new directory of root's.
      Mounts: [
        bind(worker.runDir, RUN_DIR, true),
        bind(worker.workspaceDir, WORKSPACE_DIR, worker.workspaceReadOnly === true),
      ],
      Tmpfs: { '/tmp': `rw,noexec,nosuid,nodev,mode=1777,size=${limits.tmpBytes}` },
      ReadonlyRootfs: true,
      Privileged: false,
      CapAdd: [] as string[],
      CapDrop: ['ALL'],
      SecurityOpt: ['no-new-privileges:true', `seccomp=${JSON.stringify(seccompProfile(spec))}`],
      IpcMode: 'none',
      PidMode: '',
      UTSMode: '',
      CgroupnsMode: 'private' as const,
      Memory: limits.memoryBytes,
      MemorySwap: limits.memoryBytes,
      NanoCpus: Math.round(limits.cpus * 1e9),
      PidsLimit: limits.pids,
      // No nproc: it counts every process of the account on the host. PidsLimit counts this container's.
      Ulimits: [
        { Name: 'nofile', Soft: limits.openFiles, Hard: limits.openFiles },
        { Name: 'core', Soft: 0, Hard: 0 },
        { Name: 'fsize', Soft: limits.fileBytes, Hard: limits.fileBytes },
      ],
      Init: true,
      LogConfig: { Type: 'none', Config: {} },
      RestartPolicy: { Name: 'no' },
      AutoRemove: false,
      ...(spec.engineRuntime === undefined ? {} : { Runtime: spec.engineRuntime }),
    },
  }
}

function seccompProfile({ network = 'none' }: SealedSpec) {
  return network === 'loopback' ? LOOPBACK_SECCOMP : SEALED_SECCOMP
}

/** What `POST /containers/create` is sent. */
export type SealedCreateBody = ReturnType<typeof sealedCreateBody>

function bind(source: string, target: string, readOnly: boolean) {
  return {
    Type: 'bind' as const,
    Source: source,
    Target: target,
    ReadOnly: readOnly,
    BindOptions: { Propagation: 'rprivate' as const, NonRecursive: true },
  }
}

function guestEntrypoint({ runtime, limits }: SealedSpec): string[] {
  return [IMAGE_FILES.runtime, ...heapFlags(runtime, limits.memoryBytes), IMAGE_FILES.bundle]
}

/** V8 sizes its heap by the machine's memory: bounded at 70 % of the container's, it fails before the kernel kills. */
export function heapFlags(runtime: 'node' | 'bun', memoryBytes: number): string[] {
  return runtime === 'node'
    ? [`--max-old-space-size=${Math.floor((memoryBytes * 0.7) / 2 ** 20)}`]
    : ['--smol']
}
