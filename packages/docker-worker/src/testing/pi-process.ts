import { type ChildProcess, execFileSync, spawn } from 'node:child_process'
import { chmodSync, copyFileSync, existsSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { tempDir } from '@sandbox/testing'
import type { PiHost } from './pi-host.ts'
import { testUser } from './worker-bench.ts'

const GUEST = fileURLToPath(new URL('../../dist/guest/', import.meta.url))
const FILES = ['pi-start.cjs', 'pi-agent.cjs']

/** A Pi worker as a plain process. */
export interface PiProcess extends AsyncDisposable {
  readonly child: ChildProcess
  /** Resolves with its exit code, or the name of the signal that ended it. */
  readonly ended: Promise<number | NodeJS.Signals | null>
  /** What it wrote so far. */
  output(): string
}

/** What an image starts, with its code cache: a start with it takes a third. Bun has none. */
export interface PiProgram extends Disposable {
  readonly path: string
  /** What runs it: in a root shell a copy, which another account may run wherever the original lies. */
  readonly runtime: string
}

/** Makes it in a directory of its own. */
export function piProgram(): PiProgram {
  if (!existsSync(join(GUEST, 'pi-agent.cjs'))) throw new TypeError('"pnpm run build:guest" makes the guest')
  const folder = tempDir()
  chmodSync(folder.path, 0o755)
  for (const name of FILES) copyFileSync(join(GUEST, name), join(folder.path, name))
  const [start = '', agent = ''] = FILES.map((name) => join(folder.path, name))
  if (process.versions.bun === undefined) {
    const args = [start, '--make-cache', join(folder.path, 'pi-agent.cache'), agent]
    execFileSync(process.execPath, args, { env: {}, stdio: 'ignore' })
  }
  let runtime = process.execPath
  if (process.getuid?.() === 0) {
    runtime = join(folder.path, 'runtime')
    copyFileSync(process.execPath, runtime)
    chmodSync(runtime, 0o755)
  }
  return { path: start, runtime, [Symbol.dispose]: () => folder[Symbol.dispose]() }
}

/** Starts the built guest as the process driver does: no environment, no input, not as root. */
export function startPiProcess(program: PiProgram, host: PiHost, content = '/dev/null'): PiProcess {
  const args = [
    program.path,
    '--socket',
    host.socketPath,
    '--workspace',
    host.workspace,
    '--content',
    content,
  ]
  const asUser = process.getuid?.() === 0 ? testUser() : {}
  const child = spawn(program.runtime, args, {
    env: {},
    cwd: '/',
    stdio: ['ignore', 'pipe', 'pipe'],
    ...asUser,
  })
  const chunks: Buffer[] = []
  for (const stream of [child.stdout, child.stderr]) stream?.on('data', (chunk: Buffer) => chunks.push(chunk))
  const ended = new Promise<number | NodeJS.Signals | null>((resolve) => {
    child.once('close', (code, signal) => resolve(code ?? signal))
    child.once('error', () => resolve(null))
  })
  return {
    child,
    ended,
    output: () => Buffer.concat(chunks).toString(),
    async [Symbol.asyncDispose]() {
      child.kill('SIGKILL')
      await ended
    },
  }
}
