import { DISCORD } from '../commands/discord-commands.ts'
import { SandboxPluginError } from '../errors.ts'
import { guardedLogger } from '../guarded-logger.ts'
import type {
  ChatSurface,
  HostEnv,
  HostLogger,
  HostService,
  InboundMessage,
  ServiceKey,
} from '../host-contract.ts'
import { ChannelQueue } from './channel-queue.ts'
import { CommandRegistry } from './command-registry.ts'
import { type Conversations, conversations } from './conversations.ts'
import { giveBack, type HostPlugin, linkPlugins } from './link-plugins.ts'
import { Router, type SpeakerResolver } from './router.ts'
import { ServiceRegistry } from './service-registry.ts'
import { SurfaceRegistry, surfaceOf } from './surface-registry.ts'

/** Options of {@link createHost}. */
export interface HostOptions {
  readonly plugins: readonly HostPlugin[]
  readonly surfaces?: readonly ChatSurface[]
  /** The host's own logins, by provider. */
  readonly apiKeys?: Readonly<Record<string, string | undefined>>
  /** The one who may use owner commands. Absent: nobody. */
  readonly ownerId?: string
  readonly env?: Partial<HostEnv>
  /** Default: lines of JSON on stderr, warnings and errors only. */
  readonly logger?: HostLogger
  /** Declares the service `roundtable.discord`, so that plugins add their owner commands. */
  readonly discord?: { readonly root?: string; readonly refusalHint?: string }
  /** Makes this a host that says who speaks, as pi-roundtable 0.9 does; declares `roundtable.identity`. */
  readonly resolveSpeaker?: SpeakerResolver
  /** How long a forward without words waits for some; default 2,000. */
  readonly forwardJoinMs?: number
}

/** A small chat host: one queue per channel, a router over claims, surfaces and services. */
export interface Host extends AsyncDisposable {
  /**
   * Starts each plugin's surfaces and services, then the host's surfaces. When one fails, everything is stopped.
   * Idempotent; rejects with `closed` when the host is stopped meanwhile, or was before.
   */
  start(): Promise<void>
  readonly conversations: Conversations
  readonly surfaces: SurfaceRegistry
  readonly services: Pick<ServiceRegistry, 'get' | 'find'>
  readonly commands: CommandRegistry
  readonly queue: ChannelQueue
  /**
   * Stops everything in reverse. `drainMs` (default 0) keeps serving for at most that long until
   * nothing runs or waits. Idempotent; never rejects.
   */
  stop(options?: { readonly drainMs?: number }): Promise<void>
}

/** Declared by a host that says who speaks. */
const IDENTITY: ServiceKey<{ readonly resolve: SpeakerResolver }> = Object.freeze({
  id: 'roundtable.identity',
})

/**
 * Links plugins into a host that needs nothing else. One host per process, as with pi-roundtable.
 * @throws SandboxPluginError `plugin_invalid`, and whatever a plugin's setup throws
 */
export async function createHost(options: HostOptions): Promise<Host> {
  const { resolveSpeaker, ownerId, apiKeys = {}, discord } = options
  const logger = guardedLogger(options.logger ?? stderrLogger())
  const registry = new ServiceRegistry()
  const surfaces = new SurfaceRegistry()
  const queue = new ChannelQueue()
  const commands = new CommandRegistry({
    root: discord?.root ?? 'roundtable',
    logger,
    ...(ownerId !== undefined && { ownerId }),
    ...(discord?.refusalHint !== undefined && { refusalHint: discord.refusalHint }),
  })
  if (discord !== undefined) registry.own(DISCORD, commands)
  if (resolveSpeaker !== undefined) registry.own(IDENTITY, { resolve: resolveSpeaker })
  const env: HostEnv = { locale: 'en', timeZone: localZone(), now: () => new Date(), ...options.env }
  const apiKey = async (provider: string) =>
    Object.hasOwn(apiKeys, provider) ? apiKeys[provider] : undefined
  const linked = await linkPlugins(options.plugins, registry, { logger, env, queue, surfaces, apiKey })
  const groups = [...linked.contributions, { surfaces: options.surfaces ?? [] }]
  try {
    for (const { surfaces: own = [] } of groups) for (const surface of own) surfaces.add(surface)
  } catch (cause) {
    await giveBack(linked.contributions)
    throw cause
  }
  surfaces.link()
  commands.close()
  const router = new Router({
    claims: linked.claims,
    queue,
    surfaces,
    logger,
    forwardJoinMs: options.forwardJoinMs ?? 2_000,
    ...(resolveSpeaker !== undefined && { resolveSpeaker }),
  })
  const parts = groups.flatMap(({ surfaces: own = [], services = [] }) => [
    ...own.map((surface) => surfaceService(surface, router, logger)),
    ...services,
  ])
  return new SmallHost({ registry, surfaces, queue, commands, router, parts, logger })
}

interface HostParts {
  readonly registry: ServiceRegistry
  readonly surfaces: SurfaceRegistry
  readonly queue: ChannelQueue
  readonly commands: CommandRegistry
  readonly router: Router
  readonly parts: readonly HostService[]
  readonly logger: HostLogger
}

class SmallHost implements Host {
  readonly conversations: Conversations
  readonly surfaces: SurfaceRegistry
  readonly services: ServiceRegistry
  readonly commands: CommandRegistry
  readonly queue: ChannelQueue
  readonly #router: Router
  readonly #logger: HostLogger
  readonly #parts: readonly HostService[]
  #started: Promise<void> | undefined
  #stopped: Promise<void> | undefined

  constructor(parts: HostParts) {
    this.conversations = conversations(parts.router, parts.queue)
    this.surfaces = parts.surfaces
    this.services = parts.registry
    this.commands = parts.commands
    this.queue = parts.queue
    this.#router = parts.router
    this.#logger = parts.logger
    this.#parts = parts.parts
  }

  start(): Promise<void> {
    this.#started ??= this.#begin()
    return this.#started
  }

  stop({ drainMs = 0 } = {}): Promise<void> {
    this.#stopped ??= this.#end(drainMs)
    return this.#stopped
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.stop()
  }

  async #begin(): Promise<void> {
    try {
      for (const part of this.#parts) {
        this.#requireRunning()
        await part.start?.()
      }
      this.#requireRunning()
    } catch (cause) {
      await this.stop()
      throw cause
    }
    for (const part of this.#parts) void this.#startLate(part)
  }

  /** What is started after a stop would never be stopped. */
  #requireRunning(): void {
    if (this.#stopped === undefined) return
    throw new SandboxPluginError('closed', 'The host was stopped. Make a new one with createHost.')
  }

  async #startLate(part: HostService): Promise<void> {
    try {
      await part.startInBackground?.()
    } catch (err) {
      this.#logger.error({ service: part.name, err }, 'a service failed')
    }
  }

  async #end(drainMs: number): Promise<void> {
    this.#router.flush()
    if (drainMs > 0) await this.#drain(drainMs)
    this.queue.close()
    // A service that was never started may still hold what its setup opened, so all are told.
    for (const part of this.#parts.toReversed()) {
      try {
        await part.stop?.()
      } catch (err) {
        this.#logger.error({ service: part.name, err }, 'a service could not be stopped')
      }
    }
  }

  async #drain(drainMs: number): Promise<void> {
    const until = performance.now() + drainMs
    const busy = () => this.queue.busy().length > 0 || this.#parts.some((part) => this.#isBusy(part))
    while (busy() && performance.now() < until) await new Promise((done) => setTimeout(done, 50))
  }

  /** One that cannot say is not waited for. */
  #isBusy(part: HostService): boolean {
    try {
      return (part.busy?.() ?? []).length > 0
    } catch (err) {
      this.#logger.error({ service: part.name, err }, 'a service could not say whether it is busy')
      return false
    }
  }
}

function surfaceService(surface: ChatSurface, router: Router, logger: HostLogger): HostService {
  const deliver = async (message: InboundMessage) => {
    if (surfaceOf(message.channel) === surface.surface) return await router.handle(message)
    logger.warn({ surface: surface.surface }, 'a surface delivered a message of another; it was dropped')
  }
  let started = false
  return {
    name: `surface:${surface.surface}`,
    async start() {
      started = true
      await surface.start(deliver)
    },
    async stop() {
      if (started) await surface.stop?.()
    },
  }
}

function localZone(): string {
  return new Intl.DateTimeFormat().resolvedOptions().timeZone
}

function stderrLogger(): HostLogger {
  const write = (level: string) => (fields: object, message: string) => {
    const shown = Object.entries(fields).map(([name, value]) => [
      name,
      value instanceof Error ? value.message : value,
    ])
    process.stderr.write(`${JSON.stringify({ level, message, ...Object.fromEntries(shown) })}\n`)
  }
  return { info: () => {}, warn: write('warn'), error: write('error') }
}
