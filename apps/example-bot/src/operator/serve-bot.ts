import { dirname } from 'node:path'
import { fingerprintOf } from '@sandbox/credential-scope'
import type { KeyFile } from '@sandbox/credential-scope/sources'
import { engineProblem } from '../choose-driver.ts'
import type { Config } from '../config.ts'
import { startStandIn } from '../demo/stand-in-model.ts'
import { watchKeys } from '../keys/watch-keys.ts'
import { openMessagesGateway } from '../messages-gateway/messages-gateway.ts'
import { readPrices } from '../prices.ts'
import { type Surroundings, serve } from '../serve.ts'
import { type RoomViews, type StartedBot, type StartOptions, startBot } from '../start-bot.ts'
import { AuditLog } from './audit-log.ts'
import { jsonLog, textLog } from './log.ts'
import { Metrics } from './metrics.ts'
import { type Health, openMonitor } from './monitor.ts'
import { openKeys } from './open-keys.ts'
import { type OperatorConfig, ROOM, readBotFile } from './read-bot-file.ts'
import { readReference } from './reference.ts'
import { Routes } from './routes.ts'
import { boundsOf, pageOf, roomChannels } from './start-settings.ts'
import { tappedSurface } from './tapped-surface.ts'

type BotConfig = Extract<Config, { command: 'bot' }>
type Providers = NonNullable<OperatorConfig['providers']>

const TURN_MS = { sealed: 120_000, pi: 600_000 } as const
const NO_ENGINE = 'The engine does not answer as it should: "bot doctor" says why.'
const NO_KEYS = 'The key file cannot be used: "bot keys check" says why.'
const RESTARTING = 'I am about to be restarted. Please say that again in a minute.'

/**
 * Runs the bot of a configuration until it is told to stop: then no message is taken any more, and the turns that run
 * have until their deadline.
 *
 * @throws BotError `config` and the errors of everything that is started.
 */
export function serveBot({ path, colour, json, engineSocket }: BotConfig): Promise<void> {
  const config = withEngine(readBotFile(path), engineSocket)
  return serve({
    start: (around) => new OperatorBot(config, around).start(),
    colour,
    terminal: config.surfaces.terminal === true,
    json,
    makeLog: config.log === 'json' ? jsonLog : textLog,
    stopWords:
      'Stopping: turns that run come to their end first. Again to stop at once, which may leave a container for the next start to remove.',
  })
}

/** The engine of the environment, where the configuration names none. */
export function withEngine(config: OperatorConfig, engineSocket: string | undefined): OperatorConfig {
  if (engineSocket === undefined || config.workers?.engineSocket !== undefined) return config
  return { ...config, workers: { ...config.workers, engineSocket } }
}

/** Starts what a configuration asks for, each part in turn. */
class OperatorBot {
  readonly #config: OperatorConfig
  readonly #around: Surroundings
  readonly #keys: KeyFile
  #routes: Routes
  readonly #metrics: Metrics
  readonly #audit: AuditLog | undefined
  /** What is wrong with the connection to Discord. */
  #offline: string | undefined

  constructor(config: OperatorConfig, around: Surroundings) {
    this.#config = config
    this.#around = around
    const { log } = around
    this.#keys = openKeys(config, { onProblem: ({ message }) => this.#keyProblem(message) })
    this.#metrics = new Metrics({ modeOf: (channel) => this.#routes.modeOf(channel) })
    this.#audit = config.audit && new AuditLog({ ...config.audit, onProblem: log.line })
    this.#routes = new Routes({ providers: config.providers ?? {}, channels: config.channels }, this.#keys)
  }

  async start(): Promise<{ views?: RoomViews }> {
    const { ends, log } = this.#around
    if (this.#audit !== undefined) ends.push(() => this.#audit?.close())
    this.#keys.check()
    const providers = this.#config.providers ?? (await this.#standIn())
    this.#routes = await this.#openRoutes(providers)
    ends.push(watchKeys({ keys: this.#keys, onGone: (problem) => this.#keyProblem(problem) }))
    const started = await startBot(await this.#options(providers))
    ends.push(() => started.close({ drainMs: this.#drainMs() }))
    if (this.#audit !== undefined) this.#record(started, this.#audit)
    await this.#openMonitor(started)
    if (started.page !== undefined) log.line(`page ${this.#shown(started.page.address)}`)
    log.line(`The bot runs, with ${started.bot.isolation === 'none' ? 'NO sandbox' : 'containers'}.`)
    return started.views === undefined ? {} : { views: started.views }
  }

  /** A token of the operator's own is known to them, and has no place in a log. */
  #shown(address: string): string {
    return this.#config.surfaces.web?.token === undefined ? address : address.replace(/#.*$/, '#YOUR-TOKEN')
  }

  /** Without providers everything is tried with a service that has no intelligence and costs nothing. */
  async #standIn(): Promise<Providers> {
    const { ends, log } = this.#around
    const service = await startStandIn({ keys: 'any', fingerprint: fingerprintOf })
    ends.push(() => service.close())
    log.line('WARNING: there are no providers: a stand-in without intelligence answers.')
    const url = service.url.replace(/\/chat\/completions$/, '')
    return { 'stand-in': { api: 'openai', url, model: 'demo', allowHttp: true, stream: false } }
  }

  /** With a gateway when the Pi agent, which speaks the Messages API, may have to use another service. */
  async #openRoutes(providers: Providers): Promise<Routes> {
    const { channels } = this.#config
    const needed = this.#routes.uses('pi') && Object.values(providers).some(({ api }) => api === 'openai')
    if (!needed) return new Routes({ providers, channels }, this.#keys)
    const gateway = await openMessagesGateway({ providers })
    this.#around.ends.push(() => gateway.close())
    const own = Object.entries(providers).map(([name, settings]) =>
      settings.api === 'openai' ? [name, { ...settings, url: gateway.urlOf(name) }] : [name, settings],
    )
    const keys = openKeys({
      ...this.#config,
      ...(this.#config.providers === undefined ? {} : { providers: Object.fromEntries(own) }),
    })
    return new Routes({ providers, channels }, this.#keys, { urlOf: gateway.urlOf, keys })
  }

  async #options(all: Providers): Promise<StartOptions> {
    const { path, stateDir, surfaces, workers = {}, prices } = this.#config
    const { driver = 'docker', engineSocket, image, piImage, piContent } = workers
    const { web, discord } = surfaces
    const directory = dirname(path)
    const token = (reference: string, setting: string) => readReference(reference, { setting, directory })
    const channels = roomChannels(this.#config)
    return {
      stateDir,
      driver,
      ...(engineSocket === undefined ? {} : { engineSocket }),
      ...(image === undefined ? {} : { image }),
      ...(piImage === undefined ? {} : { piImage }),
      ...(piContent === undefined ? {} : { piContent }),
      keys: this.#keys,
      routes: this.#routes,
      // What is not on this machine was refused when the configuration was read; the gateway is on it.
      allowHttp: this.#routes.uses('pi') || Object.values(all).some(({ allowHttp }) => allowHttp === true),
      bounds: boundsOf(this.#config),
      ...(channels.length === 0 ? {} : { room: { prefix: ROOM, channels } }),
      ...(web === undefined ? {} : { page: await pageOf(web, token) }),
      ...(discord === undefined
        ? {}
        : {
            ownerId: discord.ownerId,
            discord: {
              token: await token(discord.token, 'surfaces.discord.token'),
              ...(discord.api === undefined ? {} : { api: discord.api }),
              onConnection: (problem) => {
                this.#offline = problem
              },
            },
          }),
      ...(prices === undefined ? {} : { prices: readPrices(prices) }),
      wrap: (surface) => tappedSurface(surface, this.#tap()),
      watchers: { onCall: this.#metrics.onCall, onTurn: this.#metrics.onTurn },
      log: this.#around.log,
      signal: this.#around.signal,
    }
  }

  #tap(): Parameters<typeof tappedSurface>[1] {
    const audit = this.#audit?.content === true ? this.#audit : undefined
    return {
      closed: () => (this.#around.signal.aborted ? RESTARTING : undefined),
      ...(audit && {
        onMessage: ({ channel, authorId, authorName, text }) =>
          audit.write({ event: 'message', channel, speakerId: authorId, speakerName: authorName, text }),
        onReply: (channel, { chunks }) => audit.write({ event: 'reply', channel, text: chunks.join('\n\n') }),
      }),
    }
  }

  #record({ ledger, bot }: StartedBot, audit: AuditLog): void {
    audit.write({ event: 'start', driver: bot.driverKind, isolation: bot.isolation, node: process.version })
    const end = ledger.onChange((receipt) => {
      if (receipt.state === 'settled') audit.turn(receipt, this.#routes.modeOf(receipt.channel))
    })
    // Under the bot's own end, so that the last turns are recorded.
    this.#around.ends.splice(-1, 0, () => {
      end()
      audit.write({ event: 'stop' })
    })
  }

  async #openMonitor(started: StartedBot): Promise<void> {
    const { monitor } = this.#config
    if (monitor === undefined) return
    const served = await openMonitor({
      ...monitor,
      health: () => this.#health(started),
      metrics: () => this.#metrics.text(),
    })
    // Under the bot's own end: a stop is watched, too.
    this.#around.ends.splice(-1, 0, () => served.close())
    this.#around.log.line(`monitor ${served.address}`)
  }

  async #health({ bot }: StartedBot): Promise<Health> {
    const { engineSocket } = this.#config.workers ?? {}
    const engine = bot.driverKind === 'docker' && (await engineProblem(engineSocket)) !== undefined
    const keys = fails(() => this.#keys.rules())
    const discord = this.#config.surfaces.discord && { discord: this.#offline ?? 'ok' }
    // Fixed words: the problems themselves name paths of this machine.
    const checks = { engine: engine ? NO_ENGINE : 'ok', keys: keys ? NO_KEYS : 'ok', ...discord }
    if (this.#around.signal.aborted) return { status: 'stopping', checks }
    return { status: Object.values(checks).every((found) => found === 'ok') ? 'ok' : 'failing', checks }
  }

  #keyProblem(problem: string): void {
    this.#metrics.onKeyProblem()
    this.#audit?.write({ event: 'keys_problem', problem })
    this.#around.log.line(`WARNING: ${problem}`)
  }

  /** As long as a turn that has just begun may take. */
  #drainMs(): number {
    const modes = Object.values(this.#config.channels).map(({ mode }) => TURN_MS[mode])
    return this.#config.limits?.turnTimeoutMs ?? Math.max(...modes)
  }
}

function fails(look: () => unknown): boolean {
  try {
    look()
    return false
  } catch {
    return true
  }
}
