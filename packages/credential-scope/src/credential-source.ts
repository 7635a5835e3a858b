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
    }
  | undefined
  | null

/**
 * The host's hook that picks a credential.
 *
 * Contract: called once before each call that needs a credential and never cached by this package; its answer
 * is used for that call only. `scope` is a frozen copy of its own for each call. It may answer or promise, may
 * ignore its arguments, and may throw: then the call fails and nothing of the error reaches the guest.
 * `options.signal` fires when the answer is no longer wanted.
 */
export type CredentialGetter = (
  scope: SandboxCredentialScope,
  options?: { signal: AbortSignal },
) => CredentialAnswer | Promise<CredentialAnswer>
