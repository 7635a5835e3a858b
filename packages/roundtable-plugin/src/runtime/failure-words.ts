import type { CallEvent, CallReason } from '@sandbox/broker'
import type { FailureCategory } from './turn-state.ts'

/**
 * What the chat is told when a turn has no answer. Every word is the host's: nothing that a guest, a model
 * service or an error message said is ever repeated here.
 */
const WORDS: Readonly<Record<Exclude<FailureCategory, 'credential' | 'workspace'>, string>> = {
  timeout: 'That took too long, so I stopped. Please try again, or ask for something smaller.',
  stopped: 'Stopped.',
  container: 'I could not start a safe place to work in, so I did not. Please tell the owner of this bot.',
  broker: 'The model service could not be reached or did not give a usable answer. Please try again later.',
  worker: 'I could not finish this. Please try again.',
  host: 'Something of mine is out of order, so I did not start. Please tell the owner of this bot.',
}

/** What is known about the credential of a turn that failed. */
export type CredentialTrouble = 'missing' | 'unusable' | 'rejected' | 'spent' | 'revoked'

/** The text of a failed turn. `contact` is whom to ask for a key or for room. */
export function failureWords(
  category: FailureCategory,
  contact: string,
  trouble?: CredentialTrouble,
): string {
  if (category === 'workspace') {
    return `The files of this channel take more room than they may, so I did not start. Please ask ${contact} to make room.`
  }
  if (category !== 'credential') return WORDS[category]
  if (trouble === 'rejected') {
    return `The model service refused the key that is set for you in this channel. Please ask ${contact} to renew it.`
  }
  if (trouble === 'unusable') {
    return `The key that is set for you in this channel could not be used. Please ask ${contact} to look at it.`
  }
  if (trouble === 'spent') {
    return `There is no credit left for you in this channel. Please try again later, or ask ${contact} for more.`
  }
  if (trouble === 'revoked') {
    return `Spending was stopped for you in this channel, so I did not answer. Please ask ${contact} to allow it again.`
  }
  return `No key is set for you in this channel, so I cannot answer. Please ask ${contact} for one.`
}

/** What one turn's calls say about why it failed. */
export interface CallTrouble {
  readonly credential?: CredentialTrouble
  /** The model service failed, by this reason. */
  readonly upstream?: CallReason
}

/** Follows the model calls of one turn. A trouble lasts until a call succeeds. */
export class CallWatch {
  #trouble: CallTrouble = {}

  /** What stands in the way. */
  get trouble(): CallTrouble {
    return this.#trouble
  }

  /** Takes note of a call that ended. */
  saw(event: CallEvent): void {
    if (event.route !== 'model') return
    if (event.reason === 'ok') this.#trouble = {}
    else this.#trouble = troubleOf(event) ?? this.#trouble
  }
}

function troubleOf(event: CallEvent): CallTrouble | undefined {
  const { reason, upstreamStatus } = event
  if (reason === 'credential_missing') return { credential: 'missing' }
  if (reason === 'credit_spent') return { credential: 'spent' }
  if (reason === 'credential_error' || reason === 'credential_invalid') return { credential: 'unusable' }
  if (upstreamStatus === 401 || upstreamStatus === 403) return { credential: 'rejected' }
  const upstream = reason.startsWith('upstream_') || reason === 'reflection' || reason === 'timeout'
  return upstream ? { upstream: reason } : undefined
}
