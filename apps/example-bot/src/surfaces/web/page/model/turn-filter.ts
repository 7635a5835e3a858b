import type { Receipt } from '../wire.ts'
import { categoryWords, reasonWords } from './words.ts'

/** How a turn came out, for people. */
export type Outcome = 'running' | 'answered' | 'refused' | 'stopped' | 'failed'

/** Which turns are shown. Empty strings mean all. */
export interface TurnFilter {
  readonly words: string
  readonly channel: string
  readonly outcome: Outcome | ''
}

/** How a turn came out. */
export function outcomeOf(receipt: Receipt): Outcome {
  if (receipt.state !== 'settled') return 'running'
  if (receipt.ok === true) return 'answered'
  if (receipt.category === 'stopped') return 'stopped'
  return receipt.category === 'credential' ? 'refused' : 'failed'
}

/** The turns that a filter lets through, newest first. Every word must be found somewhere. */
export function filterTurns(receipts: Iterable<Receipt>, filter: TurnFilter): readonly Receipt[] {
  const words = filter.words.toLowerCase().split(/\s+/).filter(Boolean)
  return [...receipts].reverse().filter((receipt) => {
    if (filter.channel !== '' && receipt.channel !== filter.channel) return false
    if (filter.outcome !== '' && outcomeOf(receipt) !== filter.outcome) return false
    const text = words.length === 0 ? '' : textOf(receipt)
    return words.every((word) => text.includes(word))
  })
}

function textOf(receipt: Receipt): string {
  return [
    receipt.channel,
    receipt.speaker.name,
    receipt.speaker.id,
    receipt.turnId,
    receipt.workerId,
    outcomeOf(receipt),
    receipt.ok === false ? `${receipt.cause ?? ''} ${categoryWords(receipt.category)}` : '',
    ...receipt.payments.flatMap(({ rule, source, fingerprint }) => [rule, source, fingerprint]),
    ...receipt.toolCalls,
    ...receipt.calls.map(({ model }) => model),
    ...Object.keys(receipt.refusals).flatMap((reason) => [reason, reasonWords(reason)]),
  ]
    .join('\n')
    .toLowerCase()
}
