/**
 * The version of the messages in this package. Host and worker both check it: operators build images with
 * their own content, so the two sides do run different versions. Raised on every change that an older peer
 * would misread.
 */
export const PROTOCOL_VERSION = 1

/** The image label that holds {@link PROTOCOL_VERSION} as a decimal string; checked before a container is created. */
export const PROTOCOL_LABEL = 'sandbox.protocol'

/** What a refused peer is told. Names both versions, and the command that mends it. */
export function protocolMismatch(worker: number | string, host: number = PROTOCOL_VERSION): string {
  return (
    `The worker speaks protocol ${worker}, the host speaks protocol ${host}. ` +
    'Rebuild the image with the host\'s version: "sandbox-worker build".'
  )
}
