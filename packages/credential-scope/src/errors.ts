const brand = Symbol.for('@sandbox/credential-scope.CredentialError')

/**
 * Why a credential could not be had. Codes are stable: hosts match on them.
 *
 * - `scope_invalid`: the scope is not `{ channel, speaker: { id, name, principalId? } }` with usable strings.
 * - `credential_missing`: the getter has no credential for this scope (`undefined`, `null` or an empty string).
 * - `credential_error`: the getter threw or rejected; its error is the `cause`.
 * - `credential_invalid`: the getter answered with something that is no usable credential.
 * - `credential_timeout`: the getter did not answer within its deadline.
 * - `credential_aborted`: the call's signal fired first.
 * - `credential_origin`: the credential is for another origin than the one it would be sent to.
 * - `source_invalid`: a key file, token store or other source cannot be used as it is.
 * - `login_required`: a stored login is spent; a person has to log in again.
 */
export type CredentialErrorCode =
  | 'scope_invalid'
  | 'credential_missing'
  | 'credential_error'
  | 'credential_invalid'
  | 'credential_timeout'
  | 'credential_aborted'
  | 'credential_origin'
  | 'source_invalid'
  | 'login_required'

/**
 * The one error that this package throws, apart from `TypeError` for a caller's mistake. Its message holds names
 * and reasons, never a credential and never the text of another error; evidence is in `cause`.
 */
export class CredentialError extends Error {
  override readonly name = 'CredentialError'
  /** Machine-readable reason. */
  readonly code: CredentialErrorCode

  constructor(code: CredentialErrorCode, message: string, options: { cause?: unknown } = {}) {
    super(message, options)
    this.code = code
    Object.defineProperty(this, brand, { value: true })
  }

  /** Whether `value` is such an error, also when another copy of this package made it. */
  static isInstance(value: unknown): value is CredentialError {
    return typeof value === 'object' && value !== null && brand in value
  }
}
