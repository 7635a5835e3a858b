import { chmodSync, lstatSync, mkdirSync, realpathSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { BotError } from './errors.ts'

/** The account that a worker runs as when the bot itself is root: fixed, high, and not that of "nobody". */
export const ROOT_WORKER = { uid: 64_200, gid: 64_200 } as const

/** Where the bot keeps everything. All paths are absolute. */
export interface StateDir {
  readonly path: string
  /** Sockets and stage of the workers. */
  readonly runRoot: string
  /** One workspace a channel, mounted writable into its worker. */
  readonly workspaceRoot: string
  /** Everything of the channels in Pi mode. */
  readonly partyDir: string
  /** Which channels the sandbox serves. */
  readonly stateFile: string
  /** Which channels are served in Pi mode. */
  readonly piStateFile: string
  /** Which channels of the configuration were turned on before. */
  readonly knownChannels: string
  /** Key files; only for the bot's own account. */
  readonly keysDir: string
  /** Set when the bot is root: the account that workers run as. */
  readonly worker?: { readonly uid: number; readonly gid: number }
}

/** The state directory of an account: short, since Unix socket paths below it have at most 107 bytes. */
export function defaultStatePath(uid = ownUid()): string {
  return `/tmp/sandbox-demo-${uid}`
}

/**
 * Creates the state directory, or checks the one that is there: of this account, no link, closed to others.
 * For root it is passable (0711), since workers then have an account of their own.
 *
 * @throws BotError `state_dir`.
 */
export function openStateDir(options: { path?: string; uid?: number } = {}): StateDir {
  const uid = options.uid ?? ownUid()
  const asked = options.path ?? defaultStatePath(uid)
  privateDir(asked, uid, uid === 0 ? 0o711 : 0o700)
  const path = join(realpathSync(dirname(asked)), asked.slice(dirname(asked).length))
  const state = {
    path,
    runRoot: join(path, 'run'),
    workspaceRoot: join(path, 'workspaces'),
    partyDir: join(path, 'pi'),
    stateFile: join(path, 'state', 'channels.json'),
    piStateFile: join(path, 'state', 'pi-channels.json'),
    knownChannels: join(path, 'state', 'known-channels.json'),
    keysDir: join(path, 'keys'),
  }
  privateDir(dirname(state.stateFile), uid, 0o700)
  privateDir(state.keysDir, uid, 0o700)
  return uid === 0 ? { ...state, worker: ROOT_WORKER } : state
}

/** Names the first directory above `path`, itself included, that another account cannot pass; else `undefined`. */
export function impassable(path: string): string | undefined {
  const parent = dirname(path)
  const above = parent === path ? undefined : impassable(parent)
  if (above !== undefined) return above
  return (lstatSync(path).mode & 0o001) === 0 ? path : undefined
}

function ownUid(): number {
  return process.getuid?.() ?? 0
}

function privateDir(path: string, uid: number, mode: number): void {
  try {
    mkdirSync(path, { mode, recursive: false })
  } catch (error) {
    const code = (error as NodeJS.ErrnoException).code
    if (code !== 'EEXIST') {
      throw refuse(path, `cannot be created (${code ?? 'unknown'})`, 'name another with --state DIR', error)
    }
  }
  const found = lstatSync(path)
  if (found.isSymbolicLink()) throw refuse(path, 'is a link', 'remove it, or name another with --state DIR')
  if (!found.isDirectory()) throw refuse(path, 'is not a directory', 'name another with --state DIR')
  if (found.uid !== uid) {
    throw refuse(path, `belongs to uid ${found.uid}, not to ${uid}`, 'name another with --state DIR')
  }
  const extra = found.mode & 0o777 & ~mode
  if (extra !== 0) {
    const octal = (found.mode & 0o777).toString(8).padStart(4, '0')
    throw refuse(path, `is open to others (mode ${octal})`, `run: chmod ${mode.toString(8)} ${path}`)
  }
  chmodSync(path, mode)
}

function refuse(path: string, what: string, mend: string, cause?: unknown): BotError {
  return new BotError('state_dir', `The directory ${path} ${what}: ${mend}.`, { cause })
}
