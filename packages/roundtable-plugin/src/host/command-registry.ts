import type {
  Actor,
  AnyInteraction,
  CommandContribution,
  CommandGuard,
  DiscordPort,
} from '../commands/command-contract.ts'
import { SandboxPluginError } from '../errors.ts'
import type { HostLogger } from '../host-contract.ts'

/** Owner commands that plugins added, and the guard that knows the one owner. */
export class CommandRegistry implements DiscordPort {
  readonly guard: CommandGuard
  readonly commands = { add: (contribution: CommandContribution) => this.#add(contribution) }
  readonly #added: CommandContribution[] = []
  readonly #logger: HostLogger
  #open = true

  constructor(options: { root: string; ownerId?: string; refusalHint?: string; logger: HostLogger }) {
    const { root, ownerId, refusalHint, logger } = options
    const isOwner = (actor: Actor) => ownerId !== undefined && actor.user.id === ownerId
    this.guard = Object.freeze({ root, isOwner, ...(refusalHint !== undefined && { refusalHint }) })
    this.#logger = logger
  }

  /** What was added, in order. */
  added(): readonly CommandContribution[] {
    return this.#added
  }

  /** Refuses every later addition. */
  close(): void {
    this.#open = false
  }

  /** Offers an interaction to each module. True when one answered. Never rejects. */
  async handle(interaction: AnyInteraction): Promise<boolean> {
    for (const { module } of this.#added) {
      try {
        if (await module.handle(interaction)) return true
      } catch (err) {
        this.#logger.error({ err }, 'an owner command failed')
        return true
      }
    }
    return false
  }

  #add(contribution: CommandContribution): void {
    if (!this.#open)
      throw new SandboxPluginError('command_refused', 'commands can be added during setup only')
    const names = this.#added.flatMap(({ rootOptions = [] }) => rootOptions.map(({ name }) => name))
    const twice = contribution.rootOptions?.find(({ name }) => names.includes(name))
    if (twice !== undefined) {
      throw new SandboxPluginError('command_refused', `the command ${twice.name} was added twice`)
    }
    this.#added.push(contribution)
  }
}
