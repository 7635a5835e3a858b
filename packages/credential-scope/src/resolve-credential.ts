import type { CredentialGetter, CredentialRequest } from './credential-source.ts'
import { CredentialError } from './errors.ts'
import { type Question, raceGetter } from './race-getter.ts'
import { type CredentialReceipt, makeReceipt } from './receipt.ts'
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
  /** Tells the hook that its last answer for this call was refused, see {@link CredentialRequest}. */
  readonly rejected?: NonNullable<CredentialRequest['rejected']>
  /** Called once with the outcome, good or bad, for an audit trail. What it throws is ignored. */
  readonly onReceipt?: (receipt: CredentialReceipt) => void
}

/** Which credential a scope gets, without the credential. */
export type CredentialExplanation = Pick<CredentialReceipt, 'rule' | 'source' | 'fingerprint' | 'outcome'>

/**
 * Asks the hook which credential this scope may spend, once, and checks the answer before anything is sent.
 * Never waits longer than the deadline or the signal allow, even when the hook never settles.
 *
 * @throws CredentialError with `scope_invalid` or one of the `credential_…` codes.
 * @throws TypeError when `origin` is no http(s) URL, or the deadline is no usable time.
 */
export async function resolveCredential(options: ResolveOptions): Promise<Secret> {
  const origin = originOf(options.origin)
  const { getter, signal, deadlineMs, rejected, onReceipt } = options
  const question = {
    getter,
    signal,
    deadlineMs,
    rejected,
    scope: snapshotScope(options.scope),
    note: { rules: [] },
  }
  try {
    const secret = await secretFor(question, origin)
    if (onReceipt !== undefined) {
      receive(onReceipt, makeReceipt(question.scope, question.note, 'ok', secret.fingerprint))
    }
    return secret
  } catch (error) {
    if (onReceipt !== undefined && CredentialError.isInstance(error)) {
      receive(onReceipt, makeReceipt(question.scope, question.note, error.code, null))
    }
    throw error
  }
}

/**
 * Says which credential a scope would get now, by which rule and from where: the answer to "who pays for this?".
 * It asks the hook as a call would, so a source may refresh what it keeps. A hook that is not made of this
 * package's pickers and sources is a black box: its rule and source are `null`.
 *
 * @throws CredentialError `scope_invalid`. Every other failure is the `outcome`.
 */
export async function explain(
  getter: CredentialGetter,
  scope: SandboxCredentialScope,
  options: { signal?: AbortSignal; deadlineMs?: number } = {},
): Promise<CredentialExplanation> {
  const question = { ...options, getter, scope: snapshotScope(scope), note: { rules: [] } }
  const outcome = await secretFor(question).catch((error: unknown) => error)
  if (!(outcome instanceof Secret) && !CredentialError.isInstance(outcome)) throw outcome
  const good = outcome instanceof Secret
  const receipt = makeReceipt(
    question.scope,
    question.note,
    good ? 'ok' : outcome.code,
    good ? outcome.fingerprint : null,
  )
  const { rule, source, fingerprint } = receipt
  return { rule, source, fingerprint, outcome: receipt.outcome }
}

/** Without an `origin`, the credential's own is taken, or one to which nothing can be sent. */
async function secretFor(question: Question, origin?: string): Promise<Secret> {
  const { token, origin: own } = await raceGetter(question)
  if (token === undefined || token === null || token === '') {
    throw new CredentialError('credential_missing', 'There is no credential for this scope.')
  }
  const secret = new Secret({ token: token as string, origin: origin ?? 'https://nowhere.invalid' })
  if (own !== undefined && !isOrigin(own, origin)) {
    throw new CredentialError(
      'credential_origin',
      `The credential is not for ${origin ?? 'an http(s) origin'}.`,
    )
  }
  return secret
}

function isOrigin(own: unknown, origin: string | undefined): boolean {
  if (typeof own !== 'string' || !URL.canParse(own)) return false
  return origin === undefined || new URL(own).origin === origin
}

function receive(onReceipt: NonNullable<ResolveOptions['onReceipt']>, receipt: CredentialReceipt): void {
  try {
    const received: unknown = onReceipt(receipt)
    if (received instanceof Promise) received.catch(() => {})
  } catch {}
}
