import { SEALED_PLACEHOLDER } from '@sandbox/protocol'

export { Guest, type GuestAnswer, type GuestRequest } from '@sandbox/testing'

/** Headers of a call of a turn, as our guest sends them. */
export function callHeaders(nonce: string): Record<string, string> {
  return {
    'x-sandbox-turn': nonce,
    authorization: `Bearer ${SEALED_PLACEHOLDER}`,
    'content-type': 'application/json',
  }
}
