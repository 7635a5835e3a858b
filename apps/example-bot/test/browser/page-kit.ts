import type { ChannelKey, TurnEvent } from '@sandbox/roundtable-plugin'
import { Ledger } from '../../src/ledger.ts'
import { Room, type RoomChannel } from '../../src/surfaces/room.ts'
import { openWebPage, type WebPage, type WebPageOptions } from '../../src/surfaces/web/web-page.ts'

/** A page whose bot is played by a test: what it says and does is as hostile or as large as the test wants. */
export interface PlayedPage {
  readonly room: Room
  readonly ledger: Ledger
  readonly page: WebPage
}

const KEY = { rule: 'channel demo:a', source: 'file:./a.key', fingerprint: 'aabbccdd00112233' }

/** Channels of a played page. */
export const CHANNELS: readonly RoomChannel[] = [
  {
    key: 'demo:a',
    title: 'alpha',
    about: 'The first channel.',
    speakers: [
      { id: 'u-ann', name: 'Ann' },
      { id: 'u-ben', name: 'Ben' },
    ],
    ideas: ['hello'],
  },
  { key: 'demo:b', title: 'beta', about: 'The second channel.', speakers: [{ id: 'u-ann', name: 'Ann' }] },
]

/** Opens a page over a room whose messages are answered by `answer`. */
export async function playPage(
  options: Partial<Pick<WebPageOptions, 'port' | 'token' | 'beatMs' | 'driver'>> & {
    channels?: readonly RoomChannel[]
    answer?: (room: Room, channel: ChannelKey, text: string) => Promise<void>
  } = {},
): Promise<PlayedPage> {
  const { channels = CHANNELS, answer, ...rest } = options
  const ledger = new Ledger({ explain: () => KEY })
  const room = new Room({ prefix: 'demo', channels, turnOf: (channel) => ledger.latest(channel)?.turnId })
  const on = new Set<ChannelKey>(channels.map(({ key }) => key))
  await room.start(async ({ channel, text }) => await answer?.(room, channel, text))
  const page = await openWebPage({
    room,
    ledger,
    explain: () => KEY,
    driver: { kind: 'docker', isolation: 'container' },
    stop: () => false,
    sandbox: {
      isOn: (channel) => on.has(channel),
      set: async (channel, wanted) => {
        if (wanted) on.add(channel)
        else on.delete(channel)
        return 'done'
      },
    },
    port: 0,
    ...rest,
  })
  return { room, ledger, page }
}

let turns = 0

/** Plays a turn in the ledger, from its first event to its last. Returns its id. */
export function playTurn(
  ledger: Ledger,
  more: Partial<Pick<TurnEvent, 'channel' | 'speaker' | 'ok' | 'category' | 'cause'>> & {
    tool?: string
  } = {},
): string {
  turns += 1
  const {
    tool,
    ok = true,
    category,
    cause,
    channel = 'demo:a',
    speaker = { id: 'u-ann', name: 'Ann' },
  } = more
  const turn = { turnId: `turn-${turns}`, channel, speaker, driver: 'docker' as const }
  const call = {
    turnId: turn.turnId,
    scope: { channel, speaker },
    status: 200,
    requestBytes: 1,
    answerBytes: 1,
    durationMs: 5,
    droppedFields: [],
  }
  ledger.onTurn({ ...turn, state: 'admitted', durationMs: 0 })
  ledger.onTurn({ ...turn, state: 'bound', durationMs: 20, workerId: '0011223344556677', warm: true })
  ledger.onCall({
    ...call,
    callId: `m${turns}`,
    route: 'model',
    reason: 'ok',
    upstreamStatus: 200,
    model: 'demo',
    fingerprint: KEY.fingerprint,
    usage: { inputTokens: 100, outputTokens: 20 },
  })
  if (tool !== undefined) {
    ledger.onCall({
      ...call,
      callId: `t${turns}`,
      route: 'tool',
      name: tool,
      status: 404,
      reason: 'not_found',
    })
  }
  ledger.onTurn({
    ...turn,
    state: 'settled',
    durationMs: 100 + turns,
    ok,
    ...(category === undefined ? {} : { category }),
    ...(cause === undefined ? {} : { cause }),
  })
  return turn.turnId
}
