import { setTimeout as wait } from 'node:timers/promises'
import type { ChannelKey, ChatSurface, InboundMessage, OutboundReply } from '@sandbox/roundtable-plugin'
import { type Client, DiscordAPIError, Events, type Message, REST, Routes } from 'discord.js'
import { BotError } from '../../errors.ts'
import type { Explain } from '../../ledger.ts'
import { plain } from '../../plain-text.ts'
import { closeText } from './close-text.ts'
import { connect, openGateway } from './connect.ts'
import { channelIdOf, inboundMessage, mayAnswer } from './inbound.ts'
import { replyPosts } from './reply-posts.ts'
import { answerInteraction, type OwnerCommands, registerCommands } from './slash-commands.ts'

/** Discord shows for 10 s that somebody types. */
const TYPING_EVERY_MS = 8_000
/** A gateway that does not say goodbye is left without. */
const GOODBYE_MS = 1_000

/** Options of {@link discordSurface}. */
export interface DiscordOptions {
  /** The bot's token. A secret: it is never logged, and no error carries it. */
  readonly token: string
  /** The host's owner commands; asked for when the surface starts. */
  readonly commands: () => OwnerCommands
  /** Which rule chooses a key, for `/keys explain`. */
  readonly explain: Explain
  /** One line for people, without line break. No secrets. */
  readonly log: (line: string) => void
  /** Told what is wrong when the connection is lost, and `undefined` when it is there again. */
  readonly onConnection?: (problem: string | undefined) => void
  /** Base of Discord's REST API, without its version. Absent: Discord's own. */
  readonly api?: string
  /** How long the bot may take to get in, in milliseconds; default 60,000. */
  readonly startTimeoutMs?: number
}

/**
 * Discord as a chat surface: mentions and replies come in, answers and files go out, `/roundtable` and `/keys` are
 * the owner's. Channel keys are `discord:<channel id>`, and a thread is a channel of its own. `start` resolves when
 * the bot is in; from then on the library reconnects and resumes by itself.
 *
 * @throws BotError `discord`: what is given as the token cannot be one
 */
export function discordSurface(options: DiscordOptions): ChatSurface {
  if (!/^[\w.-]+$/.test(options.token)) {
    throw new BotError('discord', 'The Discord token has characters that no token has. Copy it once more.')
  }
  return new DiscordSurface(options)
}

class DiscordSurface implements ChatSurface {
  readonly surface = 'discord'
  readonly supportsFiles = true
  readonly #options: DiscordOptions
  readonly #off = new AbortController()
  readonly #client: Client
  /** Apart from the client's, which forgets its token when it is closed: what was asked is answered all the same. */
  readonly #rest: REST
  readonly #posts = new Map<ChannelKey, Promise<void>>()
  /** Channels of which it was told that the bot may not write there. */
  readonly #muted = new Set<ChannelKey>()

  constructor(options: DiscordOptions) {
    this.#options = options
    const { api, token } = options
    this.#client = openGateway({ off: this.#off.signal, ...(api !== undefined && { api }) })
    this.#rest = new REST(this.#client.options.rest).setToken(token)
  }

  async start(deliver: (message: InboundMessage) => Promise<void>): Promise<void> {
    const { token, startTimeoutMs = 60_000, commands, explain, log } = this.#options
    const client = this.#client
    const owner = commands()
    this.#watch()
    // Async, since the library would end the process for what one of its listeners throws.
    const take = async (message: Message) => {
      const inbound = this.#off.signal.aborted ? undefined : inboundMessage(message)
      if (inbound === undefined) return
      if (mayAnswer(message)) await deliver(inbound)
      else if (inbound.mentionsBot || inbound.repliesToBot) this.#tellMuted(inbound.channel)
    }
    client.on(Events.MessageCreate, (message) => {
      take(message).catch(this.#fail('a message could not be taken'))
    })
    client.on(Events.InteractionCreate, (interaction) => {
      answerInteraction(owner, explain, interaction).catch(this.#fail('a command could not be answered'))
    })
    const ready = await connect(client, { token, timeoutMs: startTimeoutMs, off: this.#off.signal })
    log(`Discord: here as ${ready.user.tag}, in ${ready.guilds.cache.size} servers.`)
    await registerCommands(ready, owner).catch(this.#fail('the slash commands could not be registered'))
  }

  async stop(): Promise<void> {
    this.#off.abort()
    await Promise.race([this.#client.destroy(), wait(GOODBYE_MS, undefined, { ref: false })])
  }

  /** Replies of a channel are posted one after another, so that their parts stay together. */
  sendReply(channel: ChannelKey, reply: OutboundReply): Promise<void> {
    const before = this.#posts.get(channel) ?? Promise.resolve()
    const posted = before.then(() => this.#post(channel, reply))
    const settled = posted.catch(() => {})
    this.#posts.set(channel, settled)
    void settled.then(() => this.#posts.get(channel) === settled && this.#posts.delete(channel))
    return posted
  }

  startTyping(channel: ChannelKey): () => void {
    const over = new AbortController()
    void this.#type(channel, over.signal)
    return () => over.abort()
  }

  async #post(channel: ChannelKey, reply: OutboundReply): Promise<void> {
    try {
      for (const post of replyPosts(reply)) {
        await this.#rest.post(Routes.channelMessages(channelIdOf(channel)), post)
      }
    } catch (cause) {
      throw new BotError('discord', `Discord did not take a message: ${words(cause)}`, { cause })
    }
  }

  /** Not worth a line when it fails: the reply says the same, louder. */
  async #type(channel: ChannelKey, signal: AbortSignal): Promise<void> {
    try {
      while (!signal.aborted) {
        await this.#rest.post(Routes.channelTyping(channelIdOf(channel)), { signal })
        await wait(TYPING_EVERY_MS, undefined, { signal, ref: false })
      }
    } catch {}
  }

  /** Once for each channel. */
  #tellMuted(channel: ChannelKey): void {
    if (this.#muted.has(channel)) return
    this.#muted.add(channel)
    this.#options.log(
      `Discord: ${channel} is not answered: the bot may not write there. Give it Send Messages.`,
    )
  }

  #watch(): void {
    const client = this.#client
    client.on(Events.Error, this.#fail('something went wrong'))
    client.on(Events.ShardError, this.#fail('the connection failed'))
    client.on(Events.ShardReconnecting, () => this.#tell('reconnecting.', 'Discord: reconnecting.'))
    client.on(Events.ShardResume, () => this.#tell('connected again, nothing was missed.'))
    client.on(Events.ShardReady, () => {
      if (client.isReady()) this.#tell('connected again; what was said meanwhile is lost.')
    })
    client.on(Events.ShardDisconnect, ({ code }) => {
      const words = closeText(code) ?? 'Discord closed the connection for good.'
      if (client.isReady())
        this.#tell(`${words} (${code}) The bot hears nothing until it is started again.`, words)
    })
  }

  #tell(line: string, problem?: string): void {
    const { log, onConnection } = this.#options
    if (this.#off.signal.aborted) return
    log(`Discord: ${line}`)
    onConnection?.(problem)
  }

  #fail(what: string): (error: unknown) => void {
    return (error) => this.#options.log(`Discord: ${what}: ${words(error)}`)
  }
}

/** One line, of which nothing is obeyed. The library's errors carry the whole request; their message does not. */
function words(error: unknown): string {
  const code = error instanceof DiscordAPIError ? ` (${error.code})` : ''
  const message = error instanceof Error ? error.message : String(error)
  return plain(message.trim().replaceAll(/\s*\n\s*/g, ', ')) + code
}
