import type { CallEvent, CallReason } from '@sandbox/broker'
import type { ChannelKey } from '../host-contract.ts'
import { quietly } from '../quietly.ts'
import type { FailureCategory } from './turn-state.ts'

/**
 * What the chat is told when a turn has no answer. Every word is the host's: nothing that a guest, a model
 * service or an error message said is ever repeated here.
 */
const WORDS: Readonly<Record<Exclude<FailureCategory, 'credential' | 'workspace'>, string>> = {
  timeout: 'That took too long, so I stopped. Please try again, or ask for something smaller.',
  stopped: 'Stopped.',
  container:
    'The safe place that I work in could not be started, or broke down. Please try again, and tell the owner of this bot if it stays so.',
  broker: 'The model service could not be reached or did not give a usable answer. Please try again later.',
  worker: 'I could not finish this. Please try again.',
  host: 'Something of mine is out of order, so I could not answer. Please tell the owner of this bot.',
}

/** Statuses of a service that has too much to do: those of RFC 9110 and RFC 6585, and 529 of Anthropic. */
const BUSY = new Set([429, 503, 529])

/** What is known about the credential of a turn that failed. */
export type CredentialTrouble = 'missing' | 'unusable' | 'rejected' | 'spent' | 'revoked'

/** Why a turn failed, as far as its words depend on it. */
export interface FailureFacts {
  readonly category: FailureCategory
  /** With `credential`. */
  readonly trouble?: CredentialTrouble
  /** With `broker`: the model service has too much to do. */
  readonly busy?: boolean
  /** With `busy`: how long it asked to wait; with `spent`: when there is credit again. In milliseconds from now. */
  readonly waitMs?: number
}

/**
 * An operator's own words for a failure; `undefined` leaves it to ours. Gets nothing that a guest, a service or an error
 * message said. It answers at once. Words that are blank or longer than 2,000 characters, and a throw, leave it to ours
 * too.
 */
export type FailureWording = (
  failure: FailureFacts & {
    readonly channel: ChannelKey
    readonly speaker: { readonly id: string; readonly name: string }
  },
) => string | undefined

/** What decides about the words of a failure. */
export interface WordingPolicy {
  /** Whom to ask for a key or for room. */
  readonly keyContact: string
  readonly words?: FailureWording
}

/** The text of a failed turn: the operator's, or ours. */
export function tellFailure(
  { keyContact, words }: WordingPolicy,
  { category, trouble, busy, waitMs }: FailureFacts,
  { channel, speaker }: Pick<Parameters<FailureWording>[0], 'channel' | 'speaker'>,
): string {
  const facts: FailureFacts = {
    category,
    ...(trouble === undefined ? {} : { trouble }),
    ...(busy === undefined ? {} : { busy }),
    ...(waitMs === undefined ? {} : { waitMs }),
  }
  return ownWords(words, { ...facts, channel, speaker: { ...speaker } }) ?? failureWords(facts, keyContact)
}

function ownWords(
  words: FailureWording | undefined,
  failure: Parameters<FailureWording>[0],
): string | undefined {
  let text: unknown
  quietly(() => {
    text = words?.(failure)
    return text
  })
  return typeof text === 'string' && text.trim() !== '' && text.length <= 2_000 ? text : undefined
}

/** Our words for a failed turn. `contact` is whom to ask for a key or for room. */
export function failureWords({ category, trouble, busy, waitMs }: FailureFacts, contact: string): string {
  if (category === 'broker' && busy === true) {
    return `The model service has too much to do right now. Please try again ${inTime(waitMs, 'in a moment')}.`
  }
  if (category === 'workspace') {
    return `The files of this channel take more room than they may, so I did not start. Please ask ${contact} to make room.`
  }
  return category === 'credential' ? credentialWords(contact, trouble, waitMs) : WORDS[category]
}

/** When to try again, in the largest unit of which there are more than two. */
function inTime(waitMs: number | undefined, unknown: string): string {
  if (waitMs === undefined) return unknown
  const seconds = Math.max(1, Math.ceil(waitMs / 1_000))
  if (seconds <= 120) return `in ${seconds} s`
  const minutes = Math.ceil(seconds / 60)
  return minutes <= 120 ? `in ${minutes} min` : `in ${Math.ceil(minutes / 60)} h`
}

function credentialWords(contact: string, trouble: CredentialTrouble | undefined, waitMs?: number): string {
  if (trouble === 'rejected') {
    return `The model service refused the key that is set for you in this channel. Please ask ${contact} to renew it.`
  }
  if (trouble === 'unusable') {
    return `The key that is set for you in this channel could not be used. Please ask ${contact} to look at it.`
  }
  if (trouble === 'spent') {
    return `There is no credit left for you in this channel. Please try again ${inTime(waitMs, 'later')}, or ask ${contact} for more.`
  }
  if (trouble === 'revoked') {
    return `Spending was stopped for you in this channel, so I did not answer. Please ask ${contact} to allow it again.`
  }
  return `No key is set for you in this channel, so I cannot answer. Please ask ${contact} for one.`
}

/** What one turn's calls say about why it failed. */
export interface CallTrouble {
  readonly credential?: CredentialTrouble
  /** With `spent`: when there is credit again, in milliseconds from then on. */
  readonly waitMs?: number
  /** A function of the operator failed, by this reason. */
  readonly host?: CallReason
  /** The model service failed, by this reason. */
  readonly upstream?: CallReason
  /** It has too much to do (429, 503, 529), and perhaps said for how long. */
  readonly busy?: { readonly waitMs?: number }
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
  if (reason === 'credit_spent') {
    const { resetsAtMs } = event
    return {
      credential: 'spent',
      ...(resetsAtMs !== undefined && { waitMs: Math.max(0, resetsAtMs - Date.now()) }),
    }
  }
  if (reason === 'credential_error' || reason === 'credential_invalid') return { credential: 'unusable' }
  if (reason === 'endpoint_invalid' || reason === 'credit_error') return { host: reason }
  if (upstreamStatus === 401 || upstreamStatus === 403) return { credential: 'rejected' }
  const upstream = reason.startsWith('upstream_') || reason === 'reflection' || reason === 'timeout'
  if (!upstream) return undefined
  const { retryAfterMs } = event
  const busy = BUSY.has(upstreamStatus ?? 0) && {
    busy: retryAfterMs === undefined ? {} : { waitMs: retryAfterMs },
  }
  return { upstream: reason, ...busy }
}
