import { isAbsolute, resolve } from 'node:path'
import { engineSocketPath } from '@sandbox/docker-worker'
import { BotError } from './errors.ts'

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

/** What a person asked for. */
export type Config =
  | { readonly command: 'help' }
  | {
      readonly command: 'serve'
      readonly where: DriverConfig
      /** 0 means any free port. */
      readonly port: number
      readonly stateDir?: string
      readonly colour: boolean
    }
  | {
      readonly command: 'check'
      readonly where: DriverConfig
      readonly json: boolean
      readonly colour: boolean
    }
  | { readonly command: 'keys-check'; readonly stateDir?: string }
  | {
      readonly command: 'keys-explain'
      readonly stateDir?: string
      readonly channel: string
      readonly speaker: string
    }

/** What `--help` prints. */
export const USAGE = `A chat bot whose agent runs in a sealed container, paid for by the key of its channel and speaker.

  demo [--driver docker|process] [--image NAME] [--port N] [--state DIR]
                           starts a stand-in model service and the bot, prints the address of its page
  demo --check [--json] [--driver docker|process] [--image NAME]
                           plays a script without a person and prints a row a turn
  demo keys check [--state DIR]
                           reads the key file as the bot does and says what is wrong
  demo keys explain --channel KEY [--speaker ID] [--state DIR]
                           says which rule chooses a key; never prints a key
  demo --help

  --driver    docker: containers, or nothing. process: a plain child process, which is NO sandbox.
              Left out: docker when an engine answers.
  --image     an image to use as it is; left out, one is built from this machine's files, without a registry
  --port      of the page, on 127.0.0.1; left out, any free port
  --state     a private directory for keys, sockets and workspaces; left out, /tmp/sandbox-demo-<uid>

Environment: SANDBOX_DOCKER_SOCKET or DOCKER_HOST name the engine's Unix socket; NO_COLOR turns colours off.
`

type Flags = Map<string, string | true>

const FLAGS: Readonly<Record<string, 'value' | 'switch'>> = {
  '--help': 'switch',
  '--check': 'switch',
  '--json': 'switch',
  '--driver': 'value',
  '--image': 'value',
  '--port': 'value',
  '--state': 'value',
  '--channel': 'value',
  '--speaker': 'value',
}

const ALLOWED: Readonly<Record<Config['command'], readonly string[]>> = {
  help: Object.keys(FLAGS),
  serve: ['--driver', '--image', '--port', '--state'],
  check: ['--check', '--json', '--driver', '--image'],
  'keys-check': ['--state'],
  'keys-explain': ['--state', '--channel', '--speaker'],
}

/**
 * Reads the command line and the environment: the only place that does.
 *
 * @throws BotError `usage`, with a sentence that names the flag or the word that is wrong; DriverError
 * `engine_remote` when `DOCKER_HOST` names no local Unix socket.
 */
export function readConfig(argv: readonly string[] = process.argv.slice(2), env = process.env): Config {
  const { words, flags } = split(argv)
  if (flags.has('--help')) return { command: 'help' }
  const command = commandOf(words, flags)
  for (const flag of flags.keys()) {
    if (!ALLOWED[command].includes(flag)) throw usage(misplaced(flag, command))
  }
  const stateDir = flags.get('--state')
  const state = typeof stateDir === 'string' ? { stateDir: resolve(stateDir) } : {}
  const colour = env.NO_COLOR === undefined || env.NO_COLOR === ''
  switch (command) {
    case 'help':
      return { command }
    case 'serve':
      return { command, where: where(flags, env), port: port(flags), ...state, colour }
    case 'check':
      return { command, where: where(flags, env), json: flags.has('--json'), colour }
    case 'keys-check':
      return { command, ...state }
    case 'keys-explain':
      return { command, ...state, channel: channel(flags), speaker: String(flags.get('--speaker') ?? '') }
  }
}

function split(argv: readonly string[]): { words: string[]; flags: Flags } {
  const words: string[] = []
  const flags: Flags = new Map()
  const rest = [...argv]
  for (let arg = rest.shift(); arg !== undefined; arg = rest.shift()) {
    if (arg === '-h') arg = '--help'
    if (arg === '--') continue
    if (!arg.startsWith('-')) {
      words.push(arg)
      continue
    }
    const [name = '', inline] = cut(arg)
    const kind = Object.hasOwn(FLAGS, name) ? FLAGS[name] : undefined
    if (kind === undefined) throw usage(`There is no flag ${name}.`)
    if (flags.has(name)) throw usage(`${name} is given twice.`)
    if (kind === 'switch') {
      if (inline !== undefined) throw usage(`${name} takes no value.`)
      flags.set(name, true)
      continue
    }
    const value = inline ?? rest.shift()
    if (value === undefined || value === '' || (inline === undefined && value.startsWith('--'))) {
      throw usage(`${name} needs a value.`)
    }
    flags.set(name, value)
  }
  return { words, flags }
}

function cut(arg: string): [string, string?] {
  const at = arg.indexOf('=')
  return at < 0 ? [arg] : [arg.slice(0, at), arg.slice(at + 1)]
}

function commandOf(words: readonly string[], flags: Flags): Config['command'] {
  const [first, second, third] = words
  if (first === undefined) return flags.has('--check') ? 'check' : 'serve'
  if (first !== 'keys') throw usage(`There is no command "${first}".`)
  if (third !== undefined) throw usage(`"${third}" is one word too many.`)
  if (second === 'check') return 'keys-check'
  if (second === 'explain') return 'keys-explain'
  throw usage('"keys" is followed by "check" or "explain".')
}

function misplaced(flag: string, command: Config['command']): string {
  if (flag === '--json') return '--json goes with --check.'
  if (command.startsWith('keys')) return `${flag} does not go with "${command.replace('-', ' ')}".`
  return command === 'check' ? `${flag} does not go with --check.` : `${flag} goes with "keys explain".`
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
  const socket = driver === 'process' ? undefined : engineSocket(env)
  return {
    driver,
    ...(socket === undefined ? {} : { engineSocket: socket }),
    ...(typeof image === 'string' ? { image } : {}),
  }
}

function engineSocket(env: NodeJS.ProcessEnv): string | undefined {
  const own = env.SANDBOX_DOCKER_SOCKET?.replace(/^unix:\/\//, '')
  if (own) {
    if (isAbsolute(own)) return own
    throw new BotError('usage', `SANDBOX_DOCKER_SOCKET is an absolute path of a Unix socket, not "${own}".`)
  }
  return env.DOCKER_HOST ? engineSocketPath(env) : undefined
}

function port(flags: Flags): number {
  const text = flags.get('--port') ?? '0'
  if (typeof text !== 'string' || !/^\d{1,5}$/.test(text) || Number(text) > 65_535) {
    throw usage(`--port is a number from 0 to 65535, not "${text}".`)
  }
  return Number(text)
}

function channel(flags: Flags): string {
  const key = flags.get('--channel')
  if (typeof key !== 'string') throw usage('"keys explain" needs --channel, such as --channel demo:team.')
  return key
}

function usage(sentence: string): BotError {
  return new BotError('usage', `${sentence} See --help.`)
}
