import { parseArgs } from 'node:util'
import { DriverError } from '../errors.ts'
import { engineSocketPath } from '../host/container/engine-socket.ts'
import { buildImage, DEFAULT_TAG } from '../host/image/build-image.ts'
import { checkedPath } from '../resolve-options.ts'
import { doctor } from './doctor.ts'
import { sweepEngine } from './sweep.ts'

/** What a command may touch. */
export interface CommandPorts {
  readonly env: { readonly DOCKER_HOST?: string | undefined }
  readonly signal: AbortSignal
  /** One line of result. */
  out(line: string): void
  /** One line that says what happens right now. */
  progress(line: string): void
}

const HELP = `sandbox-worker: sealed containers for programs that nobody should trust

Usage: sandbox-worker <command> [options]

Commands
  build    build the worker image from the Node or Bun that runs this, and load it into the engine
  doctor   check that the engine and the image here can hold a worker
  sweep    remove every container that an install left, running or not; stop its host first

Options
  --tag NAME       build: name of the image                  (default: ${DEFAULT_TAG})
  --runtime PATH   build: another Node or Bun binary for Linux
  --bundle PATH    build: another guest program
  --image NAME     doctor: image to look at                  (default: ${DEFAULT_TAG})
  --install ID     sweep: the install whose containers go
  --socket PATH    the engine's socket  (default: DOCKER_HOST if unix://…, else /var/run/docker.sock)
  --json           print the result as JSON; progress goes to stderr either way
  --help           print this

Exit codes: 0 done, 1 failed (the message says what to do), 2 wrong usage`

const OPTIONS = {
  tag: { type: 'string' },
  runtime: { type: 'string' },
  bundle: { type: 'string' },
  image: { type: 'string' },
  install: { type: 'string' },
  socket: { type: 'string' },
  json: { type: 'boolean' },
  help: { type: 'boolean', short: 'h' },
} as const

/** Which options a command takes, besides `--socket` and `--json`. */
const TAKES: Readonly<Record<string, readonly string[]>> = {
  build: ['tag', 'runtime', 'bundle'],
  doctor: ['image'],
  sweep: ['install'],
}

type Values = ReturnType<typeof parseArgs<{ options: typeof OPTIONS; allowPositionals: true }>>['values']

/** Runs one command of `sandbox-worker` and returns its exit code. Never throws for what a user did wrong. */
export async function runCommand(args: readonly string[], ports: CommandPorts): Promise<number> {
  const read = readArguments(args)
  if ('help' in read) {
    ports.out(HELP)
    return 0
  }
  if ('problem' in read) {
    ports.progress(`${read.problem}\nTry: sandbox-worker --help`)
    return 2
  }
  try {
    return await run(read.command, read.values, ports)
  } catch (error) {
    if (!DriverError.isInstance(error)) throw error
    if (read.values.json) ports.out(JSON.stringify({ error: { code: error.code, message: error.message } }))
    else ports.progress(`sandbox-worker ${read.command}: ${error.message} (${error.code})`)
    return error.code === 'options_invalid' ? 2 : 1
  }
}

type Read = { help: true } | { problem: string } | { command: string; values: Values }

function readArguments(args: readonly string[]): Read {
  try {
    const { values, positionals } = parseArgs({ args: [...args], options: OPTIONS, allowPositionals: true })
    const [command, ...rest] = positionals
    if (values.help || command === 'help') return { help: true }
    if (command === undefined) return { problem: 'No command given.' }
    const takes = TAKES[command]
    if (!takes) return { problem: `There is no command ${JSON.stringify(command)}.` }
    if (rest.length > 0) return { problem: `${command} takes no further words.` }
    const strange = Object.keys(values).find((name) => ![...takes, 'socket', 'json'].includes(name))
    if (strange) return { problem: `${command} takes no --${strange}.` }
    if (command === 'sweep' && values.install === undefined) return { problem: 'sweep needs --install ID.' }
    return { command, values }
  } catch (error) {
    return { problem: error instanceof Error ? error.message : String(error) }
  }
}

async function run(command: string, values: Values, ports: CommandPorts): Promise<number> {
  const socket =
    values.socket === undefined
      ? engineSocketPath(ports.env)
      : checkedPath('options_invalid', '--socket', values.socket)
  if (command === 'build') return build(values, socket, ports)
  if (command === 'doctor') return showDoctor(values, socket, ports)
  const removed = await sweepEngine(socket, values.install ?? '')
  if (values.json) ports.out(JSON.stringify({ removed }))
  else ports.out(`removed ${removed.length}${removed.map((id) => `\n  ${id}`).join('')}`)
  return 0
}

async function build(values: Values, engineSocket: string, ports: CommandPorts): Promise<number> {
  const image = await buildImage({
    engineSocket,
    signal: ports.signal,
    onProgress: (line) => ports.progress(line),
    ...(values.tag === undefined ? {} : { tag: values.tag }),
    ...(values.runtime === undefined ? {} : { runtime: values.runtime }),
    ...(values.bundle === undefined ? {} : { bundle: values.bundle }),
  })
  ports.out(values.json ? JSON.stringify(image) : `${image.built ? 'built' : 'unchanged'} ${image.tag}`)
  return 0
}

async function showDoctor(values: Values, socket: string, ports: CommandPorts): Promise<number> {
  const findings = await doctor(socket, values.image ?? DEFAULT_TAG)
  const ok = findings.every((finding) => finding.ok)
  if (values.json) ports.out(JSON.stringify({ ok, findings }))
  else
    for (const { id, ok, detail, mend } of findings) {
      ports.out(`${ok ? 'ok  ' : 'FAIL'} ${id.padEnd(9)} ${detail}${mend === undefined ? '' : ` ${mend}`}`)
    }
  return ok ? 0 : 1
}
