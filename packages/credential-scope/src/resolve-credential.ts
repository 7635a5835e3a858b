import type { CredentialGetter } from './credential-source.ts'
import { CredentialError, type CredentialErrorCode } from './errors.ts'
import { type SandboxCredentialScope, snapshotScope } from './scope.ts'
import { originOf, Secret } from './secret.ts'

/** What {@link resolveCredential} needs. */
export interface ResolveOptions {
  /** The host's hook. */
  readonly getter: CredentialGetter
  /** For whom. The hook gets a copy. */
  readonly scope: SandboxCredentialScope
  /** The http(s) URL (or its origin) that the credential will be sent to. */
  readonly origin: string
  /** Ends the wait with `credential_aborted`. */
  readonly signal?: AbortSignal
  /** Longest wait in milliseconds; omitted = 10,000. */
  readonly deadlineMs?: number
}

const DEADLINE_MS = 10_000
/** Timers of Node and Bun are 32 bits wide. */
const DEADLINE_MS_MAX = 2_147_483_647

/**
 * Asks the hook which credential this scope may spend, once, and checks the answer before anything is sent.
 * Never waits longer than the deadline or the signal allow, even when the hook never settles.
 *
 * @throws CredentialError with `scope_invalid` or one of the `credential_…` codes.
 * @throws TypeError when `origin` is no http(s) URL.
 */
export async function resolveCredential(options: ResolveOptions): Promise<Secret> {
  const origin = originOf(options.origin)
  const scope = snapshotScope(options.scope)
  const deadlineMs = options.deadlineMs ?? DEADLINE_MS
  if (!(deadlineMs > 0 && deadlineMs <= DEADLINE_MS_MAX)) {
    throw new TypeError(`deadlineMs must be above 0 and at most ${DEADLINE_MS_MAX}`)
  }
  const { token, origin: own } = await raceGetter({ ...options, scope, deadlineMs })
  if (token === undefined || token === null || token === '') {
    throw new CredentialError('credential_missing', 'There is no credential for this scope.')
  }
  const secret = new Secret({ token: token as string, origin })
  if (own !== undefined && !sameOrigin(own, origin)) {
    throw new CredentialError('credential_origin', `The credential is not for ${origin}.`)
  }
  return secret
}

/** What an answer holds, before any check of it. */
interface Answered {
  readonly token: unknown
  readonly origin: unknown
}

function raceGetter(options: ResolveOptions & { deadlineMs: number }): Promise<Answered> {
  const { signal, deadlineMs } = options
  return new Promise((resolve, reject) => {
    const control = new AbortController()
    const detach = () => {
      clearTimeout(timer)
      signal?.removeEventListener('abort', onAbort)
    }
    const lose = (code: CredentialErrorCode, message: string, cause?: unknown) => {
      detach()
      const error = new CredentialError(code, message, cause === undefined ? {} : { cause })
      reject(error)
      control.abort(error)
    }
    const onAbort = () =>
      lose('credential_aborted', 'The call ended before its credential was there.', signal?.reason)
    const onTimeout = () => lose('credential_timeout', `No credential came within ${deadlineMs} ms.`)
    const timer = setTimeout(onTimeout, deadlineMs)
    if (signal?.aborted) return onAbort()
    signal?.addEventListener('abort', onAbort, { once: true })
    ask(options, control.signal).then(
      (answer) => {
        detach()
        resolve(answer)
      },
      (cause: unknown) => lose('credential_error', 'The credential hook failed.', cause),
    )
  })
}

/** Turns all that may throw in foreign code into a rejection. */
async function ask({ getter, scope }: ResolveOptions, signal: AbortSignal): Promise<Answered> {
  const answer: unknown = await getter(scope, { signal })
  if (typeof answer !== 'object' || answer === null) return { token: answer, origin: undefined }
  const { token, origin } = answer as { token?: unknown; origin?: unknown }
  return { token, origin }
}

function sameOrigin(own: unknown, origin: string): boolean {
  return typeof own === 'string' && URL.canParse(own) && new URL(own).origin === origin
}
