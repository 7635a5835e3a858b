import { CredentialError } from './errors.ts'

/** Who speaks. */
export interface SandboxSpeaker {
  /** Stable id of the account that speaks, as the chat service knows it. */
  readonly id: string
  /** Display name. People choose it themselves: never pick a credential by it. */
  readonly name: string
  /** Stable id of the person behind the account, from hosts that know it. 1 to 256 characters. */
  readonly principalId?: string
}

/** For whom a credential is asked: one speaker in one channel. */
export interface SandboxCredentialScope {
  /** Channel key, `<surface>:<id>`, as the host knows it. */
  readonly channel: string
  readonly speaker: SandboxSpeaker
}

const CHANNEL_CHARS = 512
const SPEAKER_CHARS = 256

/**
 * Copies a scope: deep frozen, exactly `{ channel, speaker: { id, name, principalId? } }`, whatever else the input
 * carries; `principalId` is there only when it was given. Later changes of the input do not reach the copy.
 *
 * @throws CredentialError `scope_invalid` when a field is missing, empty (a name may be empty), too long, or
 * holds control characters.
 */
export function snapshotScope(input: SandboxCredentialScope): SandboxCredentialScope {
  const source = asObject(input, 'The scope')
  const channel = asText(source.channel, 'channel', CHANNEL_CHARS)
  const speaker = asObject(source.speaker, 'The scope’s speaker')
  const id = asText(speaker.id, 'speaker.id', SPEAKER_CHARS)
  const name = asText(speaker.name, 'speaker.name', SPEAKER_CHARS, true)
  const { principalId } = speaker
  const principal =
    principalId === undefined
      ? {}
      : { principalId: asText(principalId, 'speaker.principalId', SPEAKER_CHARS) }
  return Object.freeze({ channel, speaker: Object.freeze({ id, name, ...principal }) })
}

function asObject(value: unknown, what: string): Record<string, unknown> {
  if (typeof value === 'object' && value !== null) return value as Record<string, unknown>
  throw new CredentialError('scope_invalid', `${what} is not an object.`)
}

function asText(value: unknown, field: string, most: number, display = false): string {
  const problem = textProblem(value, most, display)
  if (problem === undefined) return value as string
  throw new CredentialError('scope_invalid', `The scope’s ${field} ${problem}.`)
}

function textProblem(value: unknown, most: number, display: boolean): string | undefined {
  if (typeof value !== 'string') return 'is not a string'
  if (value.length > most) return `is longer than ${most} characters`
  if (display) return undefined
  if (value.trim() === '') return 'is empty'
  // biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what is looked for.
  return /[\u0000-\u001f\u007f]/.test(value) ? 'holds control characters' : undefined
}
