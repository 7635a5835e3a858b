import type { SandboxCredentialScope } from '@sandbox/credential-scope'

/** How hard the model may think in a turn: a ceiling that the host judges and a guest cannot raise. */
export type PiThinkingLevel = 'low' | 'medium' | 'high' | 'xhigh'

/**
 * What the host knows about one turn of a Pi worker. It is copied when the turn is bound: later changes of the
 * caller's object do not reach the turn, and every tool gets a frozen copy of its own.
 */
export interface PiHostContext extends SandboxCredentialScope {
  /** The operator's profile that the channel runs under. */
  readonly profile: string
  /** Omitted = `low`. */
  readonly thinking?: PiThinkingLevel
  /** When the turn ends, in milliseconds on the clock of `performance.now()`. */
  readonly deadline: number
  /** Fires when the turn is over, whichever way. */
  readonly signal: AbortSignal
}
