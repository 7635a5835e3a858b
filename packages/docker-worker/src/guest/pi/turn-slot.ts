import type { PiTurn } from '@sandbox/protocol'
import { GuestError } from '../shared/errors.ts'
import type { Outbox } from './outbox.ts'
import type { TurnCalls } from './turn-calls.ts'

/** What a session works with while its turn is at hand. */
export interface TurnAtHand {
  readonly turn: PiTurn
  /** Where the model is called: an address that leads to this turn's nonce and is dead afterwards. */
  readonly modelUrl: string
  /** The last model call was refused for good: the same again will not do better. */
  refusedForGood(): boolean
  readonly calls: TurnCalls
  readonly outbox: Outbox
}

/**
 * The one turn that a session is for. A session is made before its turn arrives and ends with it, and everything in it
 * reaches its turn through here: what is left over of one turn cannot find another's.
 */
export class TurnSlot {
  #turn: TurnAtHand | undefined
  #over = false

  /** The turn has arrived. Once. */
  fill(turn: TurnAtHand): void {
    if (this.#turn !== undefined) throw new GuestError('internal', 'a session is for one turn')
    this.#turn = turn
  }

  /** The turn is over. */
  close(): void {
    this.#over = true
  }

  /** The turn at hand. Throws a {@link GuestError} `aborted` before it arrives and after it ends. */
  get(): TurnAtHand {
    if (this.#turn === undefined || this.#over) throw new GuestError('aborted', 'no turn is at hand')
    return this.#turn
  }
}
