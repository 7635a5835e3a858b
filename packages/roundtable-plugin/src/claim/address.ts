import type { InboundMessage } from '../host-contract.ts'

/**
 * True for a message that a sandbox channel answers: from a person, in a shared channel, that mentions the bot or
 * replies to it. Never throws.
 */
export function isSandboxAddress(message: InboundMessage): boolean {
  if (message.authorIsBot || message.integration !== undefined || message.isDirect) return false
  return message.mentionsBot || message.repliesToBot
}
