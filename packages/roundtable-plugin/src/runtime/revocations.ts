import { SandboxPluginError } from '../errors.ts'
import type { ChannelKey } from '../host-contract.ts'
import type { TurnEnding } from './turn-ending.ts'
import { checkChannel, checkSpeakerId } from './turn-snapshot.ts'

/**
 * Whose spending is meant: a channel's, a speaker's in it, or, without a channel, a speaker's everywhere. The scope of a
 * call is one too.
 */
export interface SpendingScope {
  readonly channel?: string
  readonly speaker?: { readonly id: string }
}

/** A turn that was admitted. */
export interface RunningTurn {
  readonly channel: ChannelKey
  readonly speakerId: string
  readonly ending: TurnEnding
}

/** Who may not spend any more. Lives as long as the process. */
export class Revocations {
  readonly #revoked = new Map<string, SpendingScope>()

  /**
   * Takes the right to spend back, and ends every turn that spends it. Returns the channels of those turns.
   * @throws SandboxPluginError `input_invalid`
   */
  revoke(scope: SpendingScope, running: Iterable<RunningTurn>): ChannelKey[] {
    const revoked = copyOf(scope)
    this.#revoked.set(keyOf(revoked), revoked)
    return [...running]
      .filter((turn) => covers(revoked, turn) && turn.ending.revoke())
      .map(({ channel }) => channel)
  }

  /**
   * Gives back what was taken for exactly this scope; false when nothing was.
   * @throws SandboxPluginError `input_invalid`
   */
  restore(scope: SpendingScope): boolean {
    return this.#revoked.delete(keyOf(copyOf(scope)))
  }

  /** Ends a turn of somebody who may not spend. To be asked before anything is begun for it. */
  admit(turn: RunningTurn): void {
    if (this.#covering(turn) !== undefined) turn.ending.revoke()
  }

  /** What is taken back now. */
  list(): SpendingScope[] {
    return [...this.#revoked.values()]
  }

  #covering(turn: Pick<RunningTurn, 'channel' | 'speakerId'>): SpendingScope | undefined {
    return this.list().find((scope) => covers(scope, turn))
  }
}

/** True when a whole channel is among what is taken back. */
export function isRevoked(revoked: readonly SpendingScope[], channel: ChannelKey): boolean {
  return revoked.some((scope) => scope.channel === channel && scope.speaker === undefined)
}

function covers(
  { channel, speaker }: SpendingScope,
  turn: Pick<RunningTurn, 'channel' | 'speakerId'>,
): boolean {
  const here = channel === undefined || channel === turn.channel
  return here && (speaker === undefined || speaker.id === turn.speakerId)
}

/** Frozen, with nothing in it that does not count. */
function copyOf(scope: SpendingScope): SpendingScope {
  const { channel, speaker } = scope ?? {}
  if (channel !== undefined) checkChannel(channel as ChannelKey)
  const id = speaker?.id
  if (speaker !== undefined) checkSpeakerId(id as string)
  else if (channel === undefined) {
    throw new SandboxPluginError('input_invalid', 'scope must name a channel, a speaker by id, or both')
  }
  return Object.freeze({
    ...(channel !== undefined && { channel }),
    ...(id !== undefined && { speaker: Object.freeze({ id }) }),
  })
}

function keyOf({ channel, speaker }: SpendingScope): string {
  return JSON.stringify([channel ?? null, speaker?.id ?? null])
}
