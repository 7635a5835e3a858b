import type { SealedOutcome, SealedTurn, WorkerHello } from '@sandbox/protocol'

/** A turn as the host hands it to the desk; the desk adds `protocol` and `remainingMs` when it is fetched. */
export type DeskTurn = Omit<SealedTurn, 'remainingMs' | 'protocol'>

/** Where one worker reports, fetches its turn and hands in its result. */
export interface WorkerDesk {
  /**
   * Waits for the worker's hello; the same answer for every caller. Rejects with {@link BrokerError} codes
   * `protocol_mismatch`, `hello_invalid`, `second_hello`, `aborted`, `closed`. There is no time limit but the
   * signal.
   */
  hello(signal?: AbortSignal): Promise<WorkerHello>
  /**
   * Offers a turn to the worker and waits for its result. Nothing but the signal, `stop` and a second hello
   * ends the wait: the deadline only becomes the turn's `remainingMs`. Rejects with {@link BrokerError} codes
   * `turn_invalid` (nothing was offered), `already_bound` (this desk had its turn), `second_hello`,
   * `aborted`, `closed`.
   */
  deliver(
    turn: DeskTurn,
    options: {
      /** On the clock of `performance.now()`, in milliseconds. */
      readonly deadline: number
      readonly signal?: AbortSignal
    },
  ): Promise<SealedOutcome>
}
