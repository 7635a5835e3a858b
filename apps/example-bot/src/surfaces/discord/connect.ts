import { once } from 'node:events'
import {
  Client,
  DiscordjsError,
  DiscordjsErrorCodes,
  Events,
  GatewayCloseCodes,
  GatewayIntentBits,
  Options,
  Partials,
  SimpleShardingStrategy,
} from 'discord.js'
import { BotError } from '../../errors.ts'
import { closeText } from './close-text.ts'
import { fetchRequest } from './fetch-request.ts'

/** A reply that Discord makes wait for longer than this is lost: its channel must not stand still for it. */
const LONGEST_LIMIT_MS = 60_000

/** What is remembered of people and messages: enough for a reply, and no more however long the bot runs. */
const KEPT_PEOPLE = 500
const KEPT_MESSAGES = 10

/** How to reach Discord. */
export interface GatewayOptions {
  /** Base of the REST API, without its version. Absent: Discord's own. */
  readonly api?: string
  /** Aborted: no connection is made any more. */
  readonly off: AbortSignal
}

/** A client that hears what is said in servers and in direct messages, and pings nobody. Not connected yet. */
export function openGateway({ api, off }: GatewayOptions): Client {
  return new Client({
    intents: [
      GatewayIntentBits.Guilds,
      GatewayIntentBits.GuildMessages,
      GatewayIntentBits.DirectMessages,
      GatewayIntentBits.MessageContent,
    ],
    // A direct conversation is known by its first message only.
    partials: [Partials.Channel],
    makeCache: Options.cacheWithLimits({
      MessageManager: KEPT_MESSAGES,
      UserManager: { maxSize: KEPT_PEOPLE, keepOverLimit: isBot },
      GuildMemberManager: { maxSize: KEPT_PEOPLE, keepOverLimit: isBot },
    }),
    allowedMentions: { parse: [], repliedUser: false },
    rest: {
      ...(api !== undefined && { api }),
      makeRequest: fetchRequest,
      rejectOnRateLimit: ({ retryAfter }) => retryAfter > LONGEST_LIMIT_MS,
    },
    ws: {
      buildStrategy(manager) {
        // The library goes on connecting when it is told to stop between two attempts. Here, it waits for ever.
        const retrieve = manager.options.retrieveSessionInfo.bind(manager.options)
        manager.options.retrieveSessionInfo = (id) => (off.aborted ? new Promise(() => {}) : retrieve(id))
        return new SimpleShardingStrategy(manager)
      },
    },
  })
}

/** The library needs the bot's own entry. */
function isBot({ id, client }: { readonly id: string; readonly client: Client }): boolean {
  return id === client.user?.id
}

/**
 * Logs in and resolves when events are coming.
 *
 * @throws BotError `discord`, with what to do about it; the reason of `off`
 */
export async function connect(
  client: Client,
  {
    token,
    timeoutMs,
    off,
  }: { readonly token: string; readonly timeoutMs: number; readonly off: AbortSignal },
): Promise<Client<true>> {
  let closed: number | undefined
  client.once(Events.ShardDisconnect, ({ code }) => {
    closed = code
  })
  const late = AbortSignal.timeout(timeoutMs)
  try {
    const [[ready]] = await Promise.all([
      once(client, Events.ClientReady, { signal: AbortSignal.any([off, late]) }),
      client.login(token),
    ])
    return ready
  } catch (cause) {
    off.throwIfAborted()
    throw new BotError('discord', late.aborted ? lateText(timeoutMs) : refusal(cause, closed), { cause })
  }
}

function refusal(cause: unknown, closed: number | undefined): string {
  const badToken = cause instanceof DiscordjsError && cause.code === DiscordjsErrorCodes.TokenInvalid
  const known = closeText(badToken ? GatewayCloseCodes.AuthenticationFailed : closed)
  if (known !== undefined) return known
  const { message, code } = cause as { message?: string; code?: unknown }
  return `Discord cannot be reached: ${message || String(code)}.`
}

function lateText(timeoutMs: number): string {
  return `Discord did not let the bot in within ${timeoutMs / 1000} s.`
}
