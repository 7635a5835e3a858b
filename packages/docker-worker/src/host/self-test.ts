import { readlinkSync } from 'node:fs'
import { type Posture, RUN_DIR, WORKSPACE_DIR } from '@sandbox/protocol'
import type { WorkerUser } from '../options.ts'

/** Variables that an engine adds to every container, and the one that we set (`HOME`). */
const ENVIRONMENT = ['HOME', 'HOSTNAME', 'PATH']

/** Mounts that an engine makes by itself; `/proc`, `/dev` and `/sys` with everything below them. */
const ENGINE_MOUNTS = ['/etc/hostname', '/etc/hosts', '/etc/resolv.conf', '/sbin/docker-init']
const KERNEL_MOUNTS = ['/proc', '/dev', '/sys']

/** Namespaces that a container must not share with the host. */
const NAMESPACES = ['ipc', 'mnt', 'net', 'pid', 'uts']

/** What the profile fixes and a posture can be compared with. */
export interface SealedProfile {
  readonly user: WorkerUser
  /** Ids of the host's namespaces, such as `net:[4026531840]`; empty where they cannot be read. */
  readonly hostNamespaces: readonly string[]
}

/** Compares what a worker found inside with the sealed profile: one plain sentence per difference. Pure. */
export function sealedDifferences(posture: Posture, profile: SealedProfile): readonly string[] {
  return [
    ...identity(posture, profile.user),
    ...privileges(posture),
    ...network(posture),
    ...mounts(posture),
    ...others('variable', posture.environment, ENVIRONMENT),
    ...namespaces(posture, profile.hostNamespaces),
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

function privileges(posture: Posture): string[] {
  const found = Object.entries(posture.capabilities)
    .filter(([, mask]) => !/^0+$/.test(mask))
    .map(([set, mask]) => `The worker has capabilities: ${set} is ${mask}.`)
  if (!posture.noNewPrivs) found.push('The worker can gain privileges: no-new-privileges is off.')
  if (posture.seccomp !== 2) found.push(`No system call filter: seccomp is ${posture.seccomp}, not 2.`)
  return found
}

function network(posture: Posture): string[] {
  const found = others('network interface', posture.interfaces, ['lo'])
  if (posture.routes.length > 0) found.push(`The worker has routes: ${quoted(posture.routes)}.`)
  return found
}

function mounts(posture: Posture): string[] {
  const found: string[] = []
  if (!posture.rootReadOnly) found.push('The root file system can be written.')
  const known = [...ENGINE_MOUNTS, '/', '/tmp', RUN_DIR, WORKSPACE_DIR]
  const strange = posture.mounts
    .map(({ target }) => target)
    .filter((target) => !known.includes(target) && !KERNEL_MOUNTS.some((top) => within(target, top)))
  if (strange.length > 0) found.push(`The worker has other mounts: ${quoted(strange)}.`)
  found.push(...mountProblem(posture, RUN_DIR, ['ro']))
  found.push(...mountProblem(posture, WORKSPACE_DIR, []))
  found.push(...mountProblem(posture, '/tmp', ['noexec', 'nosuid', 'nodev']))
  return found
}

function mountProblem(posture: Posture, target: string, wanted: readonly string[]): string[] {
  const mount = posture.mounts.find((candidate) => candidate.target === target)
  if (!mount) return [`Nothing is mounted at ${target}.`]
  const options = mount.options.split(',')
  const missing = wanted.filter((option) => !options.includes(option))
  return missing.length > 0 ? [`${target} is not mounted ${missing.join(', ')}.`] : []
}

function namespaces(posture: Posture, host: readonly string[]): string[] {
  const shared = posture.namespaces.filter((name) => host.includes(name))
  const named = NAMESPACES.filter((name) => !posture.namespaces.some((id) => id.startsWith(`${name}:`)))
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
