import { createHash, randomBytes } from 'node:crypto'
import { lstatSync, mkdirSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { limits, SOCKET_NAME } from '@sandbox/protocol'
import { SandboxPluginError } from '../errors.ts'
import type { ChannelKey } from '../host-contract.ts'
import { ErasedDirectories } from './erased-directories.ts'
import type { HeldDirectory } from './held-directory.ts'
import { lockForThisHost } from './host-lock.ts'
import { readInstallId } from './install-id.ts'
import { archiveSessions } from './pi-archive.ts'
import { type NewAttachment, putAttachment } from './pi-attachment.ts'
import { channelSegment, openChannelRoot } from './pi-record.ts'
import { type Account, give, privateRoot, workerAccount } from './private-directory.ts'
import { removeRunDir } from './run-directory.ts'
import type { PreparedWorker } from './workspace-layout.ts'

/** What {@link openPiLayout} takes. */
export interface PiLayoutOptions {
  /** Absolute; private to the workers' account. Made when missing. */
  readonly partyDir: string
  /** The workers' account; absent means the host's own. */
  readonly user?: Partial<Account>
}

/**
 * Every directory of a Pi installation: `<partyDir>/<segment>/{run,workspace/{attachments,outbox,sessions}}`. Two keys
 * that would share a segment are refused by every method that takes a channel (`channel_alias`).
 */
export interface PiLayout {
  /** Marks what belongs to this party directory; 32 lower-case hex digits, the same after a restart. */
  readonly installId: string
  /** Marks what belongs to this start of the host. */
  readonly epoch: string
  readonly user: Account
  /** Real path. */
  readonly partyDir: string
  /** Makes the channel's directory, or checks that it is the channel's. */
  claim(channel: ChannelKey): void
  /** Checks that the channel's directory, where there is one, is the channel's. Makes nothing. */
  check(channel: ChannelKey): void
  /** Path of a channel's workspace, which may not be there yet. */
  workspaceOf(channel: ChannelKey): string
  /** Makes the directories of one worker. A guest's links where directories belong are replaced. */
  prepare(channel: ChannelKey): Promise<PreparedWorker>
  /** Where the host puts files for the channel's worker. Made when missing. */
  attachmentDir(channel: ChannelKey): string
  /** Where the channel's conversations lie, as JSONL. Made when missing. */
  sessionsDir(channel: ChannelKey): string
  /** Writes a file for the worker, in place of one of that name. No link of a guest is followed. */
  putAttachment(channel: ChannelKey, file: NewAttachment): Promise<void>
  /** Moves the conversations aside; returns their names. The next worker starts without history. */
  archive(channel: ChannelKey, now?: Date): Promise<readonly string[]>
  /** Removes everything of the channel, whose worker must be gone. May be tried again, also after a crash in the middle. */
  erase(channel: ChannelKey): Promise<void>
  /** Removes run directories that no worker uses, of dead hosts and of this one, and what erasures left. */
  sweep(): Promise<readonly string[]>
  /** Gives the party directory back. Idempotent. */
  close(): void
}

const RUN_NAME = /^[0-9a-f]{8}$/

/**
 * Opens the party directory: checks it, makes it when missing (mode 0700), and takes it for this process.
 * @throws SandboxPluginError `user_refused`, `root_refused`, `options_invalid`, `run_root_locked`
 */
export function openPiLayout(options: PiLayoutOptions): PiLayout {
  const user = workerAccount(options.user)
  const partyDir = privateRoot('partyDir', options.partyDir, user)
  // The shortest key there is has three characters.
  socketPathIn(join(partyDir, 'a_b', 'run', '00000000'), partyDir)
  const unlock = lockForThisHost('party directory', partyDir)
  try {
    return new Layout({ user, partyDir, installId: readInstallId(partyDir), unlock })
  } catch (cause) {
    unlock()
    throw cause
  }
}

function socketPathIn(runDir: string, partyDir: string): string {
  const path = join(runDir, SOCKET_NAME)
  const bytes = Buffer.byteLength(path)
  if (bytes <= limits.SOCKET_PATH_BYTES) return path
  throw new SandboxPluginError(
    'root_refused',
    `partyDir ${partyDir} is ${bytes - limits.SOCKET_PATH_BYTES} bytes too long for this channel: its socket would have a path of ${bytes} bytes, and the system allows ${limits.SOCKET_PATH_BYTES}. Choose a shorter path.`,
  )
}

class Layout implements PiLayout {
  readonly installId: string
  readonly epoch = randomBytes(4).toString('hex')
  readonly user: Account
  readonly partyDir: string
  /** Run directories in use, as `<segment>/<name>`. */
  readonly #live = new Set<string>()
  readonly #erased: ErasedDirectories
  #unlock: (() => void) | undefined

  constructor(parts: Pick<Layout, 'installId' | 'user' | 'partyDir'> & { unlock(): void }) {
    this.installId = parts.installId
    this.user = parts.user
    this.partyDir = parts.partyDir
    this.#unlock = parts.unlock
    this.#erased = new ErasedDirectories(parts.partyDir)
  }

  claim(channel: ChannelKey): void {
    openChannelRoot(this.partyDir, channel, this.user)[Symbol.dispose]()
  }

  check(channel: ChannelKey): void {
    const path = join(this.partyDir, channelSegment(channel))
    if (lstatSync(path, { throwIfNoEntry: false }) !== undefined) this.claim(channel)
  }

  workspaceOf(channel: ChannelKey): string {
    return join(this.partyDir, channelSegment(channel), 'workspace')
  }

  async prepare(channel: ChannelKey): Promise<PreparedWorker> {
    const segment = channelSegment(channel)
    const name = randomBytes(4).toString('hex')
    this.#makeWorkspace(channel)
    const runDir = join(this.partyDir, segment, 'run', name)
    const socketPath = socketPathIn(runDir, this.partyDir)
    const mark = `${segment}/${name}`
    this.#live.add(mark)
    try {
      this.#makeRunDir(channel, name)
    } catch (cause) {
      this.#live.delete(mark)
      throw cause
    }
    const dispose = async () => {
      this.#live.delete(mark)
      await removeRunDir(runDir)
    }
    const channelHash = createHash('sha256').update(channel).digest('hex')
    return { channelHash, runDir, socketPath, workspaceDir: this.workspaceOf(channel), dispose }
  }

  attachmentDir(channel: ChannelKey): string {
    this.#makeWorkspace(channel)
    return join(this.workspaceOf(channel), 'attachments')
  }

  sessionsDir(channel: ChannelKey): string {
    this.#makeWorkspace(channel)
    return join(this.workspaceOf(channel), 'sessions')
  }

  async putAttachment(channel: ChannelKey, file: NewAttachment): Promise<void> {
    using workspace = this.#workspace(channel)
    using directory = workspace.child('attachments', this.user)
    await putAttachment(directory, file, this.user)
  }

  async archive(channel: ChannelKey, now = new Date()): Promise<readonly string[]> {
    this.#makeWorkspace(channel)
    using workspace = this.#workspace(channel)
    using sessions = workspace.child('sessions', this.user)
    return await archiveSessions(sessions, this.user, now)
  }

  async sweep(): Promise<readonly string[]> {
    const removed: string[] = []
    for (const segment of readdirSync(this.partyDir)) {
      if (!segment.includes('_') || segment.startsWith('.')) continue
      for (const name of namesIn(join(this.partyDir, segment, 'run'))) {
        const mark = `${segment}/${name}`
        if (!RUN_NAME.test(name) || this.#live.has(mark)) continue
        await removeRunDir(join(this.partyDir, segment, 'run', name))
        removed.push(mark)
      }
    }
    return [...removed, ...(await this.#erased.sweep())]
  }

  async erase(channel: ChannelKey): Promise<void> {
    this.check(channel)
    await this.#erased.erase(channelSegment(channel))
  }

  close(): void {
    this.#unlock?.()
    this.#unlock = undefined
  }

  #makeRunDir(channel: ChannelKey, name: string): void {
    using root = openChannelRoot(this.partyDir, channel, this.user)
    using run = strict(root, 'run', this.user)
    mkdirSync(run.at(name), { mode: 0o700 })
    give(run.at(name), this.user)
  }

  #makeWorkspace(channel: ChannelKey): void {
    using workspace = this.#workspace(channel)
    for (const name of ['attachments', 'outbox', 'sessions']) {
      workspace.child(name, this.user)[Symbol.dispose]()
    }
  }

  #workspace(channel: ChannelKey): HeldDirectory {
    using root = openChannelRoot(this.partyDir, channel, this.user)
    return strict(root, 'workspace', this.user)
  }
}

/** A worker cannot reach these two directories' places; a link there was made by somebody on the host. */
function strict(root: HeldDirectory, name: string, owner: Account): HeldDirectory {
  try {
    return root.strict(name, owner)
  } catch (cause) {
    throw new SandboxPluginError(
      'root_refused',
      `The ${name} directory of a channel is no directory of its own. Move it away.`,
      { cause },
    )
  }
}

/** Nothing for a place that is no directory: what is wrong with it is said when its channel is used. */
function namesIn(directory: string): readonly string[] {
  if (lstatSync(directory, { throwIfNoEntry: false })?.isDirectory() !== true) return []
  return readdirSync(directory)
}
