import { randomBytes } from 'node:crypto'
import { CredentialError, snapshotScope } from '@sandbox/credential-scope'
import { limits } from '@sandbox/protocol'
import { SandboxPluginError } from '../errors.ts'
import type { ChannelKey } from '../host-contract.ts'

/** A turn as it was admitted: copied and frozen, so that nothing the caller changes later reaches it. */
export interface TurnSnapshot {
  readonly turnId: string
  readonly channel: ChannelKey
  readonly speaker: { readonly id: string; readonly name: string }
  readonly text: string
}

/**
 * Copies what a turn is made of, and checks it.
 * @throws SandboxPluginError `input_invalid`
 */
export function snapshotTurn(
  channel: ChannelKey,
  speaker: { readonly id: string; readonly name: string },
  text: string,
): TurnSnapshot {
  checkChannel(channel)
  refuse(typeof text !== 'string', 'text', 'must be a string')
  refuse(text.length > limits.TURN_TEXT_CHARS, 'text', `has at most ${limits.TURN_TEXT_CHARS} characters`)
  return Object.freeze({
    turnId: randomBytes(12).toString('hex'),
    channel,
    speaker: copySpeaker(channel, speaker),
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
 * A frozen copy of the speaker.
 * @throws SandboxPluginError `input_invalid`
 */
export function copySpeaker(channel: ChannelKey, speaker: TurnSnapshot['speaker']): TurnSnapshot['speaker'] {
  try {
    return snapshotScope({ channel, speaker }).speaker
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
