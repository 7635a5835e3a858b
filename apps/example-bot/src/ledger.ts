import type { BrokerOptions, CallEvent } from '@sandbox/broker'
import type { TurnEvent } from '@sandbox/roundtable-plugin'
import { postureFacts } from './posture-facts.ts'
import { costOf, type Prices } from './prices.ts'
import {
  blankReceipt,
  type CallLine,
  callLine,
  type KeyChoice,
  type Payment,
  type Receipt,
} from './receipt.ts'

export type { Receipt } from './receipt.ts'

/** Most receipts kept, over all channels. */
const KEPT_RECEIPTS = 200
const CAUSE_CHARS = 2_000
/** Most calls kept of a turn: the last ones. All are counted. */
const KEPT_CALLS = 40

/** Which rule of the key file chooses the key of a scope, as `keyFile` explains it. */
export interface Explanation {
  readonly rule: string | undefined
  readonly source: string | undefined
  readonly fingerprint: string | undefined
  /** True for a command or a login, which is asked when somebody speaks. */
  readonly deferred?: true
}

/** Answers which key a channel and speaker would get now, never a key itself. May throw a `CredentialError`. */
export type Explain = (scope: {
  readonly channel: string
  readonly speaker: { readonly id: string; readonly name: string }
}) => Explanation

/** Options of a {@link Ledger}. */
export interface LedgerOptions {
  /** Asked for the rule of a key when no receipt of the credential named it. */
  readonly explain: Explain
  /** Left out: no cost is known. */
  readonly prices?: Prices
}

/**
 * Keeps the receipts of the last turns, written from the host's own events and never from what a worker
 * says.
 */
export class Ledger {
  readonly #latest = new Map<string, Receipt>()
  readonly #recent = new Map<string, Receipt>()
  readonly #listeners = new Set<(receipt: Receipt) => void>()
  /** What chose the key of a call that has not ended yet. */
  readonly #choices = new Map<string, KeyChoice>()
  readonly #options: LedgerOptions

  constructor(options: LedgerOptions) {
    this.#options = options
  }

  /** The currency of the price list; absent when there is none. */
  get currency(): string | undefined {
    return this.#options.prices?.currency
  }

  /** The last turn of a channel, running or over. */
  latest(channel: string): Receipt | undefined {
    return this.#latest.get(channel)
  }

  /** The last receipts of all channels, oldest first. */
  recent(): readonly Receipt[] {
    return [...this.#recent.values()]
  }

  /** Calls `listener` on every change of a receipt. Returns the way out. */
  onChange(listener: (receipt: Receipt) => void): () => void {
    this.#listeners.add(listener)
    return () => this.#listeners.delete(listener)
  }

  /** To be given to the plugin as `onTurn`. */
  readonly onTurn = (event: TurnEvent): void => {
    const known = this.#latest.get(event.channel)
    const before = known?.turnId === event.turnId ? known : blankReceipt(event, new Date())
    const { workerId, warm, posture, ok, category, cause } = event
    this.#keep({
      ...before,
      state: event.state,
      steps: [...before.steps, { state: event.state, afterMs: event.durationMs }],
      durationMs: event.durationMs,
      ...(workerId === undefined ? {} : { workerId }),
      ...(warm === undefined ? {} : { warm }),
      ...(posture === undefined || before.posture ? {} : { posture: postureFacts(posture) }),
      ...(ok === undefined ? {} : { ok }),
      ...(category === undefined ? {} : { category }),
      ...(cause === undefined ? {} : { cause: cause.slice(0, CAUSE_CHARS) }),
    })
  }

  /** To be given to the plugin as `onReceipt`: which key was chosen, before the provider answers. */
  readonly onReceipt: NonNullable<BrokerOptions['onReceipt']> = (receipt, { callId }): void => {
    const turn = this.#latest.get(receipt.channel)
    if (turn === undefined || turn.state === 'settled' || turn.speaker.id !== receipt.speakerId) return
    const { outcome, rule, source, fingerprint } = receipt
    const key: KeyChoice = {
      outcome,
      ...(rule === null ? {} : { rule }),
      ...(source === null ? {} : { source }),
      ...(fingerprint === null ? {} : { fingerprint }),
    }
    this.#choices.set(callId, key)
    this.#keep({ ...turn, key })
  }

  /** To be given to the plugin as `onCall`. Calls of no turn, or of one that is past, are left out. */
  readonly onCall = (event: CallEvent): void => {
    const choice = this.#choices.get(event.callId)
    this.#choices.delete(event.callId)
    const receipt = event.scope === undefined ? undefined : this.#latest.get(event.scope.channel)
    if (receipt === undefined || receipt.turnId !== event.turnId || !isGuestCall(event)) return
    const line = callLine(event)
    const { reason, fingerprint, usage } = event
    const used = { input: usage?.inputTokens ?? 0, output: usage?.outputTokens ?? 0 }
    this.#keep({
      ...receipt,
      payments: fingerprint === undefined ? receipt.payments : this.#pay(receipt, fingerprint, choice),
      calls: [...receipt.calls, line].slice(-KEPT_CALLS),
      modelCalls: receipt.modelCalls + (event.route === 'model' ? 1 : 0),
      toolCalls: event.route === 'tool' ? [...receipt.toolCalls, line.name ?? 'tool'] : receipt.toolCalls,
      refusals:
        reason === 'ok'
          ? receipt.refusals
          : { ...receipt.refusals, [reason]: (receipt.refusals[reason] ?? 0) + 1 },
      tokens: { input: receipt.tokens.input + used.input, output: receipt.tokens.output + used.output },
      cost: usage === undefined ? receipt.cost : this.#add(receipt.cost, event.model, used),
    })
  }

  #add(
    cost: number | null,
    model: string | undefined,
    used: { input: number; output: number },
  ): number | null {
    const { prices } = this.#options
    const more = prices === undefined ? null : costOf(prices, model, used)
    return cost === null || more === null ? null : cost + more
  }

  #pay(receipt: Receipt, fingerprint: string, choice?: KeyChoice): readonly Payment[] {
    const known = receipt.payments.find((payment) => payment.fingerprint === fingerprint)
    if (known !== undefined) {
      return receipt.payments.map((payment) =>
        payment === known ? { ...known, calls: known.calls + 1 } : payment,
      )
    }
    const { rule, source } = choice?.fingerprint === fingerprint ? choice : this.#told(receipt, fingerprint)
    return [
      ...receipt.payments,
      {
        fingerprint,
        calls: 1,
        ...(rule === undefined ? {} : { rule }),
        ...(source === undefined ? {} : { source }),
      },
    ]
  }

  #told(
    { channel, speaker }: Receipt,
    fingerprint: string,
  ): { rule?: string | undefined; source?: string | undefined } {
    try {
      const told = this.#options.explain({ channel, speaker })
      return told.fingerprint === fingerprint ? told : {}
    } catch {
      // The key file became unusable since; the key that paid is known all the same.
      return {}
    }
  }

  #keep(receipt: Receipt): void {
    this.#latest.set(receipt.channel, receipt)
    this.#recent.set(receipt.turnId, receipt)
    const [oldest] = this.#recent.keys()
    if (this.#recent.size > KEPT_RECEIPTS && oldest !== undefined) this.#recent.delete(oldest)
    for (const listener of this.#listeners) listener(receipt)
  }
}

function isGuestCall(event: CallEvent): event is CallEvent & { route: CallLine['route'] } {
  return event.route !== 'worker'
}
