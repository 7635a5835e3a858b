/** Owner commands as the host's Discord service takes them. Literal option types (1, 2) on purpose. */

/** Whoever pressed something. */
export interface Actor {
  user: { id: string }
}

/** Who may use owner commands. */
export interface CommandGuard {
  /** The name of the one root command. */
  readonly root: string
  readonly refusalHint?: string
  isOwner(actor: Actor): boolean
  /** From 0.9 on: every owner, not the first only. */
  allows?(actor: Actor): Promise<boolean>
}

/** A subcommand, as Discord's API wants it. */
export interface SubcommandJson {
  type: 1
  name: string
  description: string
}

/** A subcommand group, as Discord's API wants it. */
export interface SubcommandGroupJson {
  type: 2
  name: string
  description: string
  options: SubcommandJson[]
}

/** Any interaction. */
export interface AnyInteraction extends Actor {
  isChatInputCommand(): boolean
}

/** A slash command. Flags: 64 is "only the sender sees it". */
export interface CommandInteraction extends Actor {
  commandName: string
  channelId: string | null
  inGuild(): boolean
  options: { getSubcommandGroup(): string | null; getSubcommand(required: false): string | null }
  deferReply(options: { flags: number }): Promise<unknown>
  reply(options: { content: string; flags: number }): Promise<unknown>
  editReply(content: string): Promise<unknown>
}

/** Handles interactions; resolves true when it answered. */
export interface CommandModule {
  commands(): never[]
  handle(interaction: AnyInteraction): Promise<boolean>
}

/** What a plugin adds to the root command. */
export interface CommandContribution {
  module: CommandModule
  rootOptions?: readonly (SubcommandJson | SubcommandGroupJson)[]
}

/** The host's Discord service: key id `roundtable.discord`. `commands.add` works during setup only. */
export interface DiscordPort {
  guard: CommandGuard
  commands: { add(contribution: CommandContribution): void }
}
