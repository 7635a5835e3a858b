import { type ResolveOptions, resolveCredential } from './resolve-credential.ts'
import type { Secret } from './secret.ts'

/** What {@link withCredential} needs. */
export interface WithCredentialOptions<T> extends Omit<ResolveOptions, 'rejected'> {
  /** Spends the credential. Called once, or twice when the first one was refused. What it throws is passed on. */
  readonly spend: (secret: Secret) => Promise<T>
  /**
   * The status when the service refused the credential (401 or 403) and nothing of the answer was passed on yet;
   * else `undefined`, and the answer stands.
   */
  readonly rejectedStatus: (answer: T) => number | undefined
}

/**
 * Resolves a credential and spends it. When the service refuses it, the hook is asked once more and told so; only
 * if it then has another credential, that one is spent, once. So a key that was changed or a login that was
 * refreshed elsewhere costs no failed call, and a bad one no loop.
 *
 * An answer that is thrown away for a second one is the caller’s to end, in `rejectedStatus`.
 *
 * @throws what {@link resolveCredential} throws for the first credential. When the second cannot be had, the first
 * answer stands.
 */
export async function withCredential<T>(options: WithCredentialOptions<T>): Promise<T> {
  const { spend, rejectedStatus, ...resolve } = options
  const first = await resolveCredential(resolve)
  const answer = await spend(first)
  const status = rejectedStatus(answer)
  if (status !== 401 && status !== 403) return answer
  const rejected = { fingerprint: first.fingerprint, status }
  const second = await resolveCredential({ ...resolve, rejected }).catch(() => undefined)
  return second === undefined || second.fingerprint === first.fingerprint ? answer : spend(second)
}
