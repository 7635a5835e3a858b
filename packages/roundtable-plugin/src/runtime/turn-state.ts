import type { Posture } from '@sandbox/protocol'
import type { ChannelKey } from '../host-contract.ts'
import { quietly } from '../quietly.ts'

/** The states of a turn, in order. A turn may go to `settling` from any earlier state. */
export const TURN_STATES = ['admitted', 'starting', 'bound', 'answering', 'settling', 'settled'] as const

/** Where a turn is. */
export type TurnState = (typeof TURN_STATES)[number]

/**
 * Why a turn has no answer:
 *
 * - `credential`: no usable key for this channel and speaker
 * - `timeout`: the deadline passed
 * - `stopped`: somebody stopped it, or the runtime is being disposed
 * - `container`: no worker could be started, or it is not what its driver promises, or it was killed
 * - `workspace`: the channel's files take more room than they may, so no worker was started
 * - `broker`: the socket could not be opened, or the model service did not answer
 * - `worker`: the worker ran and gave no answer
 * - `host`: a function of the operator failed
 */
export type FailureCategory =
  | 'credential'
  | 'timeout'
  | 'stopped'
  | 'container'
  | 'workspace'
  | 'broker'
  | 'worker'
  | 'host'

/** One state that a turn entered. Names and times only: no message text, no key. */
export interface TurnEvent {
  readonly turnId: string
  readonly channel: ChannelKey
  /** `name` is chosen by the speaker. */
  readonly speaker: { readonly id: string; readonly name: string }
  readonly state: TurnState
  readonly driver: 'docker' | 'process'
  /** From `bound` on: names the worker that serves the turn. */
  readonly workerId?: string
  /** From `bound` on: the worker was waiting already. */
  readonly warm?: boolean
  /** From `bound` on: what the worker found about itself, after the driver compared it with its profile. */
  readonly posture?: Posture
  /** Since the turn was admitted. */
  readonly durationMs: number
  /** With `settled` only. */
  readonly ok?: boolean
  /** With `settled` and `ok: false`. */
  readonly category?: FailureCategory
  /** With `settled` and `ok: false`: what happened, scrubbed, for the operator. */
  readonly cause?: string
}

/** How a turn ended, for its last event. */
export interface TurnEnd {
  readonly ok: boolean
  readonly category?: FailureCategory
  readonly cause?: string
}

/** Follows one turn through its states and tells a listener, whose errors are swallowed. */
export class TurnProgress {
  #base: Omit<TurnEvent, 'state' | 'durationMs'>
  readonly #listener: ((event: TurnEvent) => void) | undefined
  readonly #began = performance.now()
  #state: TurnState = 'admitted'

  constructor(
    base: Pick<TurnEvent, 'turnId' | 'channel' | 'speaker' | 'driver'>,
    listener?: (event: TurnEvent) => void,
  ) {
    this.#base = base
    this.#listener = listener
    this.#tell()
  }

  /** Which worker serves the turn: told with every later state. */
  servedBy(worker: Pick<TurnEvent, 'posture'> & { workerId: string; warm: boolean }): void {
    this.#base = { ...this.#base, ...worker }
  }

  /** The state that was entered last. */
  get state(): TurnState {
    return this.#state
  }

  /**
   * Enters a later state: the next one, or `settling`. Throws `TypeError` for any other, so that a turn cannot
   * be answered before it is bound, or settle twice.
   */
  enter(state: TurnState, end?: TurnEnd): void {
    const from = TURN_STATES.indexOf(this.#state)
    const to = TURN_STATES.indexOf(state)
    const allowed = to === from + 1 || (state === 'settling' && to > from)
    if (!allowed) throw new TypeError(`a turn cannot go from ${this.#state} to ${state}`)
    this.#state = state
    this.#tell(end)
  }

  #tell(end?: TurnEnd): void {
    const durationMs = Math.round(performance.now() - this.#began)
    quietly(() => this.#listener?.({ ...this.#base, state: this.#state, durationMs, ...end }))
  }
}
