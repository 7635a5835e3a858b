import { createHash, randomBytes } from 'node:crypto'
import { lstatSync, mkdirSync, readdirSync, type Stats } from 'node:fs'
import { lstat, mkdir, readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { forgetSpeaker } from '@sandbox/docker-worker'
import { limits, SOCKET_NAME } from '@sandbox/protocol'
import { SandboxPluginError } from '../errors.ts'
import type { ChannelKey } from '../host-contract.ts'
import { ErasedDirectories } from './erased-directories.ts'
import { lockForThisHost } from './host-lock.ts'
import { readInstallId } from './install-id.ts'
import { type Account, give, isWithin, privateRoot, workerAccount } from './private-directory.ts'
import { removeRunDir } from './run-directory.ts'

/** What {@link openWorkspaceLayout} takes. */
export interface WorkspaceLayoutOptions {
  readonly runRoot: string
  readonly workspaceRoot: string
  /** The workers' account; absent means the host's own. */
  readonly user?: Partial<Account>
}

/** The directories of one worker. */
export interface PreparedWorker {
  /** SHA-256 of the channel key, hexadecimal. */
  readonly channelHash: string
  /** Fresh; holds the worker's socket and nothing else. */
  readonly runDir: string
  readonly socketPath: string
  /** The channel's own; kept for later turns. */
  readonly workspaceDir: string
  /** Removes the run directory. Idempotent; after a rejection it may be tried again. */
  dispose(): Promise<void>
}

/** Every directory of an installation. */
export interface WorkspaceLayout {
  /** Marks what belongs to this run root; 32 lower-case hex digits, the same after a restart. */
  readonly installId: string
  /** Marks what belongs to this start of the host; 8 lower-case hex digits. */
  readonly epoch: string
  /** Who owns everything below both roots. */
  readonly user: Account
  /** Real paths. */
  readonly runRoot: string
  readonly workspaceRoot: string
  /** Path of a channel's workspace, which may not be there yet. */
  workspaceOf(channel: ChannelKey): string
  prepare(channel: ChannelKey): Promise<PreparedWorker>
  /** The workspaces that are there, by path. */
  workspaces(): Promise<readonly string[]>
  /** Forgets one speaker in a workspace, which no turn may use; true when there was something. */
  forgetSpeaker(workspaceDir: string, speakerId: string): Promise<boolean>
  /** Removes the channel's workspace, which no worker may use. May be tried again, also after a crash in the middle. */
  erase(channel: ChannelKey): Promise<void>
  /** Removes every run directory that no running turn uses, of dead hosts and of this one, and what erasures left. */
  sweep(): Promise<readonly string[]>
  /** Gives both roots back. Idempotent. */
  close(): void
}

const RUN_NAME = /^[0-9a-f]{8}-[0-9a-f]{8}$/
const WORKSPACE_NAME = /^[0-9a-f]{64}$/
const LONGEST_RUN_NAME = '00000000-00000000'

/**
 * Opens the run root and the workspace root: checks them, makes them when missing (mode 0700), and takes both for this
 * process.
 *
 * @throws SandboxPluginError `user_refused`, `root_refused`, `run_root_locked`
 */
export function openWorkspaceLayout(options: WorkspaceLayoutOptions): WorkspaceLayout {
  const user = workerAccount(options.user)
  const runRoot = privateRoot('runRoot', options.runRoot, user)
  const workspaceRoot = privateRoot('workspaceRoot', options.workspaceRoot, user)
  if (isWithin(runRoot, workspaceRoot) || isWithin(workspaceRoot, runRoot)) {
    throw new SandboxPluginError(
      'root_refused',
      'runRoot and workspaceRoot must be two directories, neither inside the other.',
    )
  }
  checkSocketPath(runRoot, LONGEST_RUN_NAME)
  const unlock = lockBoth(runRoot, workspaceRoot)
  try {
    const installId = readInstallId(runRoot)
    return new Layout({ user, runRoot, workspaceRoot, installId, unlock })
  } catch (cause) {
    unlock()
    throw cause
  }
}

/** Two hosts with run roots of their own must not share workspaces either. */
function lockBoth(runRoot: string, workspaceRoot: string): () => void {
  const unlockRunRoot = lockForThisHost('run root', runRoot)
  try {
    const unlockWorkspaces = lockForThisHost('workspace root', workspaceRoot)
    return () => {
      unlockWorkspaces()
      unlockRunRoot()
    }
  } catch (cause) {
    unlockRunRoot()
    throw cause
  }
}

/** The path of a socket in a directory below the run root. Throws `root_refused` when it is longer than the system allows. */
export function checkSocketPath(runRoot: string, name: string): string {
  const path = join(runRoot, name, SOCKET_NAME)
  const bytes = Buffer.byteLength(path)
  if (bytes <= limits.SOCKET_PATH_BYTES) return path
  const over = bytes - limits.SOCKET_PATH_BYTES
  throw new SandboxPluginError(
    'root_refused',
    `runRoot ${runRoot} is ${over} bytes too long: a socket below it would have ${bytes} bytes, and the system allows ${limits.SOCKET_PATH_BYTES}. Choose a shorter path.`,
  )
}

/** SHA-256 of a channel's key, hexadecimal. */
function hashOf(channel: ChannelKey): string {
  return createHash('sha256').update(channel).digest('hex')
}

class Layout implements WorkspaceLayout {
  readonly installId: string
  readonly epoch = randomBytes(4).toString('hex')
  readonly user: Account
  readonly runRoot: string
  readonly workspaceRoot: string
  readonly #live = new Set<string>()
  readonly #erased: ErasedDirectories
  #unlock: (() => void) | undefined

  constructor(parts: Pick<Layout, 'installId' | 'user' | 'runRoot' | 'workspaceRoot'> & { unlock(): void }) {
    this.installId = parts.installId
    this.user = parts.user
    this.runRoot = parts.runRoot
    this.workspaceRoot = parts.workspaceRoot
    this.#unlock = parts.unlock
    this.#erased = new ErasedDirectories(parts.workspaceRoot)
  }

  workspaceOf(channel: ChannelKey): string {
    return join(this.workspaceRoot, hashOf(channel))
  }

  async prepare(channel: ChannelKey): Promise<PreparedWorker> {
    const channelHash = hashOf(channel)
    const workspaceDir = this.#workspace(this.workspaceOf(channel))
    const name = `${this.epoch}-${randomBytes(4).toString('hex')}`
    const socketPath = checkSocketPath(this.runRoot, name)
    const runDir = join(this.runRoot, name)
    this.#live.add(name)
    try {
      await mkdir(runDir, { mode: 0o700 })
      give(runDir, this.user)
    } catch (cause) {
      this.#live.delete(name)
      throw cause
    }
    const dispose = async () => {
      try {
        await removeRunDir(runDir)
      } finally {
        this.#live.delete(name)
      }
    }
    return { channelHash, runDir, socketPath, workspaceDir, dispose }
  }

  async sweep(): Promise<readonly string[]> {
    // Read in one piece: what is there and in nobody's use now was left.
    const left = readdirSync(this.runRoot).filter((name) => RUN_NAME.test(name) && !this.#live.has(name))
    for (const name of left) await removeRunDir(join(this.runRoot, name))
    return [...left, ...(await this.#erased.sweep())]
  }

  async workspaces(): Promise<readonly string[]> {
    const names = await readdir(this.workspaceRoot)
    return names.filter((name) => WORKSPACE_NAME.test(name)).map((name) => join(this.workspaceRoot, name))
  }

  async forgetSpeaker(workspaceDir: string, speakerId: string): Promise<boolean> {
    if ((await lstat(workspaceDir).catch(() => undefined)) === undefined) return false
    return forgetSpeaker(this.#workspace(workspaceDir), speakerId)
  }

  async erase(channel: ChannelKey): Promise<void> {
    await this.#erased.erase(hashOf(channel))
  }

  close(): void {
    this.#unlock?.()
    this.#unlock = undefined
  }

  /** In one piece: a turn and a worker that is called off may both be prepared in a channel that is new. */
  #workspace(path: string): string {
    const there = lstatSync(path, { throwIfNoEntry: false })
    if (there === undefined) mkdirSync(path, { mode: 0o700 })
    else this.#checkOwn(path, there)
    // A guest may open its own workspace to all; nobody else gets past the root, and it is closed again here.
    give(path, this.user)
    return path
  }

  #checkOwn(path: string, there: Stats): void {
    const foreign = process.geteuid !== undefined && there.uid !== this.user.uid
    if (there.isDirectory() && !foreign) return
    const problem = foreign ? `belongs to uid ${there.uid}` : 'is not a directory'
    throw new SandboxPluginError('root_refused', `The workspace ${path} ${problem}. Move it away.`)
  }
}
