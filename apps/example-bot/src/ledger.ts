import type { CallEvent, CallReason } from '@sandbox/broker'
import type { ChannelKey, TurnEvent } from '@sandbox/roundtable-plugin'

/** Most receipts kept, over all channels. */
const KEPT_RECEIPTS = 200

/** Which rule of the key file chooses the key of a scope, as `keyFile` explains it. */
export interface Explanation {
  readonly rule: string | undefined
  readonly source: string | undefined
  readonly fingerprint: string | undefined
}

/** Answers which key a channel and speaker would get now, never a key itself. May throw a `CredentialError`. */
export type Explain = (scope: {
  readonly channel: string
  readonly speaker: { readonly id: string; readonly name: string }
}) => Explanation

/** One key that paid for calls of a turn. */
export interface Payment {
  /** Means nothing outside this process. */
  readonly fingerprint: string
  /** The rule that chose it; absent when the key file had changed by the time we looked. */
  readonly rule?: string
  readonly calls: number
}

/** What became of one turn, and who paid. Names, sizes and reasons; never content and never a key. */
export interface Receipt {
  readonly turnId: string
  readonly channel: string
  readonly speaker: { readonly id: string; readonly name: string }
  readonly driver: TurnEvent['driver']
  readonly state: TurnEvent['state']
  readonly durationMs: number
  readonly ok?: boolean
  readonly category?: string
  /** What went wrong, scrubbed, for the operator. */
  readonly cause?: string
  readonly payments: readonly Payment[]
  readonly modelCalls: number
  readonly toolCalls: readonly string[]
  /** Calls that the host turned down, by reason. */
  readonly refusals: Readonly<Partial<Record<CallReason, number>>>
  readonly tokens: { readonly input: number; readonly output: number }
}

/**
 * Keeps the receipts of the last turns, written from the host's own events and never from what a worker
 * says.
 */
export class Ledger {
  readonly #latest = new Map<string, Receipt>()
  readonly #recent = new Map<string, Receipt>()
  readonly #listeners = new Set<(receipt: Receipt) => void>()
  readonly #explain: Explain

  constructor(options: { explain: Explain }) {
    this.#explain = options.explain
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
    const before = known?.turnId === event.turnId ? known : blank(event)
    this.#keep({
      ...before,
      state: event.state,
      durationMs: event.durationMs,
      ...(event.ok === undefined ? {} : { ok: event.ok }),
      ...(event.category === undefined ? {} : { category: event.category }),
      ...(event.cause === undefined ? {} : { cause: event.cause }),
    })
  }

  /** To be given to the plugin as `onCall`. Calls of no turn, or of one that is past, are left out. */
  readonly onCall = (event: CallEvent): void => {
    const receipt = event.scope === undefined ? undefined : this.#latest.get(event.scope.channel)
    if (receipt === undefined || receipt.turnId !== event.turnId || event.route === 'worker') return
    const refused = event.reason !== 'ok'
    this.#keep({
      ...receipt,
      payments: event.fingerprint === undefined ? receipt.payments : this.#pay(receipt, event.fingerprint),
      modelCalls: receipt.modelCalls + (event.route === 'model' ? 1 : 0),
      toolCalls: event.route === 'tool' ? [...receipt.toolCalls, event.name ?? 'tool'] : receipt.toolCalls,
      refusals: refused
        ? { ...receipt.refusals, [event.reason]: (receipt.refusals[event.reason] ?? 0) + 1 }
        : receipt.refusals,
      tokens: {
        input: receipt.tokens.input + (event.usage?.inputTokens ?? 0),
        output: receipt.tokens.output + (event.usage?.outputTokens ?? 0),
      },
    })
  }

  #pay(receipt: Receipt, fingerprint: string): readonly Payment[] {
    const known = receipt.payments.find((payment) => payment.fingerprint === fingerprint)
    if (known !== undefined) {
      return receipt.payments.map((payment) =>
        payment === known ? { ...known, calls: known.calls + 1 } : payment,
      )
    }
    const rule = this.#ruleOf(receipt, fingerprint)
    return [...receipt.payments, { fingerprint, calls: 1, ...(rule === undefined ? {} : { rule }) }]
  }

  #ruleOf({ channel, speaker }: Receipt, fingerprint: string): string | undefined {
    try {
      const told = this.#explain({ channel, speaker })
      return told.fingerprint === fingerprint ? told.rule : undefined
    } catch {
      // The key file became unusable since; the key that paid is known all the same.
      return undefined
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

function blank(event: TurnEvent): Receipt {
  return {
    turnId: event.turnId,
    channel: event.channel satisfies ChannelKey,
    speaker: event.speaker,
    driver: event.driver,
    state: event.state,
    durationMs: event.durationMs,
    payments: [],
    modelCalls: 0,
    toolCalls: [],
    refusals: {},
    tokens: { input: 0, output: 0 },
  }
}
