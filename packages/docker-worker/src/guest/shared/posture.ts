import { closeSync, constants, openSync, readdirSync, readlinkSync, unlinkSync } from 'node:fs'
import type { Posture } from '@sandbox/protocol'
import { jsonBytes } from './json.ts'
import { readLimits } from './posture-limits.ts'
import { readSockets } from './posture-sockets.ts'
import { lines, readText } from './posture-text.ts'

/** Where to look; the defaults are the process itself. */
export interface PostureSources {
  /** Default `/proc/self`. */
  readonly self?: string
  /** Default `/`. */
  readonly root?: string
  /** Default `/sys/fs/cgroup`. */
  readonly cgroup?: string
  /** Default `/tmp`. */
  readonly tmp?: string
  /** Names of environment variables; default those of this process. */
  readonly environment?: readonly string[]
}

/** Stands at the end of a list that was cut: no profile knows it, so a cut list never passes for a whole one. */
export const CUT_MARK = '(cut)'

const MAX_MOUNTS = 256
const MAX_NAMES = 256
/** A hello is at most 64 KiB: the mounts may take half of it, each of the five lists of names a share of the rest. */
const MOUNTS_BYTES = 32_000
const NAMES_BYTES = 6_000
const UNKNOWN_SET = 'ffffffffffffffff'

/**
 * Examines this process from inside: identity, capabilities, network, mounts, environment names, limits, sockets. What
 * cannot be read is reported as the open state (all capabilities, root writable, no limit), so that a check fails
 * rather than passes.
 */
export function readPosture(sources: PostureSources = {}): Posture {
  const { self = '/proc/self', root = '/', environment = Object.keys(process.env) } = sources
  const { cgroup = '/sys/fs/cgroup', tmp = '/tmp' } = sources
  const status = statusFields(readText(`${self}/status`))
  const mounts = readMounts(readText(`${self}/mountinfo`))
  return {
    runtime: runtimeName(),
    uid: identity(status.get('Uid'), process.getuid?.()),
    gid: identity(status.get('Gid'), process.getgid?.()),
    groups: numbers(status.get('Groups')).slice(0, 64),
    capabilities: {
      inheritable: mask(status.get('CapInh')),
      permitted: mask(status.get('CapPrm')),
      effective: mask(status.get('CapEff')),
      bounding: mask(status.get('CapBnd')),
      ambient: mask(status.get('CapAmb')),
    },
    noNewPrivs: status.get('NoNewPrivs') === '1',
    seccomp: seccompMode(status.get('Seccomp')),
    interfaces: cutNames(interfaceNames(readText(`${self}/net/dev`)), 64),
    routes: cutNames(routedInterfaces(readText(`${self}/net/route`), readText(`${self}/net/ipv6_route`)), 64),
    rootReadOnly: mountedReadOnly(mounts) && writeFails(root),
    mounts: cutMounts(mounts),
    environment: cutNames([...environment].sort(), MAX_NAMES),
    namespaces: cutNames(namespaceIds(`${self}/ns`), 16),
    limits: readLimits({ self, cgroup, tmp }),
    sockets: cutNames(readSockets(self, root), 64),
  }
}

function runtimeName(): string {
  const { bun, node } = process.versions
  return bun === undefined ? `node ${node}` : `bun ${bun}`
}

function statusFields(text: string): Map<string, string> {
  const fields = new Map<string, string>()
  for (const line of lines(text)) {
    const colon = line.indexOf(':')
    if (colon > 0) fields.set(line.slice(0, colon), line.slice(colon + 1).trim())
  }
  return fields
}

function numbers(field: string | undefined): number[] {
  return (field ?? '').split(/\s+/).flatMap((word) => (/^\d+$/.test(word) ? [Number(word)] : []))
}

/** Real, effective, saved and file-system id: 0 when any of them is 0, else the effective one. */
function identity(field: string | undefined, fallback: number | undefined): number {
  const ids = numbers(field)
  if (ids.includes(0)) return 0
  return ids[1] ?? fallback ?? 0
}

function mask(field: string | undefined): string {
  return field !== undefined && /^[0-9a-f]{1,16}$/.test(field) ? field : UNKNOWN_SET
}

function seccompMode(field: string | undefined): 0 | 1 | 2 {
  if (field === '1') return 1
  return field === '2' ? 2 : 0
}

/** `/proc/net/dev`: two header lines, then `  name: counters`. */
function interfaceNames(text: string): string[] {
  return lines(text)
    .slice(2)
    .map((line) => line.split(':')[0]?.trim() ?? '')
}

/** `/proc/net/route` has the name in its first column, `/proc/net/ipv6_route` in its last. */
function routedInterfaces(ipv4: string, ipv6: string): string[] {
  const names = new Set<string>()
  for (const line of lines(ipv4).slice(1)) names.add(line.split(/\s+/)[0] ?? '')
  for (const line of lines(ipv6)) names.add(line.trim().split(/\s+/).at(-1) ?? '')
  names.delete('lo')
  return [...names].sort()
}

/** proc_pid_mountinfo(5): `36 35 98:0 /root /target options [tags] - type source super-options`. */
function readMounts(text: string): Posture['mounts'] {
  return lines(text).map((line) => {
    const [before = '', after = ''] = line.split(' - ')
    const fields = before.split(' ')
    return {
      target: unescapeOctal(fields[4] ?? '').slice(0, 1024),
      type: (after.split(' ')[0] ?? '').slice(0, 64),
      options: (fields[5] ?? '').slice(0, 1024),
    }
  })
}

function unescapeOctal(text: string): string {
  return text.replace(/\\([0-7]{3})/g, (_, digits: string) => String.fromCharCode(Number.parseInt(digits, 8)))
}

function mountedReadOnly(mounts: Posture['mounts']): boolean {
  const root = mounts.findLast((mount) => mount.target === '/')
  return root?.options.split(',').includes('ro') ?? false
}

/** Asked only when the mount already says `ro`, so that no file appears on a host's own root. */
function writeFails(root: string): boolean {
  const path = `${root === '/' ? '' : root}/.sandbox-write-probe`
  try {
    closeSync(openSync(path, constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL, 0o600))
  } catch {
    return true
  }
  unlinkSync(path)
  return false
}

function namespaceIds(directory: string): string[] {
  try {
    return readdirSync(directory)
      .filter((name) => !name.endsWith('_for_children'))
      .sort()
      .map((name) => readlinkSync(`${directory}/${name}`))
  } catch {
    return []
  }
}

function cutNames(names: readonly string[], max: number): string[] {
  return cutList(
    names.map((name) => (name.length > 256 ? CUT_MARK : name)),
    max,
    NAMES_BYTES,
    CUT_MARK,
  )
}

function cutMounts(mounts: Posture['mounts']): Posture['mounts'] {
  return cutList(mounts, MAX_MOUNTS, MOUNTS_BYTES, { target: CUT_MARK, type: '', options: '' })
}

function cutList<Item>(items: readonly Item[], max: number, maxBytes: number, mark: Item): Item[] {
  const kept: Item[] = []
  let bytes = 0
  for (const item of items) {
    bytes += jsonBytes(item) + 1
    if (bytes > maxBytes || (kept.length === max - 1 && items.length > max)) return [...kept, mark]
    kept.push(item)
  }
  return kept
}
