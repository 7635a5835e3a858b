import { resolve } from 'node:path'
import { DriverError } from '../errors.ts'
import { engineSocketPath } from '../host/container/engine-socket.ts'
import { buildImage, DEFAULT_TAG } from '../host/image/build-image.ts'
import { checkedPath, checkedRuntime } from '../resolve-options.ts'
import { type CommandLine, type CommandValues, HELP, readCommandLine } from './arguments.ts'
import { doctor } from './doctor.ts'
import type { CommandPorts } from './ports.ts'
import { psLines, workersOf } from './ps.ts'
import { runProgram } from './run-program.ts'
import { sweepEngine } from './sweep.ts'
import { doctorLines } from './table.ts'
import { namedUser } from './user.ts'

/** `run` had no program to pass an exit code of. */
const NOT_RUN = 125

/** Runs one command of `sandbox-worker` and returns its exit code. Never throws for what a user did wrong. */
export async function runCommand(args: readonly string[], ports: CommandPorts): Promise<number> {
  const read = readCommandLine(args)
  if ('help' in read) {
    ports.out(HELP)
    return 0
  }
  if ('problem' in read) {
    ports.progress(`${read.problem}\nTry: sandbox-worker --help`)
    return 2
  }
  try {
    return await run(read, ports)
  } catch (error) {
    if (!DriverError.isInstance(error)) throw error
    if (read.values.json) ports.out(JSON.stringify({ error: { code: error.code, message: error.message } }))
    else ports.progress(`sandbox-worker ${read.command}: ${error.message} (${error.code})`)
    if (error.code === 'options_invalid') return 2
    return read.command === 'run' ? NOT_RUN : 1
  }
}

type Ready = Extract<CommandLine, { command: unknown }>

async function run({ command, values, program }: Ready, ports: CommandPorts): Promise<number> {
  const socket =
    values.socket === undefined
      ? engineSocketPath(ports.env)
      : checkedPath('options_invalid', '--socket', values.socket)
  switch (command) {
    case 'build':
      return build(values, socket, ports)
    case 'doctor':
      return showDoctor(values, socket, ports)
    case 'run':
      return runProgram({ values, socket, program, ports })
    case 'ps':
      return showWorkers(values, socket, ports)
    case 'sweep':
      return sweep(values, socket, ports)
  }
}

async function build(values: CommandValues, engineSocket: string, ports: CommandPorts): Promise<number> {
  const image = await buildImage({
    engineSocket,
    signal: ports.signal,
    onProgress: (line) => ports.progress(line),
    ...(values.tag === undefined ? {} : { tag: values.tag }),
    ...(values.base === undefined ? {} : { base: values.base }),
    ...(values.runtime === undefined ? {} : { runtime: values.runtime }),
    ...(values.bundle === undefined ? {} : { bundle: values.bundle }),
    ...(values.pi ? { guest: 'pi' as const } : {}),
    ...(values.content === undefined ? {} : { content: resolve(values.content) }),
  })
  ports.out(values.json ? JSON.stringify(image) : `${image.built ? 'built' : 'unchanged'} ${image.tag}`)
  return 0
}

async function showDoctor(values: CommandValues, socket: string, ports: CommandPorts): Promise<number> {
  const runtime = values['engine-runtime']
  const rows = await doctor({
    socket,
    image: values.image ?? DEFAULT_TAG,
    user: namedUser(values.user),
    signal: ports.signal,
    progress: ports.progress,
    ...(runtime === undefined ? {} : { runtime: checkedRuntime(runtime, '--engine-runtime') }),
  })
  const ok = rows.every((row) => row.ok)
  if (values.json) ports.out(JSON.stringify({ ok, findings: rows }))
  else for (const line of doctorLines(rows)) ports.out(line)
  return ok ? 0 : 1
}

async function showWorkers(values: CommandValues, socket: string, ports: CommandPorts): Promise<number> {
  const workers = await workersOf(socket, values.install)
  if (values.json) ports.out(JSON.stringify({ workers }))
  else for (const line of psLines(workers)) ports.out(line)
  return 0
}

async function sweep(values: CommandValues, socket: string, ports: CommandPorts): Promise<number> {
  const removed = await sweepEngine(socket, values.install ?? '')
  if (values.json) ports.out(JSON.stringify({ removed }))
  else ports.out(`removed ${removed.length}${removed.map((id) => `\n  ${id}`).join('')}`)
  return 0
}
