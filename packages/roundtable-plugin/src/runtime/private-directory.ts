import {
  chmodSync,
  closeSync,
  constants,
  fchmodSync,
  fchownSync,
  lstatSync,
  mkdirSync,
  openSync,
  readdirSync,
  realpathSync,
  type Stats,
} from 'node:fs'
import { basename, dirname, isAbsolute, join, resolve, sep } from 'node:path'
import { SandboxPluginError } from '../errors.ts'

/** An account. */
export interface Account {
  readonly uid: number
  readonly gid: number
}

/**
 * The account that workers run as, and that owns every directory they see. A host that is not root can only use
 * its own; a root host must name one that is not root.
 * @throws SandboxPluginError `user_refused`
 */
export function workerAccount(named?: Partial<Account>, host: Account = hostAccount()): Account {
  const uid = named?.uid
  const gid = named?.gid
  if (host.uid !== 0) {
    if ((uid ?? host.uid) === host.uid && (gid ?? host.gid) === host.gid) return host
    throw new SandboxPluginError(
      'user_refused',
      `uid and gid must be those of the host (${host.uid}:${host.gid}), as it is not root. Leave them out.`,
    )
  }
  if (isId(uid) && isId(gid)) return { uid, gid }
  throw new SandboxPluginError(
    'user_refused',
    'This host runs as root, and workers never do. Run it as another account, or name a uid and a gid for the workers that are both above 0.',
  )
}

function isId(value: number | undefined): value is number {
  return Number.isInteger(value) && (value as number) > 0 && (value as number) < 4_294_967_295
}

function hostAccount(): Account {
  return { uid: process.geteuid?.() ?? -1, gid: process.getegid?.() ?? -1 }
}

/**
 * Makes a directory private to an account, or checks that it already is. Returns its real path.
 * @throws SandboxPluginError `root_refused` or, when it is no path at all, `options_invalid`; both name `what`
 */
export function privateRoot(what: string, path: string, owner: Account): string {
  if (typeof path !== 'string' || path === '') {
    const found = path === null || path === '' ? JSON.stringify(path) : typeof path
    throw new SandboxPluginError(
      'options_invalid',
      `${what}: must be the absolute path of a directory, and is ${found}.`,
    )
  }
  if (!isAbsolute(path)) throw refused(what, path, 'is not absolute. Give the whole path')
  if (resolve(path) === sep)
    throw refused(what, path, 'is the root of the file system. Give it its own directory')
  try {
    const real = makeMissing(what, path, owner)
    const problem = privacyProblem(real, owner)
    if (problem !== undefined) throw refused(what, path, problem)
    return real
  } catch (cause) {
    if (SandboxPluginError.isInstance(cause)) throw cause
    throw refused(what, path, failureText((cause as NodeJS.ErrnoException).code, path, owner), cause)
  }
}

/** Directories of the kernel: nothing can be kept there, and making a directory in `/proc` never ends on Node. */
const KERNEL = ['/proc', '/sys', '/dev']

/** Makes every missing part of a path. Of a root host, those above the last let the workers pass, and no more. */
function makeMissing(what: string, path: string, owner: Account): string {
  const missing: string[] = []
  let there = resolve(path)
  while (lstatSync(there, { throwIfNoEntry: false }) === undefined) {
    missing.unshift(basename(there))
    there = dirname(there)
  }
  let real = realpathSync(there)
  if (KERNEL.some((kernel) => isWithin(real, kernel))) {
    throw refused(what, path, 'belongs to the kernel. Choose a directory on a disk')
  }
  for (const [index, name] of missing.entries()) {
    real = join(real, name)
    mkdirSync(real, { mode: 0o700 })
    if (index === missing.length - 1) give(real, owner)
    else if (process.geteuid?.() === 0) chmodSync(real, 0o711)
  }
  return real
}

/** What went wrong, and how to mend it. */
function failureText(code: string | undefined, path: string, owner: Account): string {
  switch (code) {
    case 'ENOTDIR':
    case 'EEXIST':
      return 'leads through a file. Remove that file, or choose another path'
    case 'ENOENT':
    case 'ELOOP':
      return 'leads through a link that goes nowhere. Remove that link, or choose another path'
    case 'EROFS':
      return 'is on a file system that is mounted read-only. Choose a path on another'
    case 'EACCES':
    case 'EPERM':
      return `cannot be made or read by this account. Choose another path, or let root run: install -d -m 700 -o ${owner.uid} -g ${owner.gid} ${path}`
    default:
      return `cannot be made or read (${code ?? 'unknown error'}). Choose another path`
  }
}

const DIRECTORY = constants.O_RDONLY | constants.O_DIRECTORY | constants.O_NOFOLLOW

/**
 * Sets the mode of a directory to 0700 and, for a root host, its owner. What a root host does is done to the directory
 * that it opened: a plain process may put a link in its place meanwhile.
 */
export function give(path: string, owner: Account): void {
  if (process.geteuid?.() !== 0) {
    chmodSync(path, 0o700)
    return
  }
  const directory = openSync(path, DIRECTORY)
  try {
    fchmodSync(directory, 0o700)
    fchownSync(directory, owner.uid, owner.gid)
  } finally {
    closeSync(directory)
  }
}

/** What is wrong with a directory that must be private, with how to mend it; `undefined` when nothing is. */
export function privacyProblem(path: string, owner: Account): string | undefined {
  const stat = lstatSync(path)
  if (!stat.isDirectory()) return 'is not a directory. Remove it, or name another'
  if (process.geteuid === undefined) return undefined
  const foreign = stat.uid !== owner.uid
  if (!foreign && (stat.mode & 0o077) === 0) return undefined
  const problem = foreign
    ? `belongs to uid ${stat.uid}, not to ${owner.uid}`
    : `is open to other accounts (mode ${(stat.mode & 0o777).toString(8)})`
  const reason = whyNotOurs(path, stat, foreign)
  if (reason !== undefined) return `${problem}. It ${reason}: choose another path, which is made when missing`
  return `${problem}. Run: ${foreign ? `chown ${owner.uid}:${owner.gid}` : 'chmod 700'} ${path}`
}

const SYSTEM = /^\/(?:[^/]+|(?:usr|etc|bin|boot|lib\w*|sbin)\/.*|(?:var|home)\/[^/]+)$/

/** Why an operator must not be told to take a directory over; `undefined` when it may be ours. */
function whyNotOurs(path: string, { mode }: Stats, foreign: boolean): string | undefined {
  if (SYSTEM.test(path) || (mode & 0o1000) !== 0) return 'is a directory of the system'
  if (!foreign) return undefined
  try {
    return readdirSync(path).length === 0 ? undefined : 'is not empty'
  } catch {
    return 'cannot be looked into'
  }
}

/** True when `inner` is `outer` or below it. Both must be real paths. */
export function isWithin(inner: string, outer: string): boolean {
  return inner === outer || inner.startsWith(outer.endsWith(sep) ? outer : outer + sep)
}

function refused(what: string, path: string, problem: string, cause?: unknown): SandboxPluginError {
  const options = cause === undefined ? {} : { cause }
  return new SandboxPluginError('root_refused', `${what} ${path} ${problem}.`, options)
}
