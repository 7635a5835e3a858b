import type { CredentialAnswer, CredentialGetter } from './credential-source.ts'
import { CredentialError } from './errors.ts'
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
  const answer = await raceGetter(options, scope)
  const { token, origin: own } = unpack(answer)
  const secret = new Secret({ token, origin })
  if (own !== undefined && !sameOrigin(own, origin)) {
    throw new CredentialError('credential_origin', `The credential is not for ${origin}.`)
  }
  return secret
}

function raceGetter(options: ResolveOptions, scope: SandboxCredentialScope): Promise<CredentialAnswer> {
  const { getter, signal, deadlineMs = DEADLINE_MS } = options
  return new Promise((resolve, reject) => {
    const control = new AbortController()
    const lose = (error: CredentialError) => {
      detach()
      reject(error)
      control.abort(error)
    }
    const onAbort = () =>
      lose(
        new CredentialError('credential_aborted', 'The call ended before its credential was there.', {
          cause: signal?.reason,
        }),
      )
    const timer = setTimeout(() => {
      lose(new CredentialError('credential_timeout', `No credential within ${deadlineMs} ms.`))
    }, deadlineMs)
    const detach = () => {
      clearTimeout(timer)
      signal?.removeEventListener('abort', onAbort)
    }
    if (signal?.aborted) return onAbort()
    signal?.addEventListener('abort', onAbort, { once: true })
    ask(getter, scope, control.signal).then(
      (answer) => {
        detach()
        resolve(answer)
      },
      (cause: unknown) =>
        lose(new CredentialError('credential_error', 'The credential hook failed.', { cause })),
    )
  })
}

/** Also turns what the hook throws at once into a rejection. */
async function ask(
  getter: CredentialGetter,
  scope: SandboxCredentialScope,
  signal: AbortSignal,
): Promise<CredentialAnswer> {
  return getter(scope, { signal })
}

function unpack(answer: unknown): { token: string; origin: unknown } {
  if (answer === undefined || answer === null || answer === '') throw missing()
  if (typeof answer !== 'object') return { token: answer as string, origin: undefined }
  const { token, origin } = answer as { token?: unknown; origin?: unknown }
  if (token === undefined || token === null || token === '') throw missing()
  return { token: token as string, origin }
}

function missing(): CredentialError {
  return new CredentialError('credential_missing', 'There is no credential for this scope.')
}

function sameOrigin(own: unknown, origin: string): boolean {
  return typeof own === 'string' && URL.canParse(own) && new URL(own).origin === origin
}
