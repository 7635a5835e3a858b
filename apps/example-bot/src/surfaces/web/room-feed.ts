import type { Ledger } from '../../ledger.ts'
import type { Room, RoomDraft } from '../room.ts'
import type { SandboxSwitch } from '../sandbox-switch.ts'
import { eventFeed, type SendEvent } from './event-feed.ts'

/** Where the workers run, as the page shows it. */
export interface DriverState {
  readonly kind: 'docker' | 'process'
  /** `none` is shown as a loud banner. */
  readonly isolation: 'container' | 'none'
}

/** What the page follows. */
export interface FeedOptions {
  readonly room: Room
  readonly ledger: Ledger
  readonly driver: DriverState
  /** Absent: the page has no switch. */
  readonly sandbox?: SandboxSwitch
  /** How often a quiet line says that it is alive; default 10 s. */
  readonly beatMs?: number
}

const BEAT_MS = 10_000
/** A growing answer is told at most this often, whole. */
const DRAFT_MS = 100

/**
 * Everything that happens, as server-sent events: a snapshot first, so that a page that comes back needs no memory
 * of its own, then each change, and a beat, so that a page notices a line that died.
 */
export function roomFeed(options: FeedOptions): Response {
  const { room, ledger } = options
  return eventFeed((send) => {
    send('snapshot', snapshot(options))
    const drafts = draftTeller(send)
    const beat = setInterval(() => send('beat', { on: channelsOn(options) }), options.beatMs ?? BEAT_MS)
    const ends = [
      room.subscribe((event) => {
        if (event.type === 'draft') return drafts.tell(event.draft)
        if (event.type === 'entry') drafts.drop(event.entry.channel)
        send(event.type, event)
      }),
      ledger.onChange((receipt) => send('turn', { receipt })),
      drafts.end,
      () => clearInterval(beat),
    ]
    return () => {
      for (const end of ends) end()
    }
  })
}

function snapshot({ room, ledger, driver, sandbox }: FeedOptions) {
  return {
    driver,
    currency: ledger.currency,
    channels: room.channels,
    on: channelsOn({ room, sandbox }),
    entries: room.entries(),
    typing: room.typing(),
    drafts: room.drafts(),
    receipts: ledger.recent(),
  }
}

/** The channels whose sandbox is on; `undefined` without a switch. */
export function channelsOn({
  room,
  sandbox,
}: Pick<FeedOptions, 'room'> & { sandbox?: SandboxSwitch | undefined }): readonly string[] | undefined {
  return sandbox && room.channels.map(({ key }) => key).filter((key) => sandbox.isOn(key))
}

/** What the first event holds. */
export type FeedSnapshot = ReturnType<typeof snapshot>

/** Tells the last draft of each channel after a short pause, so that a fast answer does not flood a slow line. */
function draftTeller(send: SendEvent) {
  const waiting = new Map<string, RoomDraft>()
  let timer: NodeJS.Timeout | undefined
  const flush = (): void => {
    timer = undefined
    for (const draft of waiting.values()) send('draft', { draft })
    waiting.clear()
  }
  return {
    tell(draft: RoomDraft): void {
      waiting.set(draft.channel, draft)
      timer ??= setTimeout(flush, DRAFT_MS)
    },
    drop: (channel: string): boolean => waiting.delete(channel),
    end: (): void => clearTimeout(timer),
  }
}
