import { BotError } from '../../errors.ts'
import { closeText } from './close-text.ts'

/** Options of {@link tryDiscord}. */
export interface TryDiscordOptions {
  /** A secret. */
  readonly token: string
  /** Base of Discord's REST API, without its version. Absent: Discord's own. */
  readonly api?: string
}

const ANSWER_MS = 20_000
/** Message Content Intent, for a bot in many servers and for one in few: flags of an application. */
const HEARS = (1 << 18) | (1 << 19)
/** View Channels, Send Messages, Send Messages in Threads, Attach Files. */
const PERMISSIONS = '274877942784'

/**
 * Tries whether Discord takes the token, lets the bot hear what is said, and has it in a server. Posts nothing and
 * connects to no gateway. Returns what was found.
 *
 * @throws BotError `discord`, with what to do
 */
export async function tryDiscord(options: TryDiscordOptions): Promise<string> {
  const {
    id,
    name,
    flags = 0,
  } = await ask<{ id: string; name: string; flags?: number }>(options, '/applications/@me')
  if ((flags & HEARS) === 0) throw new BotError('discord', closeText(4014) ?? '')
  const servers = await ask<readonly unknown[]>(options, '/users/@me/guilds')
  if (servers.length === 0) {
    throw new BotError('discord', `${name} is in no server yet. Invite it: ${invitation(id)}`)
  }
  return `Discord takes the token of ${name}, which is in ${servers.length === 1 ? 'one server' : `${servers.length} servers`}`
}

function invitation(id: string): string {
  return `https://discord.com/oauth2/authorize?client_id=${id}&scope=bot+applications.commands&permissions=${PERMISSIONS}`
}

async function ask<Answer>(
  { token, api = 'https://discord.com/api' }: TryDiscordOptions,
  path: string,
): Promise<Answer> {
  let response: Response
  try {
    const headers = { authorization: `Bot ${token}` }
    response = await fetch(`${api}/v10${path}`, { headers, signal: AbortSignal.timeout(ANSWER_MS) })
  } catch (cause) {
    const { message } =
      (cause as Error).cause instanceof Error ? ((cause as Error).cause as Error) : (cause as Error)
    throw new BotError('discord', `Discord cannot be reached: ${message}.`, { cause })
  }
  if (response.ok) return (await response.json()) as Answer
  await response.body?.cancel()
  throw new BotError(
    'discord',
    closeText(response.status === 401 ? 4004 : undefined) ?? `Discord answers ${response.status}.`,
  )
}
