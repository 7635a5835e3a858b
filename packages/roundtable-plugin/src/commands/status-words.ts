import type { ChannelKey } from '../host-contract.ts'
import type { LastTurn } from '../runtime/last-turns.ts'

/** Who pays for a scope, without the key. A key file's `explain` answers with one. */
export interface Payer {
  /** The rule that chooses. */
  readonly rule?: string | undefined
  /** Of the key. */
  readonly fingerprint?: string | undefined
}

/** Says who pays for a scope. It must answer at once. */
export type ExplainPayer = (scope: {
  readonly channel: ChannelKey
  readonly speaker: { readonly id: string; readonly name: string }
}) => Payer

/** What `status` tells about a channel that is on. */
export interface StatusFacts {
  readonly mode: 'sealed' | 'Pi'
  /** What its worker does, in a few words. */
  readonly worker: string
  readonly last: LastTurn | undefined
  /** Nobody may spend in it. */
  readonly revoked: boolean
  /** Who pays for the one who asks, in a few words. */
  readonly payer: string
}

/** The facts as sentences. `now` is in milliseconds since the epoch. */
export function statusWords({ mode, worker, last, revoked, payer }: StatusFacts, now: number): string {
  const spending = revoked ? 'Spending is stopped in this channel.' : `Who pays for you here: ${payer}.`
  return `Mode: ${mode}; ${worker}. ${lastWords(last, now)} ${spending}`
}

/** Who pays, from what the operator's function says; a function that fails or answers late is not waited for. */
export function payerWords(
  explain: ExplainPayer | undefined,
  scope: Parameters<ExplainPayer>[0],
  otherwise: string,
): string {
  if (explain === undefined) return otherwise
  try {
    const payer: Payer | Promise<unknown> = explain(scope)
    if (payer instanceof Promise) {
      payer.catch(() => {})
      return 'not known, explain does not answer at once'
    }
    const { rule, fingerprint } = payer
    if (rule === undefined && fingerprint === undefined) return 'no key'
    const key = fingerprint === undefined ? 'no key yet' : `key ${fingerprint}`
    return rule === undefined ? key : `${key}, by the rule ${rule}`
  } catch {
    return 'not known, explain failed'
  }
}

function lastWords(last: LastTurn | undefined, now: number): string {
  if (last === undefined) return 'No turn since the bot started.'
  const { ok, category, speakerId, durationMs, endedAt, fingerprint } = last
  const how = ok ? 'answered' : `not answered (${category})`
  const paid = fingerprint === undefined ? 'nothing was paid' : `paid by key ${fingerprint}`
  const seconds = (ms: number) => `${Math.max(0, Math.round(ms / 100) / 10)} s`
  return `Last turn: ${how} for ${speakerId} in ${seconds(durationMs)}, ${seconds(now - endedAt)} ago, ${paid}.`
}
