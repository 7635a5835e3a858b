/** What the page knows. The server's events are the only source of what was said and done. */

import { batch, computed, signal } from '@preact/signals'
import { ask } from './ask.ts'
import type { LinkState } from './feed.ts'
import { running } from './model/road.ts'
import { filterTurns, type TurnFilter } from './model/turn-filter.ts'
import { categoryWords } from './model/words.ts'
import type {
  DriverState,
  Receipt,
  RoomChannel,
  RoomDraft,
  RoomEntry,
  RoomSpeaker,
  Snapshot,
} from './wire.ts'

/** As many as the server keeps. */
const KEPT_ENTRIES = 400
const KEPT_RECEIPTS = 200

/** The line to the server. */
export const link = signal<{ state: LinkState; message?: string }>({ state: 'connecting' })
/** Where the workers run. */
export const driver = signal<DriverState | undefined>(undefined)
/** Of cost estimates; empty when there is no price list. */
export const currency = signal('')
/** The channels of the room. */
export const channels = signal<readonly RoomChannel[]>([])
/** The channels whose sandbox is on; absent when this bot has no switch. */
export const enabled = signal<readonly string[] | undefined>(undefined)
/** What was said, over all channels, oldest first. */
export const entries = signal<readonly RoomEntry[]>([])
/** The channels in which an answer is being written. */
export const typing = signal<readonly string[]>([])
/** Answers as they grow, by channel. */
export const drafts = signal<ReadonlyMap<string, string>>(new Map())
/** The last turns by their id, oldest first. */
export const receipts = signal<ReadonlyMap<string, Receipt>>(new Map())

/** The channel that is shown. */
export const current = signal('')
/** Channels with something new. */
export const unread = signal<ReadonlySet<string>>(new Set())
/** Whom to speak as, by channel. */
export const speakers = signal<Readonly<Record<string, string>>>({})
/** Which turns the list shows. */
export const filter = signal<TurnFilter>({ words: '', channel: '', outcome: '' })
/** A turn that was picked from the list; else the last one of the channel is shown. */
export const picked = signal<string | undefined>(undefined)
/** Which half is seen where there is no room for both. */
export const view = signal<'chat' | 'live'>('chat')
/** Why the last thing did not work; empty when it did. */
export const trouble = signal('')
/** Told to a screen reader, politely. */
export const announcement = signal('')

/** The channel that is shown. */
export const channel = computed(() => channels.value.find(({ key }) => key === current.value))
/** Who speaks in it. */
export const speaker = computed<RoomSpeaker | undefined>(() => {
  const known = channel.value?.speakers ?? []
  return known.find(({ id }) => id === speakers.value[current.value]) ?? known[0]
})
/** The last turn of the channel that is shown. */
export const latest = computed(() => lastOf(current.value))
/** The turn whose road is shown. */
export const shown = computed(() => receipts.value.get(picked.value ?? '') ?? latest.value)
/** The turns that the filter lets through, newest first. */
export const found = computed(() => filterTurns(receipts.value.values(), filter.value))

let lastOver: readonly Receipt[] = []
/** The turns that are over, oldest first: the same list until there is another, so that charts stand still. */
export const over = computed(() => {
  const now = [...receipts.value.values()].filter((receipt) => !running(receipt))
  const same = now.length === lastOver.length && now.every((receipt, index) => receipt === lastOver[index])
  if (!same) lastOver = now
  return lastOver
})

/** Goes to a channel. */
export function choose(key: string): void {
  batch(() => {
    current.value = key
    picked.value = undefined
    unread.value = new Set([...unread.value].filter((one) => one !== key))
  })
}

/** Says something as the chosen speaker. True when the bot took it. */
export async function say(text: string): Promise<boolean> {
  const who = speaker.value
  if (who === undefined || text.trim() === '') return false
  return attempt(() => ask('/api/messages', { channel: current.value, speaker: who.id, text }))
}

/** Does something that the bot may refuse, and shows why it did. */
export async function attempt(work: () => Promise<unknown>): Promise<boolean> {
  try {
    await work()
    trouble.value = ''
    return true
  } catch (error) {
    trouble.value = error instanceof Error ? error.message : String(error)
    return false
  }
}

/** Takes one event of the server. Types that this page does not know are for a newer one. */
export function take(type: string, data: unknown): void {
  const known = Object.hasOwn(HANDLERS, type) ? HANDLERS[type as keyof typeof HANDLERS] : undefined
  batch(() => (known as ((data: unknown) => void) | undefined)?.(data))
}

const HANDLERS = {
  snapshot(data: Snapshot) {
    driver.value = data.driver
    currency.value = data.currency ?? ''
    channels.value = data.channels
    enabled.value = data.on
    entries.value = data.entries
    typing.value = data.typing
    drafts.value = new Map(data.drafts.map(({ channel, text }) => [channel, text]))
    receipts.value = new Map(data.receipts.map((receipt) => [receipt.turnId, receipt]))
    if (!data.channels.some(({ key }) => key === current.value)) choose(data.channels[0]?.key ?? '')
  },
  beat({ on }: { on?: readonly string[] }) {
    if (on?.join('\n') !== enabled.value?.join('\n')) enabled.value = on
  },
  entry({ entry }: { entry: RoomEntry }) {
    entries.value = [...entries.value, entry].slice(-KEPT_ENTRIES)
    if (entry.kind === 'reply') drafts.value = without(drafts.value, entry.channel)
    if (entry.channel !== current.value) unread.value = new Set([...unread.value, entry.channel])
    else if (entry.kind === 'message') picked.value = undefined
  },
  typing({ channel, on }: { channel: string; on: boolean }) {
    const others = typing.value.filter((one) => one !== channel)
    typing.value = on ? [...others, channel] : others
    if (!on) drafts.value = without(drafts.value, channel)
  },
  draft({ draft }: { draft: RoomDraft }) {
    drafts.value = new Map([...drafts.value, [draft.channel, draft.text]])
  },
  turn({ receipt }: { receipt: Receipt }) {
    receipts.value = new Map([
      ...[...receipts.value, [receipt.turnId, receipt] as const].slice(-KEPT_RECEIPTS - 1),
    ])
    if (!running(receipt) && receipt.ok === false && receipt.channel === current.value) {
      announcement.value = `No answer for ${receipt.speaker.name}: ${categoryWords(receipt.category)}.`
    }
  },
}

function lastOf(key: string): Receipt | undefined {
  return [...receipts.value.values()].findLast((receipt) => receipt.channel === key)
}

function without(map: ReadonlyMap<string, string>, key: string): ReadonlyMap<string, string> {
  return map.has(key) ? new Map([...map].filter(([one]) => one !== key)) : map
}
