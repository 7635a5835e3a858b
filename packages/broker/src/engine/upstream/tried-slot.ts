import { type AuthSlot, CredentialError, Secret } from '@sandbox/credential-scope'
import { BrokerError } from '../errors.ts'

/**
 * A copy of a slot, tried with a value that is no credential.
 * @throws BrokerError `options_invalid`
 */
export function triedSlot(slot: AuthSlot, url: URL): AuthSlot {
  const copy = Object.freeze({ ...slot })
  try {
    new Secret({ token: 'sandbox-preflight', origin: url.origin }).applyTo({}, new URL(url), copy)
  } catch (cause) {
    if (!(cause instanceof TypeError) && !CredentialError.isInstance(cause)) throw cause
    throw new BrokerError('options_invalid', `authSlot: ${cause.message}`, { cause })
  }
  return copy
}
