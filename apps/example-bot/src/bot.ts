import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import type { CallEvent, HostTool } from '@sandbox/broker'
import { redact } from '@sandbox/credential-scope'
import { keyFile } from '@sandbox/credential-scope/sources'
import { buildImage, createProcessDriver, type Driver } from '@sandbox/docker-worker'
import {
  type ChannelKey,
  type ChatSurface,
  type DriverInstall,
  type SandboxOptions,
  sandbox,
  type TurnEvent,
} from '@sandbox/roundtable-plugin'
import { createHost, type Host } from '@sandbox/roundtable-plugin/host'
import { chooseDriver, type DriverPlace } from './choose-driver.ts'
import type { DriverConfig } from './config.ts'
import { BotError } from './errors.ts'
import { plain } from './plain-text.ts'
import { impassable, openStateDir, type StateDir } from './state-dir.ts'

/** Options of {@link openBot}. */
export interface BotOptions extends DriverConfig {
  /** Absolute path of the state directory; see `openStateDir`. */
  readonly stateDir: string
  /** Replaces the guest program inside the worker. For tests that do not trust it. */
  readonly guestBundle?: string
  /** Full URL of the Chat Completions endpoint. */
  readonly modelUrl: string
  /** Name of the model, as that service knows it; default `demo`, for the stand-in. */
  readonly model?: string
  /** `http:` for loopback hosts. */
  readonly allowHttp: boolean
  /** Path of `keys.json`. */
  readonly keysPath: string
  /** Channels that are on when there is no state yet. */
  readonly initialChannels: readonly ChannelKey[]
  readonly surfaces: readonly ChatSurface[]
  readonly tools?: readonly HostTool[]
  readonly onCall?: (event: CallEvent) => void
  readonly onTurn?: (event: TurnEvent) => void
  /** One line for people, without line break: progress, warnings, failures. No secrets. */
  readonly log: (line: string) => void
  /** Calls the start off. */
  readonly signal?: AbortSignal
}

/** A running bot. */
export interface Bot {
  readonly host: Host
  readonly driverKind: 'docker' | 'process'
  /** `none` is no sandbox: say so wherever a person can see it. */
  readonly isolation: 'container' | 'none'
  /** Ends every turn and removes every worker. Idempotent. */
  close(): Promise<void>
}

/** The name of the stand-in's model. */
const MODEL = 'demo'
/** Tags of what the demo builds; an operator's own `sandbox-worker:latest` is left alone. */
const IMAGE = 'sandbox-worker:demo'

/**
 * Starts the whole bot: state directory, key file, driver with its image, plugin and host. What is wrong is
 * refused here and not by the first message. Nothing is left behind when it rejects.
 *
 * @throws BotError, and the errors of the packages it starts; each message says what to do.
 */
export async function openBot(options: BotOptions): Promise<Bot> {
  const { log } = options
  const state = openStateDir({ path: options.stateDir })
  const keys = keyFile({ path: options.keysPath, onProblem: (problem) => log(problem.message) })
  keys.check()
  const place = await chooseDriver(options)
  options.signal?.throwIfAborted()
  announce(place, state, log)
  const driver = await prepareDriver(place, options)
  options.signal?.throwIfAborted()
  const host = await createHost({
    plugins: [sandbox({ ...pluginOptions(options, state), ...driver, apiKey: keys.getter })],
    surfaces: [...options.surfaces],
    logger: lineLogger(log),
  })
  try {
    await host.start()
  } catch (error) {
    await host.stop()
    throw error
  }
  let closed: Promise<void> | undefined
  return {
    host,
    driverKind: place.kind,
    isolation: place.isolation,
    close: () => {
      closed ??= host.stop()
      return closed
    },
  }
}

function pluginOptions(options: BotOptions, state: StateDir): Omit<SandboxOptions, 'apiKey' | 'driver'> {
  const { tools, onCall, onTurn } = options
  return {
    runRoot: state.runRoot,
    workspaceRoot: state.workspaceRoot,
    stateFile: state.stateFile,
    initialChannels: options.initialChannels,
    model: options.model ?? MODEL,
    modelUrl: options.modelUrl,
    allowHttp: options.allowHttp,
    ...state.worker,
    ...(tools && { tools }),
    ...(onCall && { onCall }),
    ...(onTurn && { onTurn }),
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

/** What the plugin is told about its driver; the image is built first when there is none. */
async function prepareDriver(place: DriverPlace, options: BotOptions) {
  const { guestBundle } = options
  if (place.kind === 'process') {
    if (guestBundle === undefined) return { driver: 'process' as const }
    return { driver: (install: DriverInstall) => processDriver(install, guestBundle) }
  }
  const { engineSocket } = place
  return {
    driver: 'docker' as const,
    engineSocket,
    image: options.image ?? (await build(engineSocket, options)),
  }
}

function processDriver({ runRoot, user }: DriverInstall, bundle: string): Driver {
  return createProcessDriver({ runRoot, user, bundle, scrub: redact })
}

async function build(engineSocket: string, options: BotOptions): Promise<string> {
  const { guestBundle, log, signal } = options
  const built = await buildImage({
    tag: guestBundle === undefined ? IMAGE : `${IMAGE}-${digest(guestBundle)}`,
    engineSocket,
    onProgress: log,
    ...(guestBundle === undefined ? {} : { bundle: guestBundle }),
    ...(signal === undefined ? {} : { signal }),
  })
  return built.id
}

function digest(path: string): string {
  return createHash('sha256').update(readFileSync(path)).digest('hex').slice(0, 12)
}

/** The host's structured lines as lines for people. Some of their words come from a worker, so none is obeyed. */
function lineLogger(log: (line: string) => void) {
  const line = (fields: object, message: string): void => {
    const about = Object.entries(fields).map(([name, value]) =>
      name === 'err' ? String((value as Error | undefined)?.message) : `${name} ${words(value)}`,
    )
    log(plain(redact(about.length === 0 ? message : `${message}: ${about.join(', ')}`)))
  }
  return { info: () => {}, warn: line, error: line }
}

function words(value: unknown): string {
  return typeof value === 'string' ? value : JSON.stringify(value)
}
