import type { AuthSlot, CredentialGetter } from '@sandbox/credential-scope'
import type { CallEvent } from './engine/call/call-event.ts'
import { BrokerError } from './engine/errors.ts'

/** What a host tool learns about the call. Each call gets its own frozen copy. */
export interface HostToolContext {
  readonly channel: string
  /** `name` is chosen by the speaker: never key anything on it. */
  readonly speaker: { readonly id: string; readonly name: string }
  /** Fires when the turn ends, the guest leaves, or the call's 60 s are over. */
  readonly signal: AbortSignal
}

/** A tool that runs on the host. */
export interface HostTool {
  /** `[a-z][a-z0-9_]{0,47}`, unique. */
  name: string
  description: string
  /** A JSON Schema object, without remote references. */
  parameters: Record<string, unknown>
  /**
   * Runs once per call. `input` is what the model wrote: untrusted. A throw fails the call, and its text never
   * reaches the guest.
   */
  execute(input: Record<string, unknown>, context: HostToolContext): string | Promise<string>
}

/** Options of the sealed broker. */
export interface BrokerOptions {
  /** The full URL of a Chat Completions endpoint. `https:`, no user info, no fragment. */
  modelUrl: string
  /** Sent as `model`, whatever the guest asked for. */
  model: string
  /** Asked before every model call; see {@link CredentialGetter}. */
  apiKey: CredentialGetter
  /** Admits `http:` for loopback hosts. Omitted = false. */
  allowHttp?: boolean
  /** Omitted = none. */
  tools?: readonly HostTool[]
  /** Calls per turn, 1 to 1000. Omitted = 48. */
  maxCalls?: number
  /** Token limit of each model call, 1 to 32768. Omitted = 4096. */
  maxOutputTokens?: number
  /** Where the credential goes. Omitted = `authorization: Bearer`. */
  authSlot?: AuthSlot
  /** The field that carries `maxOutputTokens`. Omitted = `max_tokens`. */
  tokenLimitField?: 'max_tokens' | 'max_completion_tokens'
  /** Calls that may wait while one is in flight, 0 to 64. Omitted = 4. */
  maxQueuedCalls?: number
  /** Called once per call when it has ended. A throw is swallowed. */
  onCall?(event: CallEvent): void
}

/**
 * Checks options without opening anything or asking for a credential.
 * @throws BrokerError `options_invalid`, naming the field.
 */
export function checkBrokerOptions(options: BrokerOptions): void {
  if (typeof options !== 'object' || options === null) {
    throw new BrokerError('options_invalid', 'options: must be an object')
  }
}
