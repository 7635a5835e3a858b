import type { ChannelKey } from '../host-contract.ts'
import type { FreshStarts } from './fresh-start.ts'
import type { LeftoverWorkers } from './leftover-workers.ts'
import { checkChannel, checkSpeakerId } from './turn-snapshot.ts'
import type { WorkspaceLayout } from './workspace-layout.ts'
import type { WorkspaceUse } from './workspace-use.ts'

/** What a {@link SealedErasure} works with. */
export interface SealedErasureParts {
  readonly layout: Pick<WorkspaceLayout, 'workspaceOf' | 'workspaces' | 'forgetSpeaker' | 'erase'>
  readonly uses: WorkspaceUse
  readonly pool: { cool(channel: ChannelKey): Promise<void> }
  readonly leftovers: LeftoverWorkers
  readonly fresh: FreshStarts
}

/** Takes away what is kept of channels and speakers, when no worker uses it. */
export class SealedErasure {
  readonly #parts: SealedErasureParts

  constructor(parts: SealedErasureParts) {
    this.#parts = parts
  }

  /** Erases a channel's workspace; `stop` ends its turn. @throws SandboxPluginError `input_invalid` */
  async channel(channel: ChannelKey, stop: () => void): Promise<void> {
    checkChannel(channel)
    const { layout, uses, pool, leftovers, fresh } = this.#parts
    const erase = async () => {
      await pool.cool(channel)
      await leftovers.remove(channel)
      await layout.erase(channel)
      fresh.forget(channel)
    }
    await uses.alone(layout.workspaceOf(channel), erase, stop)
  }

  /** Forgets a speaker between turns; returns in how many workspaces. @throws SandboxPluginError `input_invalid` */
  async speaker(speakerId: string, channel?: ChannelKey): Promise<number> {
    checkSpeakerId(speakerId)
    if (channel !== undefined) checkChannel(channel)
    const { layout, uses, leftovers } = this.#parts
    const forget = async (workspace: string) => {
      // A worker that is still there could write what it remembers once more.
      const holders = leftovers.channels().filter((one) => layout.workspaceOf(one) === workspace)
      for (const holder of holders) await leftovers.remove(holder)
      return await layout.forgetSpeaker(workspace, speakerId)
    }
    const workspaces = channel === undefined ? await layout.workspaces() : [layout.workspaceOf(channel)]
    const forgotten = workspaces.map((one) => uses.alone(one, () => forget(one)))
    return (await Promise.all(forgotten)).filter(Boolean).length
  }
}
