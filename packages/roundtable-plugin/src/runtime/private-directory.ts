import { chmodSync, chownSync, lstatSync, mkdirSync, realpathSync } from 'node:fs'
import { isAbsolute, resolve, sep } from 'node:path'
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
 * @throws SandboxPluginError `root_refused`, naming `what`
 */
export function privateRoot(what: string, path: string, owner: Account): string {
  if (!isAbsolute(path)) throw refused(what, path, 'is not absolute. Give the whole path')
  if (resolve(path) === sep)
    throw refused(what, path, 'is the root of the file system. Give it its own directory')
  try {
    if (mkdirSync(path, { recursive: true, mode: 0o700 }) !== undefined) give(path, owner)
    const real = realpathSync(path)
    const problem = privacyProblem(real, owner)
    if (problem !== undefined) throw refused(what, path, problem)
    return real
  } catch (cause) {
    if (SandboxPluginError.isInstance(cause)) throw cause
    const reason = (cause as NodeJS.ErrnoException).code ?? 'unknown error'
    throw new SandboxPluginError('root_refused', `${what} ${path} cannot be made or read: ${reason}`, {
      cause,
    })
  }
}

/** Sets mode 0700 and, for a root host, the owner. */
export function give(path: string, owner: Account): void {
  chmodSync(path, 0o700)
  if (process.geteuid?.() === 0) chownSync(path, owner.uid, owner.gid)
}

/** What is wrong with a directory that must be private, with how to mend it; `undefined` when nothing is. */
export function privacyProblem(path: string, owner: Account): string | undefined {
  const stat = lstatSync(path)
  if (!stat.isDirectory()) return 'is not a directory. Remove it, or name another'
  if (process.geteuid === undefined) return undefined
  if (stat.uid !== owner.uid) {
    return `belongs to uid ${stat.uid}, not to ${owner.uid}. Run: chown ${owner.uid}:${owner.gid} ${path}`
  }
  if ((stat.mode & 0o077) === 0) return undefined
  return `is open to other accounts (mode ${(stat.mode & 0o777).toString(8)}). Run: chmod 700 ${path}`
}

/** True when `inner` is `outer` or below it. Both must be real paths. */
export function isWithin(inner: string, outer: string): boolean {
  return inner === outer || inner.startsWith(outer.endsWith(sep) ? outer : outer + sep)
}

function refused(what: string, path: string, problem: string): SandboxPluginError {
  return new SandboxPluginError('root_refused', `${what} ${path} ${problem}.`)
}
