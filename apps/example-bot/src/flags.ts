import { BotError } from './errors.ts'

/** What can be asked for. `serve` is the demo, `bot` the bot of a configuration. */
export type Command = 'help' | 'serve' | 'bot' | 'check' | 'init' | 'doctor' | 'keys-check' | 'keys-explain'

/** Flags by name; those without a value are `true`. */
export type Flags = ReadonlyMap<string, string | true>

const FLAGS: Readonly<Record<string, 'value' | 'switch'>> = {
  '--help': 'switch',
  '--check': 'switch',
  '--json': 'switch',
  '--driver': 'value',
  '--image': 'value',
  '--port': 'value',
  '--state': 'value',
  '--config': 'value',
  '--channel': 'value',
  '--speaker': 'value',
  '--dir': 'value',
  '--provider': 'value',
  '--url': 'value',
  '--model': 'value',
  '--mode': 'value',
  '--key': 'value',
  '--owner': 'value',
  '--yes': 'switch',
  '--call': 'switch',
}

const ALLOWED: Readonly<Record<Command, readonly string[]>> = {
  help: Object.keys(FLAGS),
  serve: ['--json', '--driver', '--image', '--port', '--state'],
  bot: ['--config', '--json'],
  check: ['--check', '--json', '--driver', '--image'],
  init: [
    '--dir',
    '--state',
    '--provider',
    '--url',
    '--model',
    '--mode',
    '--key',
    '--owner',
    '--port',
    '--yes',
  ],
  doctor: ['--config', '--call', '--json'],
  'keys-check': ['--state', '--config'],
  'keys-explain': ['--state', '--config', '--channel', '--speaker'],
}

/**
 * Divides a command line into the command and its flags.
 *
 * @throws BotError `usage`, with a sentence that names the flag or the word that is wrong.
 */
export function readFlags(argv: readonly string[]): { command: Command; flags: Flags } {
  const { words, flags } = split(argv)
  if (flags.has('--help')) return { command: 'help', flags }
  const command = commandOf(words, flags)
  for (const flag of flags.keys()) {
    if (!ALLOWED[command].includes(flag)) throw usage(misplaced(flag, command))
  }
  return { command, flags }
}

function split(argv: readonly string[]): { words: string[]; flags: Map<string, string | true> } {
  const words: string[] = []
  const flags = new Map<string, string | true>()
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

function commandOf(words: readonly string[], flags: Flags): Command {
  const [first, second, third] = words
  if (first === undefined) {
    if (flags.has('--check')) return 'check'
    return flags.has('--config') ? 'bot' : 'serve'
  }
  if (first === 'init' || first === 'doctor') {
    if (second !== undefined) throw usage(`"${second}" is one word too many.`)
    return first
  }
  if (first !== 'keys') throw usage(`There is no command "${first}".`)
  if (third !== undefined) throw usage(`"${third}" is one word too many.`)
  if (second === 'check') return 'keys-check'
  if (second === 'explain') return 'keys-explain'
  throw usage('"keys" is followed by "check" or "explain".')
}

function misplaced(flag: string, command: Command): string {
  if (command.startsWith('keys')) return `${flag} does not go with "${command.replace('-', ' ')}".`
  if (command === 'check') return `${flag} does not go with --check.`
  if (command === 'bot') return `${flag} does not go with --config: it stands in the configuration.`
  if (command !== 'serve') return `${flag} does not go with "${command}".`
  const others = (Object.keys(ALLOWED) as Command[]).filter(
    (other) => other !== 'help' && ALLOWED[other].includes(flag),
  )
  const names = others.map((other) => (other === 'check' ? '--check' : `"${other.replace('-', ' ')}"`))
  return `${flag} goes with ${names.join(' or ')}.`
}

function usage(sentence: string): BotError {
  return new BotError('usage', `${sentence} See --help.`)
}
