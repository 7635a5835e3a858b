import { errorText } from '../error-text.ts'
import type { ChannelKey, HostLogger, HostSurfaces, OutboundReply } from '../host-contract.ts'
import { inTime } from '../in-time.ts'

/** What is needed to post a reply. */
export interface DeliveryParts {
  readonly surfaces: Pick<HostSurfaces, 'sendReply'>
  readonly logger: HostLogger
  /** Takes secrets out of a text for the log. */
  scrub(text: string): string
  /** How long a reply may take to be posted before the channel goes on without it. Omitted = two minutes. */
  readonly deliveryMs?: number
}

/**
 * Posts a reply. One that cannot be delivered is reported as that: its turn did not fail. A surface that says neither yes
 * nor no holds the channel for a while, not for ever. Never rejects.
 */
export async function deliver(
  { surfaces, logger, scrub, deliveryMs }: DeliveryParts,
  channel: ChannelKey,
  reply: OutboundReply,
): Promise<void> {
  try {
    await inTime(() => surfaces.sendReply(channel, reply), deliveryMs)
  } catch (error) {
    const cause = scrub(errorText(error))
    logger.error({ channel, category: 'delivery', cause }, 'a reply could not be delivered')
  }
}
