import type { ChannelKey, HostLogger, HostSurfaces, OutboundReply } from '../host-contract.ts'

/** What is needed to post a reply. */
export interface DeliveryParts {
  readonly surfaces: Pick<HostSurfaces, 'sendReply'>
  readonly logger: HostLogger
  /** Takes secrets out of a text for the log. */
  scrub(text: string): string
}

/** Posts a reply. One that cannot be delivered is reported as that: its turn did not fail. Never rejects. */
export async function deliver(
  { surfaces, logger, scrub }: DeliveryParts,
  channel: ChannelKey,
  reply: OutboundReply,
): Promise<void> {
  try {
    await surfaces.sendReply(channel, reply)
  } catch (error) {
    const cause = scrub(error instanceof Error ? error.message : String(error))
    logger.error({ channel, category: 'delivery', cause }, 'a reply could not be delivered')
  }
}
