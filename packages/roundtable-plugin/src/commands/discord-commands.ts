import { errorText } from '../error-text.ts'
import { SandboxPluginError } from '../errors.ts'
import type { ChannelKey, HostLogger, ServiceKey } from '../host-contract.ts'
import type {
  AnyInteraction,
  CommandContribution,
  CommandGuard,
  CommandInteraction,
  DiscordPort,
} from './command-contract.ts'
import type { SandboxCommands } from './sandbox-commands.ts'

/** The host's Discord service. A host without Discord declares no such key: use `find`. */
export const DISCORD: ServiceKey<DiscordPort> = Object.freeze({ id: 'roundtable.discord' })

const GROUP = 'sandbox'
const EPHEMERAL = 64
const REFUSED = 'Only the owner of this bot can use this command.'
const NAMES: readonly string[] = [
  'on',
  'off',
  'status',
  'revoke',
  'restore',
] satisfies (keyof SandboxCommands)[]
const NO_CHANNEL = 'Use this command in a channel of a server.'
const STOPPING = 'The bot is stopping, so nothing was changed. Try again when it is back.'
const FAILED = 'This did not work. The log of the bot says why.'

/** What the Discord adapter needs. */
export interface DiscordCommandParts {
  readonly guard: CommandGuard
  readonly commands: SandboxCommands
  readonly logger: HostLogger
  /** Takes secrets out of a text for the log. */
  scrub(text: string): string
  /** Name of the group of commands. Omitted = `sandbox`. */
  readonly group?: string
}

/**
 * The owner commands as `/<root> <group> on|off|status|revoke|restore`. Answers for itself and never throws into the host: the
 * host knows its own owner-facing errors by class, so one of ours would reach the owner as an internal failure.
 */
export function discordCommands(parts: DiscordCommandParts): CommandContribution {
  return {
    module: { commands: () => [], handle: (interaction) => handle(parts, interaction) },
    rootOptions: [
      {
        type: 2,
        name: parts.group ?? GROUP,
        description: 'Answer this channel from sealed workers',
        options: [
          { type: 1, name: 'on', description: 'Turn the sandbox on in this channel' },
          { type: 1, name: 'off', description: 'Turn the sandbox off in this channel' },
          { type: 1, name: 'status', description: 'Show whether the sandbox is on in this channel' },
          { type: 1, name: 'revoke', description: 'Stop all spending in this channel at once' },
          { type: 1, name: 'restore', description: 'Allow spending in this channel again' },
        ],
      },
    ],
  }
}

async function handle(parts: DiscordCommandParts, interaction: AnyInteraction): Promise<boolean> {
  const command = asCommand(interaction)
  const subcommand = command === undefined ? undefined : ownSubcommand(parts, command)
  if (command === undefined || subcommand === undefined) return false
  try {
    if (await isOwner(parts.guard, command)) await run(parts, command, subcommand)
    else await command.reply({ content: parts.guard.refusalHint ?? REFUSED, flags: EPHEMERAL })
  } catch (error) {
    report(parts, error)
  }
  return true
}

/** The host's predicate narrows its own types only, so the narrowing is done here. */
function asCommand(interaction: AnyInteraction): CommandInteraction | undefined {
  return interaction.isChatInputCommand() ? (interaction as unknown as CommandInteraction) : undefined
}

function ownSubcommand(
  { guard, group = GROUP }: DiscordCommandParts,
  command: CommandInteraction,
): keyof SandboxCommands | undefined {
  if (command.commandName !== guard.root || command.options.getSubcommandGroup() !== group) return undefined
  const name = command.options.getSubcommand(false)
  return name !== null && NAMES.includes(name) ? (name as keyof SandboxCommands) : undefined
}

async function isOwner(guard: CommandGuard, interaction: CommandInteraction): Promise<boolean> {
  return guard.allows === undefined ? guard.isOwner(interaction) : await guard.allows(interaction)
}

async function run(
  parts: DiscordCommandParts,
  interaction: CommandInteraction,
  subcommand: keyof SandboxCommands,
): Promise<void> {
  const channel = channelOf(interaction)
  const answer = () => answerTo(parts, interaction, subcommand, channel)
  // Who pulls the brake must not wait for the chat to say that it was heard, nor depend on that.
  const braked = subcommand === 'revoke' ? answer() : undefined
  await interaction.deferReply({ flags: EPHEMERAL })
  await interaction.editReply(await (braked ?? answer()))
}

function channelOf(interaction: CommandInteraction): ChannelKey | undefined {
  const { channelId } = interaction
  return interaction.inGuild() && channelId !== null ? `discord:${channelId}` : undefined
}

/** Carries a command out; never rejects. */
async function answerTo(
  { commands, ...parts }: DiscordCommandParts,
  { user }: CommandInteraction,
  subcommand: keyof SandboxCommands,
  channel: ChannelKey | undefined,
): Promise<string> {
  if (channel === undefined) return NO_CHANNEL
  try {
    return await commands[subcommand](channel, { id: user.id })
  } catch (error) {
    if (isClosed(error)) return STOPPING
    report(parts, error)
    return FAILED
  }
}

/** The host stops, or has: nobody has to look at that. */
function isClosed(error: unknown): boolean {
  return SandboxPluginError.isInstance(error) && error.code === 'closed'
}

function report({ logger, scrub }: Pick<DiscordCommandParts, 'logger' | 'scrub'>, error: unknown): void {
  const cause = scrub(errorText(error))
  logger.error({ cause }, 'a sandbox command failed')
}
