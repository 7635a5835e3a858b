import type { ChannelKey } from '../../src/host-contract.ts'

/** How big a chat is. */
export interface ChatSize {
  readonly messages: number
  readonly channels: number
  readonly speakers: number
  /** How many messages may be on their way at once. */
  readonly atOnce: number
  readonly restarts: number
  /** The model is never out of order: an agent that tries again takes its time. */
  readonly calm?: boolean
}

/** What the model does when it is asked about a message. */
export type Behaviour = 'answer' | 'slow' | 'tool' | 'hang' | 'error' | 'busy' | 'cut' | 'nonsense'

/** How a channel is answered. */
export type Mode = 'sealed' | 'pi' | 'off'

/** One step of a chat. */
export type Step =
  | {
      readonly do: 'say'
      readonly channel: ChannelKey
      readonly speaker: string
      readonly behaviour: Behaviour
    }
  | { readonly do: 'switch'; readonly channel: ChannelKey; readonly mode: Mode }
  | { readonly do: 'stop' | 'reset' | 'erase'; readonly channel: ChannelKey }
  | { readonly do: 'revoke' | 'restore'; readonly channel: ChannelKey; readonly speaker: string }
  | { readonly do: 'restart'; readonly drainMs: number }
  /** Lets some of what is on its way arrive. */
  | { readonly do: 'pause'; readonly share: number }

/** Numbers that look random and are the same for a seed. */
export interface Dice {
  /** From 0 to 1. */
  next(): number
  below(limit: number): number
  pick<T>(from: readonly T[]): T
}

/** mulberry32 */
export function diceOf(seed: number): Dice {
  let state = seed >>> 0
  const next = () => {
    state = (state + 0x6d2b79f5) >>> 0
    let t = Math.imul(state ^ (state >>> 15), state | 1)
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61)
    return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32
  }
  const below = (limit: number) => Math.floor(next() * limit)
  return { next, below, pick: (from) => from[below(from.length)] as (typeof from)[number] }
}

const TROUBLE: readonly Behaviour[] = ['hang', 'error', 'busy', 'cut', 'nonsense']

/** Keys of the channels of a chat. */
export function channelsOf(size: ChatSize): readonly ChannelKey[] {
  return Array.from({ length: size.channels }, (_, index): ChannelKey => `discord:${100 + index}`)
}

/** A whole chat, the same for a seed: mostly messages, and everything that can come between. */
export function scriptOf(size: ChatSize, dice: Dice): readonly Step[] {
  const channels = channelsOf(size)
  const speakers = Array.from({ length: size.speakers }, (_, index) => `u-${index}`)
  const restartAt = new Set(
    Array.from({ length: size.restarts }, (_, index) =>
      Math.floor(((index + 1) * size.messages) / (size.restarts + 1)),
    ),
  )
  const steps: Step[] = []
  for (let said = 0; said < size.messages; said += 1) {
    if (restartAt.has(said)) steps.push({ do: 'restart', drainMs: dice.pick([0, 0, 30_000]) })
    const channel = dice.pick(channels)
    const speaker = dice.pick(speakers)
    // What was asked for shows in the next message of the same place.
    const more = between(dice, channel, speaker)
    if (more !== undefined) steps.push(more)
    steps.push({ do: 'say', channel, speaker, behaviour: behaviour(dice, size.calm) })
    if (dice.next() < 0.3) steps.push({ do: 'pause', share: dice.next() })
  }
  return steps
}

function behaviour(dice: Dice, calm = false): Behaviour {
  const luck = dice.next() * (calm ? 0.85 : 1)
  if (luck < 0.65) return 'answer'
  if (luck < 0.75) return 'slow'
  return luck < 0.85 ? 'tool' : dice.pick(TROUBLE)
}

function between(dice: Dice, channel: ChannelKey, speaker: string): Step | undefined {
  const luck = dice.next()
  if (luck < 0.05) return { do: 'switch', channel, mode: dice.pick(['sealed', 'pi', 'off', 'sealed', 'pi']) }
  if (luck < 0.09) return { do: 'stop', channel }
  if (luck < 0.15) return { do: 'reset', channel }
  if (luck < 0.17) return { do: 'erase', channel }
  if (luck < 0.21) return { do: 'revoke', channel, speaker }
  if (luck < 0.26) return { do: 'restore', channel, speaker }
  return undefined
}
