import { errorText } from '../error-text.ts'
import { SandboxPluginError } from '../errors.ts'
import type { BackgroundTurn, ChannelKey, InboundMessage, ScheduledOutcome } from '../host-contract.ts'
import type { ChannelQueue } from './channel-queue.ts'
import type { Router } from './router.ts'

/** Everything that can be done with a channel's conversation. */
export interface Conversations {
  /** Resolves when the message's turn is over, or the message was dropped. Never rejects. */
  handle(message: InboundMessage): Promise<void>
  /** Starts over, after the turns that are queued. Resolves to the kind of conversation. */
  startFresh(channel: ChannelKey): Promise<string>
  /** Tells the running turn to stop, at once. Waiting turns still run. */
  stop(channel: ChannelKey): boolean
  /** Runs a turn that nobody wrote. Never rejects. */
  background(turn: BackgroundTurn): Promise<ScheduledOutcome>
  /** `busy` while anything runs or waits. */
  deleteConversation(channel: ChannelKey): Promise<'deleted' | 'busy'>
}

/** The conversations of a host. */
export function conversations(router: Router, queue: ChannelQueue): Conversations {
  const owner = (channel: ChannelKey) => {
    const claim = router.ownerOf(channel)
    if (claim !== undefined) return claim
    throw new SandboxPluginError('conversation_unowned', `no conversation owns ${channel}`)
  }
  return {
    handle: (message) => router.handle(message),
    startFresh: (channel) => queue.run(channel, async () => owner(channel).startFresh(channel)),
    stop: (channel) => router.ownerOf(channel)?.stop?.(channel) ?? false,
    background: (turn) => background(router, queue, turn),
    async deleteConversation(channel) {
      const claim = owner(channel)
      if (claim.deleteConversation === undefined) {
        throw new SandboxPluginError(
          'conversation_unowned',
          `the conversation of ${channel} cannot be deleted`,
        )
      }
      if (queue.size(channel) > 0) return 'busy'
      await queue.run(channel, async () => claim.deleteConversation?.(channel))
      return 'deleted'
    },
  }
}

async function background(
  router: Router,
  queue: ChannelQueue,
  turn: BackgroundTurn,
): Promise<ScheduledOutcome> {
  const { channel } = turn
  try {
    return await queue.run(channel, async () => {
      const claim = router.ownerOf(channel)
      if (claim === undefined) return { status: 'skipped', reason: `no conversation owns ${channel}` }
      if (claim.background === undefined)
        return { status: 'skipped', reason: `${claim.name} takes no such turns` }
      return await claim.background(turn)
    })
  } catch (error) {
    return { status: 'failed', error: errorText(error) }
  }
}
