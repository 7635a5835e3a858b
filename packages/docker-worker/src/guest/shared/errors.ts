import type { FailureCode } from '@sandbox/protocol'

/**
 * Why something in a guest failed. The codes of the protocol's `FailureCode` end a turn; the others are:
 * `connection_lost` the host closed or refused the connection · `timeout` the host did not answer in time ·
 * `aborted` the caller's signal fired · `answer_too_large` and `answer_invalid` the host's answer is unusable ·
 * `refused` the host answered, with a refusal · `file_invalid` a workspace file is unreadable or of a wrong
 * shape · `memory_refused` a memory call breaks a rule or a quota · `tool_refused` a tool call failed ·
 * `content_invalid` the operator's content cannot be used · `usage` wrong arguments.
 */
export type GuestErrorCode =
  | FailureCode
  | 'connection_lost'
  | 'timeout'
  | 'aborted'
  | 'answer_too_large'
  | 'answer_invalid'
  | 'refused'
  | 'file_invalid'
  | 'memory_refused'
  | 'tool_refused'
  | 'content_invalid'
  | 'usage'

const brand = Symbol.for('@sandbox/docker-worker/GuestError')

/** What guest programs throw. Messages are for a person who reads the worker's log; they hold no guest text. */
export class GuestError extends Error {
  readonly code: GuestErrorCode
  readonly [brand] = true

  constructor(code: GuestErrorCode, message: string, options?: ErrorOptions) {
    super(message, options)
    this.name = 'GuestError'
    this.code = code
  }

  /** True for errors of this class, also when they come from another copy of the module. */
  static isInstance(value: unknown): value is GuestError {
    return typeof value === 'object' && value !== null && brand in value
  }
}
