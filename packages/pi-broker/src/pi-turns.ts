import { type BoundTurn, BrokerError, type Turn, TurnBinding, type TurnLimits } from '@sandbox/broker/engine'
import { snapshotScope } from '@sandbox/credential-scope'
import { isPiThinkingLevel, isSafeFileName } from '@sandbox/protocol'
import type { PiHostContext } from './host-context.ts'

/** A turn's context as it was bound: every field there, frozen. */
export type BoundContext = Readonly<Required<Omit<PiHostContext, 'signal'>>>

const PROFILE = /^[a-zA-Z0-9_-]{1,100}$/

/** The turns of a Pi broker, one after another, each with what the host said about it. */
export class PiTurns {
  readonly binding: TurnBinding
  readonly #contexts = new WeakMap<Turn, BoundContext>()
  #bound: Turn | undefined

  constructor(limits: TurnLimits) {
    this.binding = new TurnBinding({ limits, once: false, needsNonce: true })
  }

  /** The turn that was bound last; it may be over. */
  get last(): Turn | undefined {
    return this.#bound
  }

  /**
   * Admits a turn (PB-04, CS-13).
   * @throws BrokerError `already_bound`, `turn_invalid`; CredentialError `scope_invalid`.
   */
  bind(context: PiHostContext, turnId: string): BoundTurn {
    const copy = readContext(context)
    if (!isSafeFileName(turnId)) throw new BrokerError('turn_invalid', 'turnId: must be a safe file name')
    const turn = this.binding.bind({ turnId, context: copy, signal: context.signal })
    this.#contexts.set(turn, copy)
    this.#bound = turn
    const { nonce, scope } = turn
    return {
      turnId,
      nonce,
      scope,
      release: (options) => turn.release(options),
      revoke: () => turn.revoke(),
    }
  }

  /** What the host said about a turn of this broker. */
  contextOf(turn: Turn): BoundContext {
    return this.#contexts.get(turn) as BoundContext
  }
}

function readContext(context: PiHostContext): BoundContext {
  const { profile, thinking = 'low', deadline } = context
  if (typeof profile !== 'string' || !PROFILE.test(profile)) {
    throw new BrokerError('turn_invalid', `profile: must match ${PROFILE.source.slice(1, -1)}`)
  }
  if (!isPiThinkingLevel(thinking)) {
    throw new BrokerError('turn_invalid', 'thinking: must be low, medium, high or xhigh')
  }
  if (typeof deadline !== 'number' || !Number.isFinite(deadline)) {
    throw new BrokerError('turn_invalid', 'deadline: must be a time on the clock of performance.now()')
  }
  const { channel, speaker } = snapshotScope(context)
  const { id, name } = speaker
  return Object.freeze({ channel, speaker: Object.freeze({ id, name }), profile, thinking, deadline })
}
