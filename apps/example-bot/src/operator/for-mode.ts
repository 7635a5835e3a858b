import type {
  AnyInteraction,
  ChannelKey,
  CommandContribution,
  CommandInteraction,
  DiscordPort,
  HostContext,
  HostServices,
  SandboxPlugin,
  ServiceKey,
} from '@sandbox/roundtable-plugin'
import type { Mode, Routes } from './routes.ts'

/** The group of owner commands of each mode. */
const GROUPS: Readonly<Record<Mode, string>> = { sealed: 'sandbox', pi: 'pi' }
const DISCORD = 'roundtable.discord'
const EPHEMERAL = 64

/**
 * Holds a plugin to the channels that the configuration gives to its mode: it answers no other, and its owner commands
 * say which to use there.
 */
export function forMode(mode: Mode, routes: Routes, plugin: SandboxPlugin): SandboxPlugin {
  return {
    ...plugin,
    setup: async (context) => {
      const made = await plugin.setup(withOwnCommands(mode, routes, context))
      const channels = (made.channels ?? []).map((claim) => ({
        ...claim,
        owns: (channel: ChannelKey, space?: string) =>
          routes.modeOf(channel) === mode && claim.owns(channel, space),
      }))
      return { ...made, channels }
    },
  }
}

function withOwnCommands(mode: Mode, routes: Routes, context: HostContext): HostContext {
  const { services } = context
  const find: HostServices['find'] = (key) => {
    const found = services.find(key)
    return key.id === DISCORD && found !== undefined
      ? (held(mode, routes, found as DiscordPort) as typeof found)
      : found
  }
  return {
    ...context,
    services: {
      get: (key: ServiceKey<never>) => services.get(key),
      find,
      provide: (key: ServiceKey<never>, value: never) => services.provide(key, value),
    } as HostServices,
  }
}

function held(mode: Mode, routes: Routes, discord: DiscordPort): DiscordPort {
  const { guard } = discord
  const other = (interaction: AnyInteraction): CommandInteraction | undefined => {
    if (!interaction.isChatInputCommand()) return undefined
    const command = interaction as unknown as CommandInteraction
    const ours = command.commandName === guard.root && command.options.getSubcommandGroup() === GROUPS[mode]
    const here = ours && command.channelId !== null && command.inGuild() && guard.isOwner(command)
    return here && routes.modeOf(`discord:${command.channelId}`) !== mode ? command : undefined
  }
  const add = (contribution: CommandContribution): void => {
    const { module } = contribution
    discord.commands.add({
      ...contribution,
      module: {
        commands: () => module.commands(),
        async handle(interaction) {
          const command = other(interaction)
          if (command === undefined) return module.handle(interaction)
          await command.reply({ content: words(routes, command, guard.root), flags: EPHEMERAL })
          return true
        },
      },
    })
  }
  return { guard, commands: { add } }
}

function words(routes: Routes, { channelId }: CommandInteraction, root: string): string {
  const mode = routes.modeOf(`discord:${channelId}`)
  if (mode === undefined) return `The configuration of the bot names no channel discord:${channelId}.`
  return `This channel is in ${mode} mode: use /${root} ${GROUPS[mode]}.`
}
