import type { SandboxCredentialScope } from '@sandbox/credential-scope'

/** One admitted turn on a broker. */
export interface BoundTurn {
  readonly turnId: string
  /** What the guest must send as `x-sandbox-turn` on every call of this turn. */
  readonly nonce: string
  /** The channel and speaker, frozen at bind. */
  readonly scope: SandboxCredentialScope
  /** Ends the turn: calls in flight are aborted, later ones get 410. Idempotent; never throws. */
  release(): void
}

/** What `bind` takes. */
export interface TurnInput {
  readonly turnId: string
  readonly context: {
    readonly channel: string
    readonly speaker: { readonly id: string; readonly name: string }
  }
  /** Ends the turn when it fires, as `release` does. */
  readonly signal: AbortSignal
}
