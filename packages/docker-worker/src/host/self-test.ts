import { readlinkSync } from 'node:fs'
import { type Posture, RUN_DIR, SOCKET_NAME, WORKSPACE_DIR } from '@sandbox/protocol'
import type { WorkerNetwork, WorkerRuntime, WorkerUser } from '../options.ts'
import type { EngineKind } from './container/docker-client.ts'
import type { ResolvedLimits } from './container/sealed-spec.ts'
import { hides } from './hidden-walls.ts'

/** Variables that an engine adds to every container, and the one that we set (`HOME`). */
const ENVIRONMENT = ['HOME', 'HOSTNAME', 'PATH']

/** Mounts that an engine makes by itself; `/proc`, `/dev` and `/sys` with everything below them. */
const ENGINE_MOUNTS = ['/etc/hostname', '/etc/hosts', '/etc/resolv.conf', '/sbin/docker-init']
const KERNEL_MOUNTS = ['/proc', '/dev', '/sys']

/** What Podman adds; the last two are empty and read-only, in place of a writable one of its own. */
const PODMAN_MOUNTS = ['/etc/group', '/etc/passwd', '/run/podman-init', '/run', '/var/tmp']
const PODMAN_ENVIRONMENT = ['TERM', 'container']

/** Namespaces that a container must not share with the host. */
const NAMESPACES = ['ipc', 'mnt', 'net', 'pid', 'uts']

const WORKER_SOCKET = `${RUN_DIR}/${SOCKET_NAME}`

/** What a worker reports of a set that it could not read. */
const UNREAD_SET = 'f'.repeat(16)

const OLD_GUEST = 'The guest is of an older build and did not report this. Run "sandbox-worker build".'

/** What the profile fixes and a posture can be compared with. */
export interface SealedProfile {
  readonly user: WorkerUser
  readonly limits: ResolvedLimits
  /** Ids of the host's namespaces, such as `net:[4026531840]`; empty where they cannot be read. */
  readonly hostNamespaces: readonly string[]
  /** Which sockets the filter lets it make; the interfaces and routes have to be the same. Default `none`. */
  readonly network?: WorkerNetwork
  /** True where nothing may be written to the workspace. Default false. */
  readonly workspaceReadOnly?: boolean
  /** Default `docker`. */
  readonly engine?: EngineKind
  /** gVisor is a kernel of its own, which does not show every wall inside: see `hidden-walls.ts`. */
  readonly runtime?: WorkerRuntime
}

/** One wall: what the profile wants, what a worker found, and what is wrong with it. */
export interface SealedCheck {
  readonly id: string
  /** Items of the CIS Docker Benchmark 1.6.0 that it answers; empty where there is none. */
  readonly cis: string
  readonly expected: string
  readonly found: string
  /** One plain sentence per difference; none when the wall stands. */
  readonly problems: readonly string[]
}

/** Compares what a worker found inside with the sealed profile: one plain sentence per difference. Pure. */
export function sealedDifferences(posture: Posture, profile: SealedProfile): readonly string[] {
  return sealedChecks(posture, profile).flatMap(({ problems }) => problems)
}

/** Compares what a worker found inside with the sealed profile, wall by wall. Pure. */
export function sealedChecks(posture: Posture, profile: SealedProfile): readonly SealedCheck[] {
  const { user } = profile
  const podman = profile.engine === 'podman'
  const variables = [...ENVIRONMENT, ...(podman ? PODMAN_ENVIRONMENT : [])]
  const groups = posture.groups.length === 0 ? 'none' : posture.groups.join(', ')
  return [
    {
      id: 'account',
      cis: '4.1',
      expected: `uid ${user.uid}, gid ${user.gid}, no other group`,
      found: `uid ${posture.uid}, gid ${posture.gid}, groups ${groups}`,
      problems: identity(posture, user),
    },
    ...privilegeChecks(posture, profile.runtime),
    {
      id: 'network',
      cis: '5.10 5.30',
      expected: `lo, no route${socketWall(profile)}`,
      found: `${quoted(posture.interfaces)}, ${posture.routes.length === 0 ? 'no route' : `routes ${quoted(posture.routes)}`}`,
      problems: network(posture),
    },
    ...fileChecks(posture, profile),
    {
      id: 'environment',
      cis: '',
      expected: `no variable but ${variables.join(', ')}`,
      found: quoted(posture.environment),
      problems: others('variable', posture.environment, variables),
    },
    {
      id: 'namespaces',
      cis: '5.16 5.17 5.21',
      expected: `own ${shownNamespaces(profile).join(', ')}`,
      found: quoted(posture.namespaces.filter((id) => NAMESPACES.includes(id.split(':')[0] ?? ''))),
      problems: namespaces(posture, profile),
    },
    limitCheck(posture, profile),
    {
      id: 'sockets',
      cis: '5.32',
      expected: `${WORKER_SOCKET}, no other`,
      found: posture.sockets === undefined ? 'not reported' : quoted(posture.sockets),
      problems: posture.sockets === undefined ? [OLD_GUEST] : sockets(posture.sockets),
    },
  ]
}

/** The namespaces of this process, for {@link SealedProfile}. */
export function hostNamespaces(): readonly string[] {
  return NAMESPACES.flatMap((name) => {
    try {
      return [readlinkSync(`/proc/self/ns/${name}`)]
    } catch {
      return []
    }
  })
}

function identity(posture: Posture, user: WorkerUser): string[] {
  const found: string[] = []
  if (posture.uid !== user.uid) found.push(`The worker runs as uid ${posture.uid}, not ${user.uid}.`)
  if (posture.gid !== user.gid) found.push(`The worker runs as gid ${posture.gid}, not ${user.gid}.`)
  const groups = posture.groups.filter((group) => group !== user.gid)
  if (groups.length > 0) found.push(`The worker is in other groups: ${groups.join(', ')}.`)
  return found
}

function privilegeChecks(posture: Posture, runtime: WorkerRuntime | undefined): SealedCheck[] {
  const unseen = (what: string) => hides(runtime, 'privilege', what)
  const held = Object.entries(posture.capabilities)
    .filter(([, mask]) => !/^0+$/.test(mask))
    .filter(([set, mask]) => mask !== UNREAD_SET || !hides(runtime, 'capabilities', set))
  return [
    {
      id: 'capabilities',
      cis: '5.4 5.5',
      expected: 'none',
      found: held.length === 0 ? 'none' : held.map(([set, mask]) => `${set} ${mask}`).join(', '),
      problems: held.map(([set, mask]) => `The worker has capabilities: ${set} is ${mask}.`),
    },
    {
      id: 'no-new-privileges',
      cis: '5.26',
      expected: unseen('no-new-privileges') ? 'always on in gVisor' : 'on',
      found: posture.noNewPrivs ? 'on' : unseen('no-new-privileges') ? 'not shown' : 'off',
      problems:
        posture.noNewPrivs || unseen('no-new-privileges')
          ? []
          : ['The worker can gain privileges: no-new-privileges is off.'],
    },
    {
      id: 'system-calls',
      cis: '5.22',
      expected: unseen('seccomp') ? 'answered by gVisor, not by this kernel' : 'filtered (seccomp 2)',
      found: `seccomp ${posture.seccomp}`,
      problems:
        posture.seccomp === 2 || unseen('seccomp')
          ? []
          : [`No system call filter: seccomp is ${posture.seccomp}, not 2.`],
    },
  ]
}

/** Which sockets the filter leaves; gVisor does not apply it. */
function socketWall({ network, runtime }: SealedProfile): string {
  if (hides(runtime, 'privilege', 'seccomp')) return ''
  return network === 'loopback' ? ', Unix and loopback TCP sockets' : ', only Unix sockets'
}

function network(posture: Posture): string[] {
  const found = others('network interface', posture.interfaces, ['lo'])
  if (posture.routes.length > 0) found.push(`The worker has routes: ${quoted(posture.routes)}.`)
  return found
}

function fileChecks(posture: Posture, profile: SealedProfile): SealedCheck[] {
  const { runtime, engine, workspaceReadOnly = false } = profile
  const tmpOptions = ['noexec', 'nosuid', 'nodev'].filter((option) => !hides(runtime, 'privilege', option))
  const podman = engine === 'podman' ? PODMAN_MOUNTS : []
  const known = [...ENGINE_MOUNTS, ...podman, '/', '/tmp', RUN_DIR, WORKSPACE_DIR]
  const outside = posture.mounts
    .map(({ target }) => target)
    .filter((target) => !KERNEL_MOUNTS.some((top) => within(target, top)))
  const strange = outside.filter((target) => !known.includes(target))
  return [
    {
      id: 'root',
      cis: '5.13',
      expected: 'read-only',
      found: posture.rootReadOnly ? 'read-only' : 'writable',
      problems: posture.rootReadOnly ? [] : ['The root file system can be written.'],
    },
    {
      id: 'mounts',
      cis: '5.6 5.18 5.32',
      expected: `${RUN_DIR} (ro), ${WORKSPACE_DIR}${workspaceReadOnly ? ' (ro)' : ''}, /tmp (${tmpOptions.join(', ')}), no other`,
      found: quoted(outside),
      problems: [
        ...(strange.length > 0 ? [`The worker has other mounts: ${quoted(strange)}.`] : []),
        ...podman
          .filter((target) => outside.includes(target))
          .flatMap((target) => mountProblem(posture, target, ['ro'])),
        ...mountProblem(posture, RUN_DIR, ['ro']),
        ...mountProblem(posture, WORKSPACE_DIR, workspaceReadOnly ? ['ro'] : []),
        ...mountProblem(posture, '/tmp', tmpOptions),
      ],
    },
  ]
}

function mountProblem(posture: Posture, target: string, wanted: readonly string[]): string[] {
  const mount = posture.mounts.find((candidate) => candidate.target === target)
  if (!mount) return [`Nothing is mounted at ${target}.`]
  const options = mount.options.split(',')
  const missing = wanted.filter((option) => !options.includes(option))
  return missing.length > 0 ? [`${target} is not mounted ${missing.join(', ')}.`] : []
}

/** What a limit may be found above the one that was asked for: kernels round up to pages and to parts of a period. */
const ROUNDING: Readonly<Record<string, number>> = { tmpBytes: 65_536, cpus: 0.0001 }

function limitCheck(posture: Posture, { limits, runtime }: SealedProfile): SealedCheck {
  const { memoryBytes, cpus, pids, openFiles, fileBytes, tmpBytes } = limits
  const wanted = { memoryBytes, swapBytes: 0, cpus, pids, openFiles, fileBytes, coreBytes: 0, tmpBytes }
  const found: Readonly<Record<string, number | null>> = posture.limits ?? {}
  const names = Object.keys(wanted).filter(
    (name) => typeof found[name] === 'number' || !hides(runtime, 'limits', name),
  )
  const text = (values: Readonly<Record<string, number | null>>) =>
    names.map((name) => `${name} ${values[name] ?? 'none'}`).join(', ')
  const loose = names.filter((name) => {
    const value = found[name] ?? Number.POSITIVE_INFINITY
    return !(value <= wanted[name as keyof typeof wanted] + (ROUNDING[name] ?? 0))
  })
  return {
    id: 'own-limits',
    cis: '5.11 5.12 5.19 5.29',
    expected: text(wanted),
    found: posture.limits === undefined ? 'not reported' : text(found),
    problems:
      posture.limits === undefined
        ? [OLD_GUEST]
        : loose.map((name) => {
            const most = wanted[name as keyof typeof wanted]
            return `The limit ${name} is ${found[name] ?? 'not set'}, not ${most}.`
          }),
  }
}

function sockets(found: readonly string[]): string[] {
  return [
    ...others('socket within reach', found, [WORKER_SOCKET]),
    ...(found.includes(WORKER_SOCKET) ? [] : [`The worker does not see its socket ${WORKER_SOCKET}.`]),
  ]
}

function shownNamespaces({ runtime }: SealedProfile): readonly string[] {
  return NAMESPACES.filter((name) => !hides(runtime, 'namespaces', name))
}

function namespaces(posture: Posture, profile: SealedProfile): string[] {
  const shared = posture.namespaces.filter((name) => profile.hostNamespaces.includes(name))
  const named = shownNamespaces(profile).filter(
    (name) => !posture.namespaces.some((id) => id.startsWith(`${name}:`)),
  )
  return [
    ...shared.map((name) => `The worker shares a namespace with the host: ${quoted([name])}.`),
    ...named.map((name) => `The worker did not report its ${name} namespace.`),
  ]
}

function others(what: string, found: readonly string[], known: readonly string[]): string[] {
  const strange = found.filter((name) => !known.includes(name))
  return strange.length > 0 ? [`The worker has another ${what}: ${quoted(strange)}.`] : []
}

function within(path: string, top: string): boolean {
  return path === top || path.startsWith(`${top}/`)
}

/** Names come from the guest: quoted, cut, and only so many of them. */
function quoted(names: readonly string[]): string {
  const shown = names.slice(0, 8).map((name) => JSON.stringify(name.slice(0, 80)))
  return names.length > shown.length ? `${shown.join(', ')} and more` : shown.join(', ')
}
