const BRAND = Symbol.for('sandbox.DriverError')

/**
 * What went wrong, for code. The message says the rest: what, where, and what to do.
 *
 * | code | meaning |
 * | --- | --- |
 * | `options_invalid` | an option of a driver or a build is out of range; the message names it |
 * | `spec_invalid` | a field of a `WorkerSpec` is out of range; the message names it |
 * | `engine_unreachable` | no engine answers on the socket, or not in time |
 * | `engine_remote` | the engine is not a local Unix socket |
 * | `engine_unsuitable` | the engine would not enforce the profile |
 * | `engine_failed` | the engine answered a call with an unexpected status |
 * | `image_missing` | the image is not on the engine |
 * | `image_protocol` | the image was built for another protocol version |
 * | `image_unsuitable` | the image brings volumes or variables of its own |
 * | `image_outdated` | a waiting worker was started from an image that is not the current one |
 * | `runtime_unsuitable` | the program given as runtime cannot be put into an image or started |
 * | `bundle_missing` | the guest program is not built |
 * | `start_failed` | the worker was created but did not start; nothing of it is left |
 * | `remove_failed` | the worker may still be there; an operator must look |
 * | `worker_out_of_memory` | the worker met its memory limit, or was killed and that is the likely reason |
 * | `worker_pid_limit` | the worker could not make another process or thread |
 * | `worker_deadline` | the worker was removed because its time was over |
 * | `worker_killed` | the worker was ended by a signal |
 * | `worker_failed` | the worker ended by itself with another exit code than 0 |
 * | `worker_lost` | how the worker ended cannot be known, for example because the engine died |
 * | `aborted` | the caller's signal ended the wait; `cause` is its reason |
 * | `closed` | the driver was disposed |
 */
export type DriverErrorCode =
  | 'options_invalid'
  | 'spec_invalid'
  | 'engine_unreachable'
  | 'engine_remote'
  | 'engine_unsuitable'
  | 'engine_failed'
  | 'image_missing'
  | 'image_protocol'
  | 'image_unsuitable'
  | 'image_outdated'
  | 'runtime_unsuitable'
  | 'bundle_missing'
  | 'start_failed'
  | 'remove_failed'
  | 'worker_out_of_memory'
  | 'worker_pid_limit'
  | 'worker_deadline'
  | 'worker_killed'
  | 'worker_failed'
  | 'worker_lost'
  | 'aborted'
  | 'closed'

/** The one error of this package. Evidence is in `cause`. */
export class DriverError extends Error {
  readonly code: DriverErrorCode

  constructor(code: DriverErrorCode, message: string, options?: ErrorOptions) {
    super(message, options)
    this.name = 'DriverError'
    this.code = code
    Object.defineProperty(this, BRAND, { value: true })
  }

  /** True for a `DriverError` of any copy of this package. */
  static isInstance(value: unknown): value is DriverError {
    return value instanceof Error && (value as unknown as Record<symbol, unknown>)[BRAND] === true
  }
}

/** Throws `aborted` when the signal did; its reason is the `cause`. */
export function stopIfAborted(signal: AbortSignal | undefined): void {
  if (!signal?.aborted) return
  throw new DriverError('aborted', 'Called off before it was done.', { cause: signal.reason })
}
