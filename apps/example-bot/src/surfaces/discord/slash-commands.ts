import type { CommandRegistry } from '@sandbox/roundtable-plugin/host'
import {
  ApplicationIntegrationType,
  type Client,
  type Interaction,
  InteractionContextType,
  MessageFlags,
  type RESTPutAPIApplicationCommandsJSONBody,
  Routes,
} from 'discord.js'
import type { Explain } from '../../ledger.ts'
import { answerKeys, KEYS_COMMAND } from './keys-command.ts'

/** The host's owner commands, as {@link CommandRegistry} has them. */
export type OwnerCommands = Pick<CommandRegistry, 'guard' | 'added' | 'handle'>

/** Makes the bot's slash commands known to Discord: in servers only, in place of those of an earlier start. */
export async function registerCommands(client: Client<true>, commands: OwnerCommands): Promise<void> {
  const rootOptions = commands.added().flatMap(({ rootOptions = [] }) => rootOptions)
  const root = {
    name: commands.guard.root,
    description: 'The owner’s commands of this bot',
    options: rootOptions,
  }
  const where = {
    contexts: [InteractionContextType.Guild],
    integration_types: [ApplicationIntegrationType.GuildInstall],
  }
  const body: RESTPutAPIApplicationCommandsJSONBody = [
    ...(rootOptions.length === 0 ? [] : [{ ...root, ...where }]),
    { ...KEYS_COMMAND, ...where },
  ]
  await client.rest.put(Routes.applicationCommands(client.application.id), { body })
}

/** Answers an interaction: the host's commands first, then ours; one of an earlier version is told so. */
export async function answerInteraction(
  commands: OwnerCommands,
  explain: Explain,
  interaction: Interaction,
): Promise<void> {
  if (await commands.handle(interaction)) return
  if (await answerKeys({ guard: commands.guard, explain }, interaction)) return
  if (!interaction.isRepliable()) return
  await interaction.reply({ content: 'This bot does not know this command.', flags: MessageFlags.Ephemeral })
}
