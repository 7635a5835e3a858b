import type { InboundMessage } from '../host-contract.ts'

/**
 * A message as it is now. What a surface added of its own to it stays as it is: that may be something of its library that
 * cannot be copied.
 */
export function copyOf(given: InboundMessage): InboundMessage {
  const { attachments, reference, forwarded, speaker } = given
  return {
    ...given,
    attachments: attachments.map((one) => ({ ...one })),
    ...(reference && {
      reference: { ...reference, attachments: reference.attachments.map((one) => ({ ...one })) },
    }),
    ...(forwarded && { forwarded: { ...forwarded } }),
    ...(speaker && { speaker: { ...speaker } }),
  }
}
