const brand = Symbol.for('sandbox.roundtable-plugin.error')

/**
 * Every code of {@link SandboxPluginError}:
 *
 * - `options_invalid`: an option is wrong; the message names it
 * - `user_refused`: the workers would run as root, or as somebody other than the host's account
 * - `root_refused`: the run root or the workspace root is not a private directory of the right account
 * - `run_root_locked`: another host uses this run root or workspace root
 * - `state_refused`: the state file or its directory is not a private file of this account
 * - `state_invalid`: the state file does not hold a list of channels
 * - `state_unwritable`: the state file could not be written; nothing changed
 * - `closed`: the runtime is disposed
 * - `busy`: the channel already has a turn
 * - `input_invalid`: channel, speaker or text of a turn is outside the limits
 * - `cleanup_failed`: the turn was answered, but its worker or directory could not be removed
 * - `turn_too_large`: prompt and tools leave no room for the largest message
 * - `posture_refused`: a worker's own examination differs from what its driver promises
 * - `workspace_full`: a channel's workspace takes more than it may
 * - `worker_ended`: a worker ended before its turn did
 * - `worker_looping`: the workers of a channel keep ending before they are ready; none is started for a while
 * - `worker_late`: a worker was not ready in time
 * - `channel_alias`: two channel keys would share one directory
 * - `profile_unknown`: there is no profile of that name
 * - `hook_failed`: a function of the operator failed, or gave what cannot be used
 * - `stopped`: somebody stopped the channel
 * - `turn_failed`: what happened to a turn that has no answer, for the operator
 * - `delivery_late`: a chat did not take what it was given, and was not waited for any longer
 * - `plugin_invalid`: a plugin cannot be linked
 * - `not_linked`: a host part was used during setup
 * - `service_missing`: nobody provides a service
 * - `surface_unknown`: no surface serves a channel
 * - `files_unsupported`: a surface takes no files
 * - `command_refused`: an owner command was added too late, or twice
 * - `conversation_unowned`: no claim owns a channel
 */
export type SandboxPluginErrorCode =
  | 'options_invalid'
  | 'user_refused'
  | 'root_refused'
  | 'run_root_locked'
  | 'state_refused'
  | 'state_invalid'
  | 'state_unwritable'
  | 'closed'
  | 'busy'
  | 'input_invalid'
  | 'cleanup_failed'
  | 'turn_too_large'
  | 'posture_refused'
  | 'workspace_full'
  | 'worker_ended'
  | 'worker_looping'
  | 'worker_late'
  | 'channel_alias'
  | 'profile_unknown'
  | 'hook_failed'
  | 'stopped'
  | 'turn_failed'
  | 'delivery_late'
  | 'plugin_invalid'
  | 'not_linked'
  | 'service_missing'
  | 'surface_unknown'
  | 'files_unsupported'
  | 'command_refused'
  | 'conversation_unowned'

/** An error of this package. The message never holds a secret or guest text; evidence is in `cause`. */
export class SandboxPluginError extends Error {
  readonly code: SandboxPluginErrorCode

  constructor(code: SandboxPluginErrorCode, message: string, options?: { cause?: unknown }) {
    super(message, options)
    this.name = 'SandboxPluginError'
    this.code = code
    Object.defineProperty(this, brand, { value: true })
  }

  /** True for an error of this class, whichever copy of the package made it. */
  static isInstance(value: unknown): value is SandboxPluginError {
    return typeof value === 'object' && value !== null && (value as Record<symbol, unknown>)[brand] === true
  }
}

/** A turn of a Pi worker that has no answer. The message is what the chat is told; what happened is in `cause`. */
export class AgentRunError extends Error {
  constructor(message: string, options?: { cause?: unknown }) {
    super(message, options)
    this.name = 'AgentRunError'
  }
}
