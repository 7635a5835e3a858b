import type { ToolSpec } from '@sandbox/protocol'
import { BrokerError } from './engine/errors.ts'
import type { BoundTurn, TurnInput } from './engine/turn/turn-binding.ts'
import type { WorkerDesk } from './engine/turn/worker-desk.ts'
import { type BrokerOptions, checkBrokerOptions } from './options.ts'

/** The host side of one sealed worker. */
export interface SealedBroker extends AsyncDisposable {
  readonly desk: WorkerDesk
  /** The tools as the turn describes them to the worker. */
  readonly toolSpecs: readonly ToolSpec[]
  /**
   * Opens the worker's socket, mode 0600. `owner` gives it to another account. Rejects with
   * {@link BrokerError} codes `socket_path_invalid`, `listen_failed`, `already_listening`, `closed`.
   */
  listen(socketPath: string, owner?: { readonly uid: number; readonly gid: number }): Promise<void>
  /** Answers one request without a socket. Never rejects. */
  handle(request: Request): Promise<Response>
  /**
   * Admits the worker's turn. Throws {@link BrokerError} `already_bound` on a second bind, `turn_invalid`,
   * `closed`; CredentialError `scope_invalid`.
   */
  bind(turn: TurnInput): BoundTurn
  /**
   * Ends the turn and closes the socket. Idempotent. `force` (default true) destroys connections; with false
   * it waits until the guest closed them.
   */
  stop(force?: boolean): Promise<void>
}

/**
 * Opens a broker for one sealed worker. Until `bind`, only worker routes answer.
 * @throws BrokerError `options_invalid`
 */
export function openSealedBroker(options: BrokerOptions): SealedBroker {
  checkBrokerOptions(options)
  throw new BrokerError('closed', 'not built yet')
}
