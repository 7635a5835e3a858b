import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { setTimeout as pause } from 'node:timers/promises'
import { DriverError } from '../../errors.ts'
import type { WorkerUser } from '../../options.ts'
import type { BoundedOutput } from '../container/bounded-output.ts'
import type { Worker, WorkerExit } from '../driver.ts'
import { groupGone, killGroup } from './process-table.ts'

/** How long the output of an ended process is drained. */
const DRAIN_MS = 500

/** Starts a process in a group of its own, so that a kill reaches its children too; nothing of the host's environment. */
export async function spawnGroup(
  runtime: string,
  args: readonly string[],
  user: WorkerUser | undefined,
): Promise<ChildProcess> {
  const child = spawn(runtime, args, {
    detached: true,
    cwd: '/',
    env: {},
    stdio: ['ignore', 'pipe', 'pipe'],
    ...(user && process.getuid?.() === 0 ? { uid: user.uid, gid: user.gid } : {}),
  })
  try {
    await once(child, 'spawn')
    return child
  } catch (cause) {
    throw new DriverError('start_failed', `The worker process ${runtime} did not start.`, { cause })
  }
}

/** What a {@link ProcessWorker} is given. */
export interface ProcessWorkerParts {
  readonly output: BoundedOutput
  /** Called when nobody of the group runs any more. */
  onRemoved(): Promise<void>
}

/** A running worker process and its group. */
export class ProcessWorker implements Worker {
  readonly id: string
  readonly pid: number
  readonly workerId: string
  readonly exited: Promise<WorkerExit>
  readonly #parts: ProcessWorkerParts
  #running = true
  #removal: Promise<void> | undefined

  constructor(workerId: string, child: ChildProcess, parts: ProcessWorkerParts) {
    this.pid = child.pid as number
    this.id = String(child.pid)
    this.workerId = workerId
    this.#parts = parts
    for (const stream of [child.stdout, child.stderr]) {
      stream?.on('data', (chunk: Buffer) => parts.output.push(chunk))
    }
    this.exited = this.#watchExit(child)
  }

  output(): string {
    return this.#parts.output.text()
  }

  remove(): Promise<void> {
    this.#removal ??= this.#removeOnce().catch((error: unknown) => {
      this.#removal = undefined
      throw error
    })
    return this.#removal
  }

  #watchExit(child: ChildProcess): Promise<WorkerExit> {
    const closed = new Promise<void>((resolve) => child.once('close', () => resolve()))
    return new Promise((resolve) => {
      child.once('exit', (code, signal) => {
        this.#running = false
        // At once: later the number could be another's.
        killLeftovers(this.pid)
        void Promise.race([closed, pause(DRAIN_MS, undefined, { ref: false })]).then(() => {
          child.stdout?.destroy()
          child.stderr?.destroy()
          resolve(readExit(code, signal))
        })
      })
    })
  }

  async #removeOnce(): Promise<void> {
    if (this.#running) killGroup(this.pid)
    await this.exited
    await groupGone(this.pid)
    await this.#parts.onRemoved()
  }
}

/** `remove()` reports a group that cannot be killed; an exit handler cannot. */
function killLeftovers(group: number): void {
  try {
    killGroup(group)
  } catch {}
}

function readExit(code: number | null, signal: NodeJS.Signals | null): WorkerExit {
  if (signal !== null) return { signal, reason: 'killed' }
  return code === null ? { reason: 'lost' } : { code, reason: 'exited' }
}
