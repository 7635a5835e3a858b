import { execFile, spawn } from 'node:child_process'
import { mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import type { Driver, Worker, WorkerExit, WorkerSpec } from '@sandbox/docker-worker'

const run = promisify(execFile)

/** True where `runc` can be run: it is there, and this is root. */
export async function hasRunc(): Promise<boolean> {
  if (process.getuid?.() !== 0) return false
  return run('runc', ['--version']).then(
    () => true,
    () => false,
  )
}

/** A floor of the bench: the same image and nearly the same walls, started by `runc run` without an engine. */
export async function runcDriver(options: {
  readonly image: string
  readonly engineSocket: string
  readonly user: { readonly uid: number; readonly gid: number }
  /** An empty directory for the image's files and for bundles. */
  readonly directory: string
}): Promise<Driver> {
  const { image, engineSocket, user, directory } = options
  const rootfs = join(directory, 'rootfs')
  mkdirSync(rootfs)
  const env = { PATH: process.env.PATH ?? '', DOCKER_HOST: `unix://${engineSocket}` }
  const { stdout } = await run('docker', ['create', image], { env })
  const id = stdout.trim()
  const archive = join(directory, 'image.tar')
  await run('docker', ['export', '--output', archive, id], { env })
  await run('docker', ['rm', '-f', id], { env })
  await run('tar', ['-xf', archive, '-C', rootfs])
  rmSync(archive)
  for (const point of ['proc', 'dev', 'tmp', 'run/sandbox', 'workspace']) {
    mkdirSync(join(rootfs, point), { recursive: true })
  }
  return {
    kind: 'docker',
    isolation: 'container',
    check: async () => {},
    verify: () => [],
    sweep: async () => [],
    start: async (spec) => startWorker(spec, { rootfs, directory, user }),
    [Symbol.asyncDispose]: async () => {},
  }
}

interface Bundle {
  readonly rootfs: string
  readonly directory: string
  readonly user: { readonly uid: number; readonly gid: number }
}

function startWorker(spec: WorkerSpec, bundle: Bundle): Worker {
  const name = `sandbox-bench-${spec.workerId}`
  const path = join(bundle.directory, name)
  mkdirSync(path)
  writeFileSync(join(path, 'config.json'), JSON.stringify(configOf(spec, bundle)))
  const child = spawn('runc', ['run', '--bundle', path, name], { stdio: ['ignore', 'pipe', 'pipe'] })
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
      await run('runc', ['delete', '--force', name]).catch(() => undefined)
      await exited
      rmSync(path, { recursive: true, force: true })
    },
  }
}

/** The OCI runtime's configuration: see the fields of `config.json` in the OCI runtime specification. */
function configOf(spec: WorkerSpec, { rootfs, user }: Bundle) {
  const none: string[] = []
  const bind = (source: string, destination: string, ...more: string[]) => ({
    destination,
    type: 'bind',
    source,
    options: ['bind', 'rprivate', ...more],
  })
  const tmpfs = (destination: string, ...options: string[]) => ({
    destination,
    type: 'tmpfs',
    source: 'tmpfs',
    options: ['nosuid', ...options],
  })
  return {
    ociVersion: '1.0.2',
    process: {
      terminal: false,
      user,
      args: ['/sandbox/runtime', '--max-old-space-size=358', '/sandbox/sealed.mjs'],
      env: ['HOME=/tmp'],
      cwd: '/',
      capabilities: { bounding: none, effective: none, inheritable: none, permitted: none, ambient: none },
      rlimits: [{ type: 'RLIMIT_NOFILE', soft: 256, hard: 256 }],
      noNewPrivileges: true,
    },
    root: { path: rootfs, readonly: true },
    hostname: 'sandbox',
    mounts: [
      { destination: '/proc', type: 'proc', source: 'proc' },
      tmpfs('/dev', 'mode=755', 'size=65536k'),
      tmpfs('/tmp', 'noexec', 'nodev', 'mode=1777', 'size=64m'),
      bind(spec.runDir, '/run/sandbox', 'ro'),
      bind(spec.workspaceDir, '/workspace', 'rw'),
    ],
    linux: {
      resources: { devices: [{ allow: false, access: 'rwm' }] },
      namespaces: ['pid', 'network', 'ipc', 'uts', 'mount'].map((type) => ({ type })),
    },
  }
}
