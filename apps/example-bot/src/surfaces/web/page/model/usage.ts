import type { Receipt } from '../wire.ts'
import { outcomeOf } from './turn-filter.ts'

/** What turns are added up by. */
export type Grouping = 'channel' | 'speaker'

/** What the turns of one channel or speaker took. */
export interface Usage {
  readonly group: string
  readonly turns: number
  readonly refused: number
  readonly input: number
  readonly output: number
  /** `null` when it is not known of every turn. */
  readonly cost: number | null
  readonly medianMs: number
  readonly slowestMs: number
}

/** One figure of each group along the turns, oldest first. */
export interface UsageSeries {
  readonly groups: readonly string[]
  /** 0, 1, 2 …: totals begin at nothing. */
  readonly turns: readonly number[]
  /** By group: the running total of tokens, and of the estimate. */
  readonly tokens: readonly (readonly number[])[]
  readonly cost: readonly (readonly (number | null)[])[]
  /** By group: how long its turns took; `null` where the turn is of another. */
  readonly durationMs: readonly (readonly (number | null)[])[]
}

/** What a turn is counted under. Two speakers of one name are two: the id tells them apart. */
function groupOf({ channel, speaker }: Receipt, by: Grouping): string {
  return by === 'channel' ? channel : `${speaker.name} (${speaker.id})`
}

/** What was taken by each group, in order of appearance, of turns that are over. */
export function usageBy(all: readonly Receipt[], by: Grouping): readonly Usage[] {
  return groupsOf(all, by).map((group) =>
    usage(
      group,
      all.filter((receipt) => groupOf(receipt, by) === group),
    ),
  )
}

/** What was taken by all of them. */
export function usageOfAll(all: readonly Receipt[]): Usage {
  return usage('all', all)
}

/** Figures for charts, of turns that are over, oldest first. */
export function usageSeries(all: readonly Receipt[], by: Grouping): UsageSeries {
  const groups = groupsOf(all, by)
  const along = <T>(first: T, figure: () => (receipt: Receipt, own: boolean) => T) =>
    groups.map((group) => {
      const next = figure()
      return [first, ...all.map((receipt) => next(receipt, groupOf(receipt, by) === group))]
    })
  return {
    groups,
    turns: [0, ...all.map((_, index) => index + 1)],
    tokens: along(0, () => {
      let total = 0
      return ({ tokens }, own) => {
        if (own) total += tokens.input + tokens.output
        return total
      }
    }),
    cost: along<number | null>(0, () => {
      let total = 0
      return ({ cost }, own) => {
        if (own) total += cost ?? 0
        return own && cost === null ? null : total
      }
    }),
    durationMs: along<number | null>(
      null,
      () =>
        ({ durationMs }, own) =>
          own ? durationMs : null,
    ),
  }
}

function groupsOf(receipts: readonly Receipt[], by: Grouping): readonly string[] {
  return [...new Set(receipts.map((receipt) => groupOf(receipt, by)))]
}

function usage(group: string, receipts: readonly Receipt[]): Usage {
  const times = receipts.map(({ durationMs }) => durationMs).sort((a, b) => a - b)
  const sum = (figure: (receipt: Receipt) => number) =>
    receipts.reduce((total, one) => total + figure(one), 0)
  return {
    group,
    turns: receipts.length,
    refused: receipts.filter((receipt) => outcomeOf(receipt) === 'refused').length,
    input: sum(({ tokens }) => tokens.input),
    output: sum(({ tokens }) => tokens.output),
    cost: receipts.some(({ cost }) => cost === null) ? null : sum(({ cost }) => cost ?? 0),
    medianMs: times[Math.floor(times.length / 2)] ?? 0,
    slowestMs: times.at(-1) ?? 0,
  }
}
