import { randomUUID } from 'node:crypto'
import {
  CredentialError,
  type CredentialErrorCode,
  type CredentialGetter,
  type CredentialRequest,
  type ResolveOptions,
  resolveCredential,
  type Secret,
} from '@sandbox/credential-scope'
import type { CallReason } from './call-event.ts'
import type { CallRecord } from './call-record.ts'
import { CallRefusal } from './refusal.ts'
import { reserveCredit } from './reserve-credit.ts'
import type { AdmittedCall } from './route.ts'

const REASONS: Partial<Record<CredentialErrorCode, Exclude<CallReason, 'ok'>>> = {
  credential_missing: 'credential_missing',
  credential_invalid: 'credential_invalid',
  credential_origin: 'credential_invalid',
}

/**
 * Asks which credential this call may spend, once, for the scope that the call was admitted under. From then on
 * no answer of the turn may carry it. Before its first credential, a call needs credit.
 * @throws CallRefusal `credit_spent`, `credit_error`, `credential_missing`, `credential_error`, `credential_invalid`;
 * when the call's signal fired first, the refusal is the signal's.
 */
export async function spendCredential(
  call: Pick<AdmittedCall, 'turn' | 'signal' | 'record'>,
  options: {
    readonly getter: CredentialGetter
    readonly origin: string
    /** What the getter gave before for this call, and that was refused. */
    readonly rejected?: NonNullable<CredentialRequest['rejected']>
  },
): Promise<Secret> {
  const { turn, signal, record } = call
  await reserveCredit(call)
  try {
    const secret = await resolveCredential({ ...options, scope: turn.scope, signal, ...receiptOf(record) })
    signal.throwIfAborted()
    turn.remember(secret)
    record.fingerprint = secret.fingerprint
    return secret
  } catch (cause) {
    signal.throwIfAborted()
    const code = CredentialError.isInstance(cause) ? cause.code : undefined
    throw new CallRefusal((code && REASONS[code]) ?? 'credential_error', { cause })
  }
}

function receiptOf(record: CallRecord): Pick<ResolveOptions, 'onReceipt'> {
  const { onReceipt, callId } = record
  if (onReceipt === undefined) return {}
  return {
    onReceipt: (receipt) => {
      record.receiptId = randomUUID()
      return onReceipt(receipt, { receiptId: record.receiptId, callId })
    },
  }
}
