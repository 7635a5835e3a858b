import type { ChannelKey, ChatSurface, InboundMessage, OutboundReply } from '@sandbox/roundtable-plugin'

/** What {@link tappedSurface} is told to do. */
export interface SurfaceTap {
  /** Words for whoever speaks to the bot while it takes no messages; `undefined` while it does. */
  readonly closed: () => string | undefined
  readonly onMessage?: (message: InboundMessage) => void
  readonly onReply?: (channel: ChannelKey, reply: OutboundReply) => void
}

/** A surface that can be closed for new messages while answers still go out, and that tells what passes. */
export function tappedSurface(surface: ChatSurface, tap: SurfaceTap): ChatSurface {
  const { startTyping, showStop, react, unreact, stop } = surface
  return {
    surface: surface.surface,
    ...(surface.supportsFiles === undefined ? {} : { supportsFiles: surface.supportsFiles }),
    start: (deliver) =>
      surface.start(async (message) => {
        const words = tap.closed()
        if (words === undefined) {
          tap.onMessage?.(message)
          return deliver(message)
        }
        if (isForBot(message)) await surface.sendReply(message.channel, { chunks: [words] })
      }),
    sendReply: async (channel, reply) => {
      await surface.sendReply(channel, reply)
      tap.onReply?.(channel, reply)
    },
    ...(stop && { stop: () => stop.call(surface) }),
    ...(startTyping && { startTyping: (channel) => startTyping.call(surface, channel) }),
    ...(showStop && { showStop: (channel) => showStop.call(surface, channel) }),
    ...(react && { react: (...what) => react.call(surface, ...what) }),
    ...(unreact && { unreact: (...what) => unreact.call(surface, ...what) }),
  }
}

function isForBot({ authorIsBot, isDirect, mentionsBot, repliesToBot }: InboundMessage): boolean {
  return !authorIsBot && (isDirect || mentionsBot || repliesToBot)
}
