import type { CallEvent } from '@sandbox/broker'
import type { ChannelKey } from '../host-contract.ts'
import type { FailureCategory, TurnEvent } from './turn-state.ts'

/** How a channel's last turn ended. Names, times and a fingerprint; never a message or a key. */
export interface LastTurn {
  readonly turnId: string
  readonly speakerId: string
  readonly ok: boolean
  /** With `ok: false`. */
  readonly category?: FailureCategory
  readonly durationMs: number
  /** When it ended, in milliseconds since the epoch. */
  readonly endedAt: number
  /** Of the credential that paid for its last model call. Absent when none did. */
  readonly fingerprint?: string
}

/** Channels whose last turn is kept; those of the others are forgotten, the oldest first. */
const KNOWN = 10_000

/** Remembers the last turn of each channel, from the events of turns and calls. In memory alone. */
export class LastTurns {
  readonly #last = new Map<ChannelKey, LastTurn>()
  /** Fingerprints of the turns that run. */
  readonly #paying = new Map<string, string>()

  /** The last turn of a channel. */
  of(channel: ChannelKey): LastTurn | undefined {
    return this.#last.get(channel)
  }

  /** Takes note of a call. */
  sawCall({ route, turnId, fingerprint }: CallEvent): void {
    if (route !== 'model' || turnId === undefined || fingerprint === undefined) return
    if (this.#paying.has(turnId)) this.#paying.set(turnId, fingerprint)
  }

  /** Takes note of a state of a turn. */
  sawTurn({ state, turnId, channel, speaker, ok = false, category, durationMs }: TurnEvent): void {
    if (state === 'admitted') this.#paying.set(turnId, '')
    if (state !== 'settled') return
    const fingerprint = this.#paying.get(turnId)
    this.#paying.delete(turnId)
    // Taken out first, so that those with a late turn are the last to be forgotten.
    this.#last.delete(channel)
    if (this.#last.size >= KNOWN) this.#last.delete(this.#last.keys().next().value as ChannelKey)
    this.#last.set(channel, {
      turnId,
      speakerId: speaker.id,
      ok,
      ...(category === undefined ? {} : { category }),
      durationMs,
      endedAt: Date.now(),
      ...(fingerprint ? { fingerprint } : {}),
    })
  }
}
