/**
 * What a {@link BrokerError} can mean.
 *
 * - `options_invalid`: an option is wrong; the message names it.
 * - `socket_path_invalid`: the socket path is relative, too long, or taken by something that is no socket.
 * - `listen_failed`: the socket could not be opened; `cause` says why.
 * - `already_listening`: `listen` was called twice.
 * - `already_bound`: a turn is bound, or a sealed broker already had its turn.
 * - `turn_invalid`: the turn to bind or to deliver has a wrong field, or is too large.
 * - `protocol_mismatch`: the worker speaks another protocol version.
 * - `hello_invalid`: the worker's first message was no hello.
 * - `second_hello`: a second hello arrived; the worker must be discarded.
 * - `worker_busy`: another turn is on the desk of this worker.
 * - `worker_lost`: the worker gave no sign of life for too long.
 * - `grant_failed`: the hook of a precheck failed, was too slow, or granted what cannot be.
 * - `aborted`: the signal that was passed in fired.
 * - `closed`: the broker was stopped.
 */
export type BrokerErrorCode =
  | 'options_invalid'
  | 'socket_path_invalid'
  | 'listen_failed'
  | 'already_listening'
  | 'already_bound'
  | 'turn_invalid'
  | 'protocol_mismatch'
  | 'hello_invalid'
  | 'second_hello'
  | 'worker_busy'
  | 'worker_lost'
  | 'grant_failed'
  | 'aborted'
  | 'closed'

const BRAND = Symbol.for('@sandbox/broker.BrokerError')

/** The error of this package. Its message is for the operator; it never holds a credential or guest text. */
export class BrokerError extends Error {
  override readonly name = 'BrokerError'
  readonly code: BrokerErrorCode
  readonly [BRAND] = true

  constructor(code: BrokerErrorCode, message: string, options?: ErrorOptions) {
    super(message, options)
    this.code = code
    Object.defineProperty(this, BRAND, { value: true })
  }

  /** True for an error of this class, also when it comes from another copy of this package. */
  static isInstance(value: unknown): value is BrokerError {
    return typeof value === 'object' && value !== null && BRAND in value
  }
}
