import type { SandboxCredentialScope } from './scope.ts'

/**
 * What a getter may answer: the credential, or the credential with the origin that it is for, or nothing.
 * `undefined`, `null` and `''` mean "no credential for this scope": the call fails, nothing is sent.
 */
export type CredentialAnswer =
  | string
  | {
      /** The credential itself. */
      readonly token: string
      /** The only origin it may be sent to, such as `https://api.example.com`. Omitted = the one that is called. */
      readonly origin?: string
      /** When it ends, in milliseconds since 1970. Only `cached` looks at it. Omitted = not known. */
      readonly expiresAt?: number
    }
  | undefined
  | null

/** What a getter may look at beside the scope. */
export interface CredentialRequest {
  /** Fires when the answer is no longer wanted. */
  readonly signal: AbortSignal
  /**
   * The credential that this getter gave before for the same call, and that was refused. Omitted = none was. A
   * source that keeps or refreshes credentials should look again, the others need not care.
   */
  readonly rejected?: {
    /** Fingerprint of the refused credential, see `fingerprintOf`. */
    readonly fingerprint: string
    /** The HTTP status, 401 or 403. */
    readonly status: number
  }
}

/**
 * The host's hook that picks a credential.
 *
 * Contract: called once before each call that needs a credential and never cached by this package; its answer
 * is used for that call only. `scope` is a frozen copy of its own for each call. It may answer or promise, may
 * ignore its arguments, and may throw: then the call fails and nothing of the error reaches the guest.
 */
export type CredentialGetter = (
  scope: SandboxCredentialScope,
  options?: CredentialRequest,
) => CredentialAnswer | Promise<CredentialAnswer>
