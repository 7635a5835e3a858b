import { randomBytes } from 'node:crypto'
import {
  CredentialError,
  type SandboxCredentialScope,
  type SandboxSpeaker,
  snapshotScope,
} from '@sandbox/credential-scope'
import { limits } from '@sandbox/protocol'
import { SandboxPluginError } from '../errors.ts'
import type { ChannelKey } from '../host-contract.ts'

/** A turn as it was admitted: copied and frozen, so that nothing the caller changes later reaches it. */
export interface TurnSnapshot {
  readonly turnId: string
  readonly channel: ChannelKey
  /** As workers, listeners and words see them: no `principalId`. */
  readonly speaker: { readonly id: string; readonly name: string }
  /** Who pays. */
  readonly scope: SandboxCredentialScope
  readonly text: string
}

/**
 * Copies what a turn is made of, and checks it.
 * @throws SandboxPluginError `input_invalid`
 */
export function snapshotTurn(channel: ChannelKey, speaker: SandboxSpeaker, text: string): TurnSnapshot {
  checkChannel(channel)
  refuse(typeof text !== 'string', 'text', 'must be a string')
  refuse(text.length > limits.TURN_TEXT_CHARS, 'text', `has at most ${limits.TURN_TEXT_CHARS} characters`)
  const scope = copyScope(channel, speaker)
  return Object.freeze({
    turnId: randomBytes(12).toString('hex'),
    channel,
    speaker: shownSpeaker(scope),
    scope,
    text,
  })
}

/**
 * Checks a channel key.
 * @throws SandboxPluginError `input_invalid`
 */
export function checkChannel(channel: ChannelKey): void {
  refuse(!isChannelKey(channel), 'channel', 'must look like "surface:id"')
}

/**
 * Checks the id of a speaker.
 * @throws SandboxPluginError `input_invalid`
 */
export function checkSpeakerId(id: string): void {
  const fits = typeof id === 'string' && id !== '' && id.length <= limits.SPEAKER_CHARS
  refuse(!fits, 'speaker.id', `must be a text of 1 to ${limits.SPEAKER_CHARS} characters`)
}

/**
 * A frozen copy of the speaker's id and name.
 * @throws SandboxPluginError `input_invalid`
 */
export function copySpeaker(channel: ChannelKey, speaker: SandboxSpeaker): TurnSnapshot['speaker'] {
  return shownSpeaker(copyScope(channel, speaker))
}

function shownSpeaker({ speaker: { id, name } }: SandboxCredentialScope): TurnSnapshot['speaker'] {
  return Object.freeze({ id, name })
}

function copyScope(channel: ChannelKey, speaker: SandboxSpeaker): SandboxCredentialScope {
  try {
    return snapshotScope({ channel, speaker })
  } catch (cause) {
    if (!CredentialError.isInstance(cause)) throw cause
    throw new SandboxPluginError('input_invalid', cause.message, { cause })
  }
}

/** True for `<surface>:<id>` with both parts there, and at most 512 characters. */
function isChannelKey(value: unknown): value is ChannelKey {
  return typeof value === 'string' && value.length <= 512 && /^[^:\s]+:[\s\S]+$/.test(value)
}

function refuse(wrong: boolean, field: string, problem: string): void {
  if (wrong) throw new SandboxPluginError('input_invalid', `${field} ${problem}`)
}
