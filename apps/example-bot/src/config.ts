import { isAbsolute, resolve } from 'node:path'
import { engineSocketPath } from '@sandbox/docker-worker'
import { BotError } from './errors.ts'
import { type Command, type Flags, readFlags } from './flags.ts'

export { USAGE } from './usage.ts'

/** Which driver runs the worker. `auto` is Docker when an engine answers, else a plain process, said aloud. */
export type DriverChoice = 'docker' | 'process' | 'auto'

/** Where the worker runs, as asked for by flags and environment. */
export interface DriverConfig {
  readonly driver: DriverChoice
  /** The engine that `SANDBOX_DOCKER_SOCKET` or `DOCKER_HOST` names, as a path; it must answer then. */
  readonly engineSocket?: string
  /** An image to use as it is, in place of one that is built. */
  readonly image?: string
}

/** Where the key file is: in a state directory, or where a configuration says. */
export interface KeysPlace {
  readonly stateDir?: string
  /** Path of a configuration. */
  readonly path?: string
}

/** What `init` is told by flags; what is left out is asked, or has a default. */
export interface InitConfig {
  readonly command: 'init'
  readonly dir: string
  readonly provider?: string
  readonly url?: string
  readonly model?: string
  readonly mode?: string
  readonly key?: string
  readonly owner?: string
  readonly port?: number
  readonly stateDir?: string
  /** Asks nothing. */
  readonly yes: boolean
}

/** What a person asked for. */
export type Config =
  | { readonly command: 'help' }
  | {
      readonly command: 'serve'
      readonly where: DriverConfig
      /** 0 means any free port. */
      readonly port: number
      readonly stateDir?: string
      /** Lines of JSON in place of the terminal. */
      readonly json: boolean
      readonly colour: boolean
    }
  | {
      readonly command: 'bot'
      readonly path: string
      /** Lines of JSON in place of the terminal. */
      readonly json: boolean
      readonly engineSocket?: string
      readonly colour: boolean
    }
  | {
      readonly command: 'check'
      readonly where: DriverConfig
      readonly json: boolean
      readonly colour: boolean
    }
  | InitConfig
  | {
      readonly command: 'doctor'
      readonly path: string
      readonly engineSocket?: string
      /** Makes a call of one token to each provider. */
      readonly call: boolean
      readonly json: boolean
    }
  | ({ readonly command: 'keys-check' } & KeysPlace)
  | ({
      readonly command: 'keys-explain'
      readonly channel: string
      readonly speaker: string
    } & KeysPlace)

/** The configuration that is meant when none is named. */
const USUAL = 'bot.jsonc'

/**
 * Reads the command line and the environment: the only place that does.
 *
 * @throws BotError `usage`, with a sentence that names the flag or the word that is wrong; DriverError
 * `engine_remote` when `DOCKER_HOST` names no local Unix socket.
 */
export function readConfig(argv: readonly string[] = process.argv.slice(2), env = process.env): Config {
  const { command, flags } = readFlags(argv)
  const colour = env.NO_COLOR === undefined || env.NO_COLOR === ''
  return READERS[command]({ flags, env, colour })
}

interface Given {
  readonly flags: Flags
  readonly env: NodeJS.ProcessEnv
  readonly colour: boolean
}

const READERS: Readonly<Record<Command, (given: Given) => Config>> = {
  help: () => ({ command: 'help' }),
  serve: ({ flags, env, colour }) => ({
    command: 'serve',
    where: where(flags, env),
    port: port(flags) ?? 0,
    ...stateDir(flags),
    json: flags.has('--json'),
    colour,
  }),
  bot: ({ flags, env, colour }) => ({
    command: 'bot',
    path: path(flags),
    ...engine(env),
    json: flags.has('--json'),
    colour,
  }),
  check: ({ flags, env, colour }) => ({
    command: 'check',
    where: where(flags, env),
    json: flags.has('--json'),
    colour,
  }),
  init: ({ flags }) => initConfig(flags),
  doctor: ({ flags, env }) => ({
    command: 'doctor',
    path: path(flags),
    ...engine(env),
    call: flags.has('--call'),
    json: flags.has('--json'),
  }),
  'keys-check': ({ flags }) => ({ command: 'keys-check', ...keysPlace(flags) }),
  'keys-explain': ({ flags }) => ({
    command: 'keys-explain',
    ...keysPlace(flags),
    channel: channel(flags),
    speaker: text(flags, '--speaker') ?? '',
  }),
}

function initConfig(flags: Flags): InitConfig {
  const number = port(flags)
  const given = {
    provider: text(flags, '--provider'),
    url: text(flags, '--url'),
    model: text(flags, '--model'),
    mode: text(flags, '--mode'),
    key: text(flags, '--key'),
    owner: text(flags, '--owner'),
  }
  return {
    command: 'init',
    dir: resolve(text(flags, '--dir') ?? '.'),
    ...Object.fromEntries(Object.entries(given).filter(([, value]) => value !== undefined)),
    ...(number === undefined ? {} : { port: number }),
    ...stateDir(flags),
    yes: flags.has('--yes'),
  }
}

function text(flags: Flags, name: string): string | undefined {
  const value = flags.get(name)
  return typeof value === 'string' ? value : undefined
}

function path(flags: Flags): string {
  return resolve(text(flags, '--config') ?? USUAL)
}

function stateDir(flags: Flags): { stateDir?: string } {
  const given = text(flags, '--state')
  return given === undefined ? {} : { stateDir: resolve(given) }
}

function keysPlace(flags: Flags): KeysPlace {
  if (flags.has('--config') && flags.has('--state')) throw usage('--config and --state do not go together.')
  return flags.has('--config') ? { path: path(flags) } : stateDir(flags)
}

function where(flags: Flags, env: NodeJS.ProcessEnv): DriverConfig {
  const driver = flags.get('--driver') ?? 'auto'
  if (driver !== 'docker' && driver !== 'process' && (driver !== 'auto' || flags.has('--driver'))) {
    throw usage(`--driver is "docker" or "process", not "${driver}".`)
  }
  const image = flags.get('--image')
  if (driver === 'process' && image !== undefined) {
    throw usage('--image does not go with --driver process: a plain process has no image.')
  }
  return {
    driver,
    ...(driver === 'process' ? {} : engine(env)),
    ...(typeof image === 'string' ? { image } : {}),
  }
}

function engine(env: NodeJS.ProcessEnv): { engineSocket?: string } {
  const own = env.SANDBOX_DOCKER_SOCKET?.replace(/^unix:\/\//, '')
  if (own) {
    if (isAbsolute(own)) return { engineSocket: own }
    throw new BotError('usage', `SANDBOX_DOCKER_SOCKET is an absolute path of a Unix socket, not "${own}".`)
  }
  return env.DOCKER_HOST ? { engineSocket: engineSocketPath(env) } : {}
}

function port(flags: Flags): number | undefined {
  const given = flags.get('--port')
  if (given === undefined) return undefined
  if (typeof given !== 'string' || !/^\d{1,5}$/.test(given) || Number(given) > 65_535) {
    throw usage(`--port is a number from 0 to 65535, not "${given}".`)
  }
  return Number(given)
}

function channel(flags: Flags): string {
  const key = text(flags, '--channel')
  if (key === undefined) throw usage('"keys explain" needs --channel, such as --channel demo:team.')
  return key
}

function usage(sentence: string): BotError {
  return new BotError('usage', `${sentence} See --help.`)
}
