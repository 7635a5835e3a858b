import { randomBytes, timingSafeEqual } from 'node:crypto'
import {
  createSecretMatcher,
  type SandboxCredentialScope,
  type Secret,
  type SecretMatcher,
  snapshotScope,
} from '@sandbox/credential-scope'
import { type CallLane, CallSlots, type LeaveSlot } from '../call/call-slots.ts'
import { OwnedIds } from '../call/owned-ids.ts'
import { CallRefusal } from '../call/refusal.ts'
import { BrokerError } from '../errors.ts'

/** One admitted turn on a broker. */
export interface BoundTurn {
  readonly turnId: string
  /** What the guest must send as `x-sandbox-turn` on every call of this turn. */
  readonly nonce: string
  /** The channel and speaker, frozen at bind. */
  readonly scope: SandboxCredentialScope
  /**
   * Ends the turn: calls in flight are aborted, later ones get 410. With `abort: false`, calls in flight may finish
   * with the scope that they were admitted under, until the turn's own signal fires (W-47). Idempotent; never throws.
   */
  release(options?: { readonly abort?: boolean }): void
  /**
   * Takes back the right to call: calls in flight are aborted, later ones get 403. The turn itself goes on, and
   * its worker may still report. Idempotent; never throws.
   */
  revoke(): void
}

/** What `bind` takes. */
export interface TurnInput {
  /** 1 to 64 characters. */
  readonly turnId: string
  /** Copied at once: later changes of it do not reach the turn. */
  readonly context: SandboxCredentialScope
  /** Ends the turn when it fires, as `release` does. */
  readonly signal: AbortSignal
}

/** What each turn of a broker may do. */
export interface TurnLimits {
  readonly maxCalls: number
  /** Calls in flight at once, on the line for calls one after another. */
  readonly concurrent: number
  /** Calls that may wait in either line. */
  readonly queued: number
  /** Calls in flight at once on the line for several. Omitted = 4. */
  readonly parallel?: number
}

/** A bound turn as the call pipeline sees it: identity, budget, slots, and the secrets that it has used. */
export class Turn implements BoundTurn {
  readonly turnId: string
  readonly nonce = randomBytes(32).toString('hex')
  readonly scope: SandboxCredentialScope
  readonly #control = new AbortController()
  readonly #slots: Readonly<Record<CallLane, CallSlots>>
  readonly #secrets = new Map<string, Secret>()
  readonly #outer: AbortSignal
  readonly #onOuter = () => this.release()
  #callsLeft: number
  #over = false
  #matcher: SecretMatcher | undefined
  readonly #closed = new Set<string>()
  readonly #owned: OwnedIds

  constructor(input: TurnInput, limits: TurnLimits, owned: OwnedIds) {
    this.#owned = owned
    this.turnId = input.turnId
    this.scope = snapshotScope(input.context)
    this.#callsLeft = limits.maxCalls
    this.#slots = {
      single: new CallSlots(limits),
      parallel: new CallSlots({ concurrent: limits.parallel ?? 4, queued: limits.queued }),
    }
    this.#outer = input.signal
    this.#outer.addEventListener('abort', this.#onOuter)
    if (this.#outer.aborted) this.release()
  }

  /** Fires when the turn is over. */
  get signal(): AbortSignal {
    return this.#control.signal
  }

  /** Whether it takes no more calls. */
  get over(): boolean {
    return this.#over || this.signal.aborted
  }

  release({ abort = true }: { readonly abort?: boolean } = {}): void {
    this.#over = true
    if (!abort) return
    this.#outer.removeEventListener('abort', this.#onOuter)
    this.#control.abort(new CallRefusal('turn_over'))
  }

  revoke(): void {
    this.#control.abort(new CallRefusal('revoked'))
  }

  /** Refuses later calls to routes of this kind. */
  close(kind: string): void {
    this.#closed.add(kind)
  }

  /**
   * Whether calls to routes of this kind may go on.
   * @throws CallRefusal `route_closed`
   */
  checkOpen(kind: string): void {
    if (this.#closed.has(kind)) throw new CallRefusal('route_closed')
  }

  /**
   * Spends one call of the budget and takes a slot, waiting in line for it if need be. A full line spends
   * nothing; a call that leaves the line has spent its unit.
   * @throws CallRefusal `busy`, `budget_spent`. Rejects with the signal's reason when that fires.
   */
  async enterCall(signal: AbortSignal, lane: CallLane = 'single'): Promise<LeaveSlot> {
    const slots = this.#slots[lane]
    if (slots.full) throw new CallRefusal('busy')
    if (this.#callsLeft === 0) throw new CallRefusal('budget_spent')
    this.#callsLeft -= 1
    return slots.enter(signal)
  }

  /** Remembers the id of a thing that the provider made for this turn's scope. */
  noteCreated(id: string): void {
    this.#owned.add(this.scope, id)
  }

  /** Whether the provider made the thing of this id for this turn's scope. */
  created(id: string): boolean {
    return this.#owned.has(this.scope, id)
  }

  /** Keeps a secret that this turn spends, so that no later answer of the turn carries it. */
  remember(secret: Secret): void {
    if (this.#secrets.has(secret.fingerprint)) return
    this.#secrets.set(secret.fingerprint, secret)
    this.#matcher = undefined
  }

  /** Every secret that this turn has spent so far. */
  get secrets(): Iterable<Secret> {
    return this.#secrets.values()
  }

  /** Finds every secret that this turn has spent so far. */
  get matcher(): SecretMatcher {
    this.#matcher ??= createSecretMatcher(this.#secrets.values())
    return this.#matcher
  }
}

/** Which turn a broker works for. It starts with none: every call is refused. */
export class TurnBinding {
  readonly #limits: TurnLimits
  readonly #once: boolean
  readonly #needsNonce: boolean
  readonly #owned: OwnedIds
  #turn: Turn | undefined

  constructor(options: {
    readonly limits: TurnLimits
    /** One turn for ever, or one after another. */
    readonly once: boolean
    /** False admits calls that carry no nonce: for a broker that has one turn and no worker. */
    readonly needsNonce: boolean
    /** What scopes created on providers' accounts. Omitted = known to this broker alone. */
    readonly ownedIds?: OwnedIds | undefined
  }) {
    this.#limits = options.limits
    this.#once = options.once
    this.#needsNonce = options.needsNonce
    this.#owned = options.ownedIds ?? new OwnedIds()
  }

  /**
   * Admits a turn.
   * @throws BrokerError `already_bound`, `turn_invalid`; CredentialError `scope_invalid`.
   */
  bind(input: TurnInput): Turn {
    if (this.#turn !== undefined && (this.#once || !this.#turn.over)) {
      throw new BrokerError(
        'already_bound',
        this.#once ? 'This broker had its turn: open another one.' : 'A turn is bound: release it first.',
      )
    }
    if (typeof input.turnId !== 'string' || !/^[\x21-\x7e]{1,64}$/.test(input.turnId)) {
      throw new BrokerError('turn_invalid', 'turnId: must be 1 to 64 printable characters')
    }
    if (!(input.signal instanceof AbortSignal)) {
      throw new BrokerError('turn_invalid', 'signal: must be an AbortSignal')
    }
    this.#turn = new Turn(input, this.#limits, this.#owned)
    return this.#turn
  }

  /**
   * The turn that a call belongs to: by its nonce, never by what happens to be bound.
   * @throws CallRefusal `nonce_refused`, `turn_over`, `revoked`
   */
  admit(nonce: string | undefined): Turn {
    const turn = this.#turn
    if (turn === undefined) throw new CallRefusal('turn_over')
    const free = nonce === undefined && !this.#needsNonce
    if (!free && !sameText(nonce ?? '', turn.nonce)) throw new CallRefusal('nonce_refused')
    if (turn.signal.aborted) throw turn.signal.reason
    if (turn.over) throw new CallRefusal('turn_over')
    return turn
  }

  /** Ends the bound turn, if there is one. */
  release(): void {
    this.#turn?.release()
  }
}

/** Compares without telling by time how much was right. */
export function sameText(given: string, expected: string): boolean {
  const [a, b] = [Buffer.from(given), Buffer.from(expected)]
  return a.byteLength === b.byteLength && timingSafeEqual(a, b)
}
