import type { SandboxCredentialScope } from '@sandbox/credential-scope'
import type { PiThinkingLevel } from '@sandbox/protocol'

/**
 * What the host knows about one turn of a Pi worker. It is copied when the turn is bound: later changes of the
 * caller's object do not reach the turn, and every tool gets a frozen copy of its own. A speaker's `principalId` is not
 * copied: the scope of a Pi turn has none.
 */
export interface PiHostContext extends SandboxCredentialScope {
  /** The operator's profile that the channel runs under: `[a-zA-Z0-9_-]{1,100}`. */
  readonly profile: string
  /** How hard the model may think at most. Omitted = `low`. */
  readonly thinking?: PiThinkingLevel
  /** When the turn ends, in milliseconds on the clock of `performance.now()`. */
  readonly deadline: number
  /** Fires when the turn is over, whichever way. */
  readonly signal: AbortSignal
}
