import type { HostTool } from '@sandbox/broker'
import type { KeyFile } from '@sandbox/credential-scope/sources'
import {
  type ChannelKey,
  type ChatSurface,
  type HostLogger,
  PI_SANDBOX,
  type PiSandboxService,
  SANDBOX,
  type SandboxPlugin,
  type SandboxService,
} from '@sandbox/roundtable-plugin'
import { createHost, type Host } from '@sandbox/roundtable-plugin/host'
import { chooseDriver, type DriverPlace } from './choose-driver.ts'
import type { DriverConfig } from './config.ts'
import { BotError } from './errors.ts'
import { textLog } from './operator/log.ts'
import { turnOnNewChannels } from './operator/new-channels.ts'
import type { Routes } from './operator/routes.ts'
import { type BotLimits, type BotWatchers, piPlugin, sealedPlugin } from './plugins.ts'
import { prepareDriver } from './prepare-driver.ts'
import { impassable, openStateDir, type StateDir } from './state-dir.ts'

/** Options of {@link openBot}. */
export interface BotOptions extends DriverConfig, BotWatchers {
  /** Absolute path of the state directory; see `openStateDir`. */
  readonly stateDir: string
  /** The key file; it is checked at the start. */
  readonly keys: Pick<KeyFile, 'check'>
  /** Which service and model each channel and speaker uses, and in which mode. */
  readonly routes: Routes
  /** `http:` for loopback hosts. */
  readonly allowHttp: boolean
  /** Replaces the sealed guest program inside the worker. For tests that do not trust it. */
  readonly guestBundle?: string
  /** An image for Pi workers; left out, one is built, with `piContent` when that is given. */
  readonly piImage?: string
  /** Folder with the operator's own prompts, skills and tools. */
  readonly piContent?: string
  readonly surfaces: readonly ChatSurface[]
  readonly tools?: readonly HostTool[]
  readonly bounds?: BotLimits
  /** Who may use owner commands on Discord; with it the commands are there. */
  readonly ownerId?: string
  /** One line for people, without line break: progress, warnings, failures. No secrets. */
  readonly log: (line: string) => void
  /** The host's structured lines; left out, they are told to `log`. */
  readonly logger?: HostLogger
  /** Told of the host before it is started, for surfaces that need its commands. */
  readonly onHost?: (host: Host) => void
  /** Calls the start off. */
  readonly signal?: AbortSignal
}

/** A running bot. */
export interface Bot {
  readonly host: Host
  readonly driverKind: 'docker' | 'process'
  /** `none` is no sandbox: say so wherever a person can see it. */
  readonly isolation: 'container' | 'none'
  /** Who serves a channel in its mode, whether it is on or off. */
  serviceOf(channel: ChannelKey): SandboxService | PiSandboxService
  /**
   * Ends every turn and removes every worker. Idempotent. With `drainMs`, turns that run or wait have that long to
   * come to their end.
   */
  close(options?: { readonly drainMs?: number }): Promise<void>
}

/**
 * Starts the whole bot: state directory, key file, driver with its images, plugins and host. What is wrong is
 * refused here and not by the first message. Nothing is left behind when it rejects.
 *
 * @throws BotError, and the errors of the packages it starts; each message says what to do.
 */
export async function openBot(options: BotOptions): Promise<Bot> {
  const { log, ownerId, routes, signal } = options
  const state = openStateDir({ path: options.stateDir })
  options.keys.check()
  const place = await chooseDriver(options)
  signal?.throwIfAborted()
  announce(place, state, log)
  const plugins = await openPlugins(place, state, options)
  signal?.throwIfAborted()
  const host = await createHost({
    plugins,
    surfaces: [...options.surfaces],
    logger: options.logger ?? textLog(log).logger,
    ...(ownerId === undefined ? {} : { ownerId, discord: {} }),
  })
  options.onHost?.(host)
  const serviceOf = (channel: ChannelKey) =>
    routes.modeOf(channel) === 'pi' ? host.services.get(PI_SANDBOX) : host.services.get(SANDBOX)
  try {
    await host.start()
    turnOnChannels(routes, serviceOf, state.knownChannels)
  } catch (error) {
    await host.stop()
    throw error
  }
  return {
    host,
    driverKind: place.kind,
    isolation: place.isolation,
    serviceOf,
    close: (how) => host.stop(how),
  }
}

async function openPlugins(
  place: DriverPlace,
  state: StateDir,
  options: BotOptions,
): Promise<readonly SandboxPlugin[]> {
  const { image, guestBundle, piImage, piContent, log, signal, routes, allowHttp, tools } = options
  const { onCall, onTurn, onReceipt, onProgress, bounds = {} } = options
  const watchers = {
    ...(onCall && { onCall }),
    ...(onTurn && { onTurn }),
    ...(onReceipt && { onReceipt }),
    ...(onProgress && { onProgress }),
  }
  const parts = { state, routes, allowHttp, bounds, watchers, ...(tools && { tools }) }
  const plugins: SandboxPlugin[] = []
  if (routes.uses('sealed')) {
    const driver = await prepareDriver(place, { guest: 'sealed', image, guestBundle, log, signal })
    plugins.push(sealedPlugin({ ...parts, driver }))
  }
  if (routes.uses('pi')) {
    const driver = await prepareDriver(place, { guest: 'pi', image: piImage, piContent, log, signal })
    plugins.push(piPlugin({ ...parts, driver }))
  }
  return plugins
}

function turnOnChannels(routes: Routes, serviceOf: Bot['serviceOf'], path: string): void {
  for (const mode of ['sealed', 'pi'] as const) {
    const channels = routes.channelsOf(mode)
    const [first] = channels
    if (first !== undefined) turnOnNewChannels({ path, mode, channels, store: serviceOf(first).channels })
  }
}

function announce(place: DriverPlace, state: StateDir, log: (line: string) => void): void {
  if (place.kind === 'process') {
    log(`WARNING: this is NO sandbox (${place.reason}). The agent runs as a plain process of this machine.`)
    const closed = state.worker === undefined ? undefined : impassable(state.path)
    if (closed !== undefined) {
      throw new BotError(
        'state_dir',
        `The worker's account (uid ${state.worker?.uid}) cannot pass ${closed}: choose another directory with --state, or run: chmod o+x ${closed}.`,
      )
    }
  }
  if (state.worker !== undefined) {
    log(
      `This is a root shell: workers run as uid ${state.worker.uid}, gid ${state.worker.gid}, never as root.`,
    )
  }
}
