import { parseArgs } from 'node:util'
import { DEFAULT_PI_TAG, DEFAULT_TAG } from '../host/image/build-image.ts'

/** What `sandbox-worker --help` prints. */
export const HELP = `sandbox-worker: sealed containers for programs that nobody should trust

A sealed container has no network, no capability, a read-only root, one directory with your socket, one workspace,
and limits on memory, processor, processes and files. It is removed when its program ends.

Usage: sandbox-worker <command> [options]

Commands
  build    build the worker image from the Node or Bun that runs this, and load it into the engine
  doctor   start one worker and show every wall around it: what has to be, what is, and how to mend it
  run      run any program of any image in a sealed container
  ps       list the workers that the engine holds, running or not
  sweep    remove every container that an install left, running or not; stop its host first

build
  --tag NAME         name of the image                         (default: ${DEFAULT_TAG})
  --base IMAGE       put the guest on the files of an image that the engine has, instead of this machine's runtime
  --runtime PATH     another Node or Bun binary for Linux      (with --base: its path there,
                     default /usr/local/bin/node)
  --bundle PATH      another guest program
  --pi               the image of the real Pi coding agent     (default name: ${DEFAULT_PI_TAG})
  --content DIR      with --pi: your prompt, skills, tools and extensions, copied into the image
doctor
  --image NAME       the worker image to try                   (default: ${DEFAULT_TAG})
  --user UID:GID     account of the worker, never 0            (default: yours; 64200:64200 if you are root)
  --engine-runtime NAME  runc, runsc (gVisor) or kata          (default: the engine's own)
run  --image NAME --run-dir DIR [options] -- PROGRAM [ARGUMENT...]
  --image NAME       an image that the engine has; nothing is pulled
  --run-dir DIR      your directory with the socket to talk through; read-only at /run/sandbox
  --workspace DIR    the only directory that it may write to, at /workspace and where it starts
                     (default: an empty one that is deleted afterwards)
  --timeout SECONDS  removed after this time                   (default: 600)
  --memory MIB       memory with swap and /tmp in it           (default: 512)
  --pids NUMBER      processes and threads                     (default: 64)
  --user UID:GID     account of the program, never 0           (default: yours; 64200:64200 if you are root)
  --install ID       mark for "ps" and "sweep"                 (default: sandbox-run-UID)
ps
  --install ID       only the workers of this install          (default: those of every install)
sweep
  --install ID       the install whose containers go
everywhere
  --socket PATH      the engine's socket  (default: DOCKER_HOST if unix://…, else /var/run/docker.sock)
  --json             print the result as JSON; progress goes to stderr either way
  --help             print this

Examples
  sandbox-worker build && sandbox-worker doctor
  sandbox-worker run --image alpine:3 --run-dir /srv/run --timeout 10 -- /bin/sh -c 'id; ls /run/sandbox'

Exit codes: 0 done, 1 failed (the message says what to do), 2 wrong usage.
"run" passes the program's exit code on. Of its own it has 124 (time over), 125 (not run, or its end is unknown),
130 (called off), 2 (wrong usage). What it prints besides the program's output goes to stderr.`

const OPTIONS = {
  tag: { type: 'string' },
  base: { type: 'string' },
  runtime: { type: 'string' },
  bundle: { type: 'string' },
  pi: { type: 'boolean' },
  content: { type: 'string' },
  image: { type: 'string' },
  install: { type: 'string' },
  socket: { type: 'string' },
  user: { type: 'string' },
  'engine-runtime': { type: 'string' },
  'run-dir': { type: 'string' },
  workspace: { type: 'string' },
  timeout: { type: 'string' },
  memory: { type: 'string' },
  pids: { type: 'string' },
  json: { type: 'boolean' },
  help: { type: 'boolean', short: 'h' },
} as const

/** Which options a command takes, besides `--socket` and `--json`. */
const TAKES = {
  build: ['tag', 'base', 'runtime', 'bundle', 'pi', 'content'],
  doctor: ['image', 'user', 'engine-runtime'],
  run: ['image', 'run-dir', 'workspace', 'timeout', 'memory', 'pids', 'user', 'install'],
  ps: ['install'],
  sweep: ['install'],
} as const satisfies Record<string, readonly string[]>

/** Options without which a command means nothing. */
const NEEDS: Partial<Record<CommandName, Readonly<Record<string, string>>>> = {
  run: { image: 'NAME', 'run-dir': 'DIR' },
  sweep: { install: 'ID' },
}

/** A word that comes first. */
export type CommandName = keyof typeof TAKES

/** The options as they were typed. */
export type CommandValues = ReturnType<
  typeof parseArgs<{ options: typeof OPTIONS; allowPositionals: true }>
>['values']

/** What the words on a command line mean. */
export type CommandLine =
  | { readonly help: true }
  | { readonly problem: string }
  | { readonly command: CommandName; readonly values: CommandValues; readonly program: readonly string[] }

/** Reads a command line. Never throws. */
export function readCommandLine(args: readonly string[]): CommandLine {
  const end = args.indexOf('--')
  const [own, program] = end < 0 ? [args, []] : [args.slice(0, end), args.slice(end + 1)]
  try {
    const { values, positionals } = parseArgs({ args: [...own], options: OPTIONS, allowPositionals: true })
    const [command, ...rest] = positionals
    if (values.help || command === 'help') return { help: true }
    if (command === undefined) return { problem: 'No command given.' }
    if (!Object.hasOwn(TAKES, command)) return { problem: `There is no command ${JSON.stringify(command)}.` }
    const name = command as CommandName
    const problem = usageProblem(name, values, rest, end < 0 ? undefined : program)
    return problem === undefined ? { command: name, values, program } : { problem }
  } catch (error) {
    return { problem: error instanceof Error ? error.message : String(error) }
  }
}

function usageProblem(
  command: CommandName,
  values: CommandValues,
  rest: readonly string[],
  program: readonly string[] | undefined,
): string | undefined {
  const takes: readonly string[] = [...TAKES[command], 'socket', 'json']
  const strange = Object.keys(values).find((name) => !takes.includes(name))
  if (strange) return `${command} takes no --${strange}.`
  const given: Readonly<Record<string, unknown>> = values
  for (const [name, word] of Object.entries(NEEDS[command] ?? {})) {
    if (given[name] === undefined) return `${command} needs --${name} ${word}.`
  }
  if (values.base !== undefined && values.pi) return '--base is not for --pi.'
  if (values.content !== undefined && !values.pi) return '--content goes with --pi.'
  if (command === 'run') {
    if (rest.length > 0) return 'run takes the program behind "--".'
    return program === undefined || program.length === 0 ? 'run needs a program: -- PROGRAM.' : undefined
  }
  return rest.length > 0 || program !== undefined ? `${command} takes no further words.` : undefined
}
