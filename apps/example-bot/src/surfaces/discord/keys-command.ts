import { CredentialError } from '@sandbox/credential-scope'
import type { CommandGuard } from '@sandbox/roundtable-plugin'
import {
  ApplicationCommandOptionType,
  type ChatInputCommandInteraction,
  type Interaction,
  MessageFlags,
  type RESTPostAPIChatInputApplicationCommandsJSONBody,
} from 'discord.js'
import type { Explain } from '../../ledger.ts'
import { payerWords } from '../payer-words.ts'
import { discordKey } from './inbound.ts'
import { speakerName } from './speaker-name.ts'

const REFUSED = 'Only the owner of this bot can use this command.'

/** What `/keys` needs. */
export interface KeysCommandParts {
  readonly guard: CommandGuard
  readonly explain: Explain
}

/** `/keys explain`, as Discord's API wants it. */
export const KEYS_COMMAND: RESTPostAPIChatInputApplicationCommandsJSONBody = {
  name: 'keys',
  description: 'The keys that pay for answers',
  options: [
    {
      type: ApplicationCommandOptionType.Subcommand,
      name: 'explain',
      description: 'Show which rule chooses the key in this channel; never the key',
      options: [
        {
          type: ApplicationCommandOptionType.User,
          name: 'speaker',
          description: 'For whom; left out, for you',
        },
      ],
    },
  ],
}

/** Answers `/keys explain`, for the owner alone and only to them. True when the interaction was ours. */
export async function answerKeys(parts: KeysCommandParts, interaction: Interaction): Promise<boolean> {
  if (!interaction.isChatInputCommand() || interaction.commandName !== KEYS_COMMAND.name) return false
  const content = parts.guard.isOwner(interaction)
    ? explained(parts.explain, interaction)
    : (parts.guard.refusalHint ?? REFUSED)
  await interaction.reply({ content, flags: MessageFlags.Ephemeral })
  return true
}

function explained(explain: Explain, interaction: ChatInputCommandInteraction): string {
  const { id, displayName } = interaction.options.getUser('speaker') ?? interaction.user
  try {
    const speaker = { id, name: speakerName(displayName, id) }
    const told = explain({ channel: discordKey(interaction.channelId), speaker })
    return `For <@${id}> in this channel: ${payerWords(told)}`
  } catch (error) {
    if (CredentialError.isInstance(error)) return error.message
    throw error
  }
}
