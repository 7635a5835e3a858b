import { DriverError, type WorkspaceSize, workspaceSize } from '@sandbox/docker-worker'
import { SandboxPluginError } from '../errors.ts'
import type { ChannelKey } from '../host-contract.ts'
import { untilAborted } from './turn-ending.ts'
import type { WorkspaceLayout } from './workspace-layout.ts'

/** What {@link WorkspaceGuard} needs. */
export interface WorkspaceGuardOptions {
  readonly layout: Pick<WorkspaceLayout, 'workspaceOf'>
  readonly limitBytes: number
  /** A turn left more behind than there may be. */
  onFull(channel: ChannelKey, problem: WorkspaceFull): void
}

/**
 * Measures what workers leave in their channels' workspaces: before a worker starts, and after each turn. A channel over
 * the limit gets no turn until there is less.
 */
export class WorkspaceGuard {
  readonly #options: WorkspaceGuardOptions
  /** Channels that were over the limit when they were measured last. */
  readonly #full = new Set<string>()
  /** Looks under way after a turn. */
  readonly #looking = new Map<string, Promise<void>>()

  constructor(options: WorkspaceGuardOptions) {
    this.#options = options
  }

  /**
   * Before a worker starts.
   * @throws WorkspaceFull, DriverError `aborted`
   */
  async check(channel: ChannelKey, signal: AbortSignal): Promise<void> {
    const { layout, limitBytes } = this.#options
    const directory = layout.workspaceOf(channel)
    const size = await sizeOf(directory, limitBytes, signal)
    if (size?.over === undefined) {
      this.#full.delete(channel)
      return
    }
    this.#full.add(channel)
    throw new WorkspaceFull(directory, size, limitBytes)
  }

  /**
   * Before a turn: waits for the look after the last one, and looks again when that found too much, since a worker that
   * goes on from turn to turn is not started anew. Where it did not, a worker is handed over at once.
   * @throws WorkspaceFull, or the reason of the signal
   */
  async admit(channel: ChannelKey, signal: AbortSignal): Promise<void> {
    const looking = this.#looking.get(channel)
    if (looking !== undefined) await untilAborted(looking, signal)
    if (this.#full.has(channel)) await this.check(channel, signal)
  }

  /** After a turn: looks as soon as nothing of it runs. Returns at once. */
  afterTurn(channel: ChannelKey, over: Promise<unknown>, signal: AbortSignal): void {
    const looking = over
      .then(() => this.check(channel, signal))
      .catch((problem: unknown) => {
        if (problem instanceof WorkspaceFull) this.#options.onFull(channel, problem)
      })
      .finally(() => {
        if (this.#looking.get(channel) === looking) this.#looking.delete(channel)
      })
    this.#looking.set(channel, looking)
  }

  /** Resolves when no look is under way. */
  async idle(): Promise<void> {
    await Promise.all(this.#looking.values())
  }
}

/** The size, or `undefined` where there is no workspace yet, or something else in its place: the layout sees to that. */
async function sizeOf(
  directory: string,
  limitBytes: number,
  signal: AbortSignal,
): Promise<WorkspaceSize | undefined> {
  try {
    return await workspaceSize(directory, { limitBytes, signal })
  } catch (error) {
    if (DriverError.isInstance(error) && error.code === 'spec_invalid') return undefined
    throw error
  }
}

/** A workspace takes more than it may. */
export class WorkspaceFull extends SandboxPluginError {
  constructor(directory: string, { over, bytes, entries }: WorkspaceSize, limitBytes: number) {
    const what = {
      bytes: `${bytes} bytes and perhaps more, and ${limitBytes} are allowed`,
      entries: `${entries} files and perhaps more, or a directory that cannot be read`,
      depth: 'directories that are nested too deep',
    }[over ?? 'bytes']
    const mend = 'Its channel gets no turn until there is less: remove files there, or raise workspaceBytes.'
    super('workspace_full', `The workspace ${directory} holds ${what}. ${mend}`)
  }
}
