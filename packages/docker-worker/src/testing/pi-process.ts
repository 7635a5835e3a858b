import { type ChildProcess, spawn } from 'node:child_process'
import { existsSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import type { PiHost } from './pi-host.ts'
import { testUser } from './worker-bench.ts'

const BUNDLE = fileURLToPath(new URL('../../dist/guest/pi-agent.cjs', import.meta.url))

/** A Pi worker as a plain process. */
export interface PiProcess extends AsyncDisposable {
  readonly child: ChildProcess
  /** Resolves with its exit code, or the name of the signal that ended it. */
  readonly ended: Promise<number | NodeJS.Signals | null>
  /** What it wrote so far. */
  output(): string
}

/** Starts the built bundle as the process driver does: no environment, no input, not as root. */
export function startPiProcess(host: PiHost, content = '/dev/null'): PiProcess {
  if (!existsSync(BUNDLE)) throw new TypeError('"pnpm run build:guest" makes the guest')
  const args = [BUNDLE, '--socket', host.socketPath, '--workspace', host.workspace, '--content', content]
  const asUser = process.getuid?.() === 0 ? testUser() : {}
  const child = spawn(process.execPath, args, {
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
