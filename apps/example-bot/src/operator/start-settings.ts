import type { ChannelKey } from '@sandbox/roundtable-plugin'
import type { BotLimits } from '../plugins.ts'
import type { StartOptions } from '../start-bot.ts'
import type { RoomChannel } from '../surfaces/room.ts'
import { type OperatorConfig, ROOM } from './read-bot-file.ts'

/** The channels of the page and the terminal. */
export function roomChannels({ channels }: OperatorConfig): readonly RoomChannel[] {
  return Object.entries(channels)
    .filter(([key]) => key.startsWith(`${ROOM}:`))
    .map(([key, { title, about, speakers = [], mode }]) => ({
      key: key as ChannelKey,
      title: title ?? key.slice(ROOM.length + 1),
      about:
        about ?? (mode === 'pi' ? 'The Pi agent answers here.' : 'A fresh sealed worker for each message.'),
      speakers,
    }))
}

/** What the page is told; its token is read now. */
export async function pageOf(
  { token, ...page }: NonNullable<OperatorConfig['surfaces']['web']>,
  read: (reference: string, setting: string) => Promise<string>,
): Promise<NonNullable<StartOptions['page']>> {
  return token === undefined ? page : { ...page, token: await read(token, 'surfaces.web.token') }
}

/** What turns and workers may take. */
export function boundsOf({ limits = {}, workers = {} }: OperatorConfig): BotLimits {
  const { perSpeakerMinute, perChannelMinute, ...bounds } = limits
  const { memoryBytes, cpus, pids } = workers
  const admission = defined({ perSpeakerMinute, perChannelMinute })
  const worker = defined({ memoryBytes, cpus, pids })
  return {
    ...bounds,
    ...(Object.keys(admission).length === 0 ? {} : { admission }),
    ...(Object.keys(worker).length === 0 ? {} : { limits: worker }),
  }
}

function defined(values: Readonly<Record<string, number | undefined>>): Record<string, number> {
  return Object.fromEntries(
    Object.entries(values).filter((entry): entry is [string, number] => entry[1] !== undefined),
  )
}
