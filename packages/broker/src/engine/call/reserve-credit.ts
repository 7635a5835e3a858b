import { snapshotScope } from '@sandbox/credential-scope'
import { linkCallSignal, raceSignal } from './call-signal.ts'
import type { CallCredit, CreditAnswer, CreditCall } from './credit.ts'
import { CallRefusal } from './refusal.ts'
import type { AdmittedCall } from './route.ts'

const RESERVE_MS = 10_000

/**
 * Asks for the credit of a call, once, however often it is called for it.
 * @throws CallRefusal `credit_spent`, `credit_error`. Rejects with the signal's reason when that fires.
 */
export async function reserveCredit(call: Pick<AdmittedCall, 'turn' | 'signal' | 'record'>): Promise<void> {
  const { credit } = call.record
  if (credit === undefined || call.record.reserved !== undefined) return
  const { signal, detach } = linkCallSignal({ guest: call.signal, limitMs: RESERVE_MS })
  const asked = ask(credit, call, signal)
  call.record.reserved = asked
  try {
    const answer = await raceSignal(asked, signal)
    if (answer.granted === true) return
    if (answer.granted !== false) throw new TypeError('credit.reserve: answered without `granted`')
    throw spent(call, answer.resetsAt)
  } catch (cause) {
    call.signal.throwIfAborted()
    throw cause instanceof CallRefusal ? cause : new CallRefusal('credit_error', { cause })
  } finally {
    detach()
  }
}

/** Also turns what the hook throws at once into a rejection. */
async function ask(
  credit: CallCredit,
  { turn, record }: Pick<AdmittedCall, 'turn' | 'record'>,
  signal: AbortSignal,
): Promise<CreditAnswer> {
  const { callId, route, name, model, outputTokens, requestBytes } = record
  const asked = {
    scope: snapshotScope(turn.scope),
    callId,
    route: route as CreditCall['route'],
    ...(name === undefined ? {} : { name }),
    ...(model === undefined ? {} : { model }),
    ...(outputTokens === undefined ? {} : { outputTokens }),
    requestBytes,
  }
  return await credit.reserve(Object.freeze(asked), { signal })
}

function spent({ record }: Pick<AdmittedCall, 'record'>, resetsAt: Date | undefined): CallRefusal {
  const resetsAtMs = resetsAt?.getTime()
  if (resetsAtMs === undefined || !Number.isFinite(resetsAtMs)) return new CallRefusal('credit_spent')
  record.resetsAtMs = resetsAtMs
  return new CallRefusal('credit_spent', { retryAfterMs: Math.max(0, resetsAtMs - Date.now()) })
}
