import { execFile, spawn } from 'node:child_process'
import { promisify } from 'node:util'
import type { Driver, Worker, WorkerExit, WorkerSpec } from '@sandbox/docker-worker'

const run = promisify(execFile)

/** Options of {@link cliDriver}. */
export interface CliDriverOptions {
  readonly image: string
  readonly installId: string
  readonly user: { readonly uid: number; readonly gid: number }
  /** Path of the engine's socket. */
  readonly engineSocket: string
}

/** The peer of the bench: the same image and the same walls, started by `docker run`. */
export function cliDriver(options: CliDriverOptions): Driver {
  const env = { PATH: process.env.PATH ?? '', DOCKER_HOST: `unix://${options.engineSocket}` }
  return {
    kind: 'docker',
    isolation: 'container',
    check: async () => {
      await run('docker', ['version'], { env })
    },
    verify: () => [],
    sweep: async () => [],
    start: async (spec) => startWorker(spec, options, env),
    [Symbol.asyncDispose]: async () => {},
  }
}

function startWorker(spec: WorkerSpec, options: CliDriverOptions, env: Record<string, string>): Worker {
  const name = `sandbox-bench-${spec.workerId}`
  const child = spawn('docker', runArguments(name, spec, options), { env, stdio: ['ignore', 'pipe', 'pipe'] })
  let output = ''
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (chunk) => (output += String(chunk)))
  const exited = new Promise<WorkerExit>((done) =>
    child.on('exit', (code) => done({ reason: 'exited', ...(code === null ? {} : { code }) })),
  )
  return {
    id: name,
    workerId: spec.workerId,
    exited,
    output: () => output.slice(-2000),
    remove: async () => {
      await run('docker', ['rm', '-f', name], { env }).catch(() => undefined)
      await exited
    },
  }
}

function runArguments(
  name: string,
  spec: WorkerSpec,
  { image, user, installId }: CliDriverOptions,
): string[] {
  const mount = (source: string, target: string, more = '') => [
    '--mount',
    `type=bind,source=${source},target=${target}${more}`,
  ]
  return [
    ...['run', '--rm', '--name', name, '--label', `sandbox.bench=${installId}`],
    ...['--log-driver', 'none', '--pull', 'never', '--network', 'none', '--read-only', '--init'],
    ...['--cap-drop', 'ALL', '--security-opt', 'no-new-privileges', '--user', `${user.uid}:${user.gid}`],
    ...[
      '--memory',
      '512m',
      '--memory-swap',
      '512m',
      '--cpus',
      '1',
      '--pids-limit',
      '64',
      '--ulimit',
      'nofile=256:256',
    ],
    ...['--tmpfs', '/tmp:rw,size=64m,noexec,nosuid,nodev'],
    ...mount(spec.runDir, '/run/sandbox', ',readonly'),
    ...mount(spec.workspaceDir, '/workspace'),
    image,
  ]
}
