import {
  type ChannelClaim,
  type ChatSurface,
  type HostContext,
  type InboundMessage,
  isSandboxAddress,
  type OutboundReply,
} from '@sandbox/roundtable-plugin'
import { createHost, type Host } from '@sandbox/roundtable-plugin/host'
import { type DiscordOptions, discordSurface } from '../../src/surfaces/discord/index.ts'
import { OLGA } from './people.ts'
import type { StandIn } from './stand-in.ts'

/** A host on the stand-in, whose one claim is the test's. */
export interface HostOn extends AsyncDisposable {
  readonly host: Host
  readonly surface: ChatSurface
  /** Every message that came in, answered or not. */
  readonly taken: readonly InboundMessage[]
  /** What the surface told people. */
  readonly lines: readonly string[]
  /** What the host warned of. */
  readonly warnings: readonly string[]
}

/** What a test says about it. */
export interface HostOnOptions extends Partial<Omit<DiscordOptions, 'commands' | 'log'>> {
  /** The answer to a message that a sandbox channel would answer. Default: its text, with "echo: " before it. */
  readonly answer?: (message: InboundMessage) => OutboundReply | Promise<OutboundReply>
}

/** Links the surface into the small host; not started yet. */
export async function hostOn(discord: StandIn, options: HostOnOptions = {}): Promise<HostOn> {
  const { answer = ({ text }) => ({ chunks: [`echo: ${text}`] }), ...given } = options
  const taken: InboundMessage[] = []
  const lines: string[] = []
  const warnings: string[] = []
  const surface = discordSurface({
    token: discord.token,
    api: discord.api,
    explain: () => ({ rule: undefined, source: undefined, fingerprint: undefined }),
    ...given,
    commands: () => host.commands,
    log: (line) => lines.push(line),
  })
  const warn = (fields: object, message: string) => {
    const { err } = fields as { err?: Error }
    warnings.push(`${message}: ${err?.message}`)
  }
  const host = await createHost({
    surfaces: [surface],
    ownerId: OLGA.id,
    discord: {},
    logger: { info: () => {}, warn, error: warn },
    plugins: [{ name: 'answers', setup: (context) => ({ channels: [claim(context, taken, answer)] }) }],
    forwardJoinMs: 0,
  })
  return { host, surface, taken, lines, warnings, [Symbol.asyncDispose]: () => host.stop() }
}

/** The same, started. */
export async function startOn(discord: StandIn, options?: HostOnOptions): Promise<HostOn> {
  const on = await hostOn(discord, options)
  await on.host.start()
  return on
}

function claim(
  { surfaces }: HostContext,
  taken: InboundMessage[],
  answer: NonNullable<HostOnOptions['answer']>,
): ChannelClaim {
  return {
    name: 'answers',
    priority: 1,
    owns: () => true,
    startFresh: async () => 'test',
    admit(message) {
      taken.push(message)
      if (!isSandboxAddress(message)) return undefined
      const run = async () => {
        const stopTyping = surfaces.startTyping(message.channel)
        try {
          await surfaces.sendReply(message.channel, await answer(message))
        } finally {
          stopTyping()
        }
      }
      return { kind: 'turn', run, failure: 'a test turn failed' }
    },
  }
}
