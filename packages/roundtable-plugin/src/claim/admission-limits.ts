import { SandboxPluginError } from '../errors.ts'
import type { ChannelKey } from '../host-contract.ts'

/** How much a speaker and a channel may ask for, before anything is spent. */
export interface AdmissionOptions {
  /** Messages of one speaker in one channel that are taken in a minute. Omitted = 30. */
  readonly perSpeakerMinute?: number
  /** Messages of a channel that are taken in a minute. Omitted = 120. */
  readonly perChannelMinute?: number
  /** Messages of one speaker in one channel that wait or are being answered. Omitted = 5. */
  readonly waitingPerSpeaker?: number
  /** Messages of a channel that wait or are being answered. Omitted = 50. */
  readonly waitingPerChannel?: number
}

/** A message that is taken, or words for whoever is refused. */
export type Admitted =
  | { readonly ok: true /** Its turn is over. */; done(): void }
  | {
      readonly ok: false
      readonly reason: keyof AdmissionOptions /** `undefined`: they were told a moment ago. */
      readonly words?: string
    }

const MINUTE_MS = 60_000
/** Longer than a full queue of the longest turns takes: a message that waits since then was dropped by its host. */
const LOST_MS = 12 * 60 * MINUTE_MS
/** Speakers and channels that are forgotten once nothing of theirs counts any more. */
const KNOWN = 10_000

/** What is counted of a speaker in a channel, or of a channel. */
class Tally {
  /** Of the messages taken in the last minute, in milliseconds on the clock of `performance.now()`. */
  readonly taken: number[] = []
  /** Those that wait or are being answered, the oldest first, and since when. */
  readonly #waiting = new Map<object, number>()
  toldAt = Number.NEGATIVE_INFINITY

  forget(now: number): void {
    while ((this.taken[0] ?? now) <= now - MINUTE_MS) this.taken.shift()
    for (const [message, since] of this.#waiting) {
      if (since > now - LOST_MS) break
      this.#waiting.delete(message)
    }
  }

  take(message: object, now: number): void {
    this.taken.push(now)
    this.#waiting.set(message, now)
  }

  done(message: object): void {
    this.#waiting.delete(message)
  }

  get waiting(): number {
    return this.#waiting.size
  }

  get idle(): boolean {
    return this.taken.length === 0 && this.waiting === 0
  }
}

/**
 * Keeps one speaker from filling a channel's queue, and one channel from filling the host. Counts messages where they
 * are admitted, so that a refused one costs nothing; it is in memory alone.
 */
export class AdmissionLimits {
  readonly #limits: Required<AdmissionOptions>
  readonly #now: () => number
  readonly #tallies = new Map<string, Tally>()

  /** `now` is a clock in milliseconds that never goes back. @throws SandboxPluginError `options_invalid` */
  constructor(options: AdmissionOptions = {}, now: () => number = () => performance.now()) {
    const {
      perSpeakerMinute = 30,
      perChannelMinute = 120,
      waitingPerSpeaker = 5,
      waitingPerChannel = 50,
    } = options
    this.#limits = {
      perSpeakerMinute: whole('perSpeakerMinute', perSpeakerMinute),
      perChannelMinute: whole('perChannelMinute', perChannelMinute),
      waitingPerSpeaker: whole('waitingPerSpeaker', waitingPerSpeaker),
      waitingPerChannel: whole('waitingPerChannel', waitingPerChannel),
    }
    this.#now = now
  }

  /**
   * Counts a message of a speaker in a channel, or says why it is not taken. Who is refused is told once a minute; that
   * a channel has had enough is said in it once a minute, since a crowd of strangers would have a crowd of answers.
   */
  admit(channel: ChannelKey, speakerId: string): Admitted {
    const now = this.#now()
    // Before both are looked up: one that is new counts nothing yet, and would be forgotten for the other.
    if (this.#tallies.size >= KNOWN) this.#sweep(now)
    const own = this.#tally(JSON.stringify([channel, speakerId]), now)
    const whole = this.#tally(channel, now)
    const reason = this.#refusal(own, whole)
    if (reason !== undefined) {
      const full = reason === 'perSpeakerMinute' || reason === 'waitingPerSpeaker' ? own : whole
      const told = now - full.toldAt < MINUTE_MS
      if (!told) full.toldAt = now
      const oldest = full.taken[0] ?? now
      const words = this.#wordsFor(reason, Math.ceil((oldest + MINUTE_MS - now) / 1_000))
      return { ok: false, reason, ...(told ? {} : { words }) }
    }
    const message = {}
    own.take(message, now)
    whole.take(message, now)
    const done = () => {
      own.done(message)
      whole.done(message)
    }
    return { ok: true, done }
  }

  #refusal(own: Tally, whole: Tally): keyof AdmissionOptions | undefined {
    if (own.waiting >= this.#limits.waitingPerSpeaker) return 'waitingPerSpeaker'
    if (whole.waiting >= this.#limits.waitingPerChannel) return 'waitingPerChannel'
    if (own.taken.length >= this.#limits.perSpeakerMinute) return 'perSpeakerMinute'
    return whole.taken.length >= this.#limits.perChannelMinute ? 'perChannelMinute' : undefined
  }

  #wordsFor(reason: keyof AdmissionOptions, seconds: number): string {
    const again = `Please try again in ${Math.max(1, seconds)} s.`
    switch (reason) {
      case 'waitingPerSpeaker':
        return `I am still busy with ${this.#limits.waitingPerSpeaker} messages of yours, and did not take this one. Please wait for an answer first.`
      case 'waitingPerChannel':
        return 'Too many messages wait for an answer in this channel, so I did not take this one. Please try again later.'
      case 'perSpeakerMinute':
        return `You write faster than I may answer you, so I did not take this message. ${again}`
      case 'perChannelMinute':
        return `This channel has had as many answers as it may have in a minute, so I did not take this message. ${again}`
    }
  }

  #tally(key: string, now: number): Tally {
    const known = this.#tallies.get(key)
    known?.forget(now)
    if (known !== undefined) return known
    const fresh = new Tally()
    this.#tallies.set(key, fresh)
    return fresh
  }

  #sweep(now: number): void {
    for (const [key, tally] of this.#tallies) {
      tally.forget(now)
      if (tally.idle) this.#tallies.delete(key)
    }
  }
}

function whole(option: string, value: number): number {
  if (Number.isInteger(value) && value >= 1) return value
  throw new SandboxPluginError('options_invalid', `admission.${option}: must be a whole number, 1 or more.`)
}
