import type { HostLogger, InboundMessage } from '../src/host-contract.ts'

/** A message from Ann that addresses the bot in `fake:1`. */
export function message(parts: Partial<InboundMessage> = {}): InboundMessage {
  return {
    channel: 'fake:1',
    messageId: 'm-1',
    text: 'hello',
    attachments: [],
    authorId: 'u-ann',
    authorName: 'Ann',
    authorIsBot: false,
    isDirect: false,
    mentionsBot: true,
    repliesToBot: false,
    ...parts,
  }
}

/** A logger that keeps its lines. */
export function recordingLogger() {
  const lines: { level: string; fields: Record<string, unknown>; message: string }[] = []
  const at = (level: string) => (fields: object, text: string) => {
    lines.push({ level, fields: { ...fields }, message: text })
  }
  const logger: HostLogger = { info: at('info'), warn: at('warn'), error: at('error') }
  return { logger, lines, levels: () => lines.map(({ level }) => level) }
}
