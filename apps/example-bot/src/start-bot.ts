import type { KeyFile } from '@sandbox/credential-scope/sources'
import type { ChannelKey, ChatSurface } from '@sandbox/roundtable-plugin'
import { type Bot, type BotOptions, openBot } from './bot.ts'
import { clockTool } from './clock-tool.ts'
import { Ledger } from './ledger.ts'
import type { BotLog } from './operator/log.ts'
import type { BotWatchers } from './plugins.ts'
import type { Prices } from './prices.ts'
import type { DiscordOptions } from './surfaces/discord/index.ts'
import { Room, type RoomChannel } from './surfaces/room.ts'
import { sandboxSwitch } from './surfaces/sandbox-switch.ts'
import { openWebPage, type WebPage, type WebPageOptions } from './surfaces/web/web-page.ts'

/** Options of {@link startBot}: those of the bot, and where people reach it. */
export interface StartOptions
  extends Omit<BotOptions, 'surfaces' | 'tools' | 'keys' | 'log' | 'logger' | keyof BotWatchers> {
  readonly keys: KeyFile
  readonly log: BotLog
  /** The chat of the page and the terminal. */
  readonly room?: { readonly prefix: string; readonly channels: readonly RoomChannel[] }
  readonly page?: Pick<WebPageOptions, 'port' | 'listenOn' | 'hostNames' | 'token'>
  readonly discord?: Pick<DiscordOptions, 'token' | 'api' | 'onConnection'>
  readonly prices?: Prices
  /** Changes each surface before the host gets it. */
  readonly wrap?: (surface: ChatSurface) => ChatSurface
  /** Told beside the ledger. */
  readonly watchers?: Pick<BotWatchers, 'onCall' | 'onTurn'>
}

/** What a view of the room needs. */
export interface RoomViews {
  readonly room: Room
  readonly ledger: Ledger
  readonly explain: KeyFile['explain']
  readonly stop: (channel: string) => boolean
}

/** A bot with its surfaces. */
export interface StartedBot {
  readonly bot: Bot
  readonly ledger: Ledger
  /** Absent without a room. */
  readonly views?: RoomViews
  readonly page?: WebPage
  /** Ends turns, workers and surfaces, the page last, so that the last answers are seen. */
  close(options?: { readonly drainMs?: number }): Promise<void>
}

/**
 * Starts a bot with its surfaces: what the demo and an operator's bot have in common. Nothing is left behind when it
 * rejects.
 */
export async function startBot(options: StartOptions): Promise<StartedBot> {
  const { keys, log, page: pageOptions, prices, discord } = options
  const { wrap = (surface) => surface, watchers = {} } = options
  const ledger = new Ledger({ explain: keys.explain, ...(prices && { prices }) })
  const room = options.room && openRoom(options.room, ledger)
  const surfaces: ChatSurface[] = room === undefined ? [] : [room]
  let host: Bot['host'] | undefined
  const commands = () => {
    if (host === undefined) throw new TypeError('the host is not there yet')
    return host.commands
  }
  if (discord !== undefined) {
    // Its library takes a while to load: who does not use it does not wait for it.
    const { discordSurface } = await import('./surfaces/discord/index.ts')
    surfaces.push(discordSurface({ ...discord, commands, explain: keys.explain, log: log.line }))
  }
  const bot = await openBot({
    ...options,
    log: log.line,
    logger: log.logger,
    surfaces: surfaces.map(wrap),
    tools: [clockTool({ timeZone: Intl.DateTimeFormat().resolvedOptions().timeZone })],
    onCall: (event) => {
      ledger.onCall(event)
      watchers.onCall?.(event)
    },
    onTurn: (event) => {
      ledger.onTurn(event)
      watchers.onTurn?.(event)
    },
    onReceipt: ledger.onReceipt,
    onProgress: (channel, { text }) => room?.draft(channel, text),
    onHost: (made) => {
      host = made
    },
  })
  const views = room && viewsOf(room, ledger, keys, bot)
  let page: WebPage | undefined
  try {
    page = views && pageOptions && (await openPage(pageOptions, views, bot))
  } catch (error) {
    await bot.close()
    throw error
  }
  return {
    bot,
    ledger,
    ...(views && { views }),
    ...(page && { page }),
    close: async (how) => {
      await bot.close(how)
      await page?.close()
    },
  }
}

function openRoom({ prefix, channels }: NonNullable<StartOptions['room']>, ledger: Ledger): Room {
  return new Room({ prefix, channels, turnOf: (channel) => ledger.latest(channel)?.turnId })
}

function viewsOf(room: Room, ledger: Ledger, keys: KeyFile, bot: Bot): RoomViews {
  const stop = (channel: string) => bot.host.conversations.stop(channel as ChannelKey)
  return { room, ledger, explain: keys.explain, stop }
}

function openPage(page: NonNullable<StartOptions['page']>, views: RoomViews, bot: Bot): Promise<WebPage> {
  const driver = { kind: bot.driverKind, isolation: bot.isolation }
  return openWebPage({ ...page, ...views, driver, sandbox: sandboxSwitch(bot.host.queue, bot.serviceOf) })
}
