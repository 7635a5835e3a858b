import { realpath } from 'node:fs/promises'
import { join } from 'node:path'
import { SOCKET_NAME } from '@sandbox/protocol'
import { DriverError, stopIfAborted } from '../errors.ts'
import type { ProcessDriverOptions, WorkerGuest } from '../options.ts'
import {
  checkedFunction,
  checkedGuest,
  checkedNoLink,
  checkedObject,
  checkedPath,
  checkedProgram,
  checkedUser,
} from '../resolve-options.ts'
import { createBoundedOutput } from './container/bounded-output.ts'
import type { Driver, Worker, WorkerSpec } from './driver.ts'
import { guestFile } from './image/guest-bundle.ts'
import { killMarkedGroup, markProcess } from './process/process-table.ts'
import { ProcessWorker, spawnGroup } from './process/process-worker.ts'
import { ownDirectory, programsInPlace, type StagedPrograms, stagePrograms } from './process/stage.ts'
import { type WorkerFiles, workerFiles } from './process/worker-files.ts'
import { StartedWorkers } from './started-workers.ts'

/**
 * Makes a driver that starts every worker as a plain process: **no sandbox**. It can read what its account can read
 * and reach every network. For trying the product where no engine is, and for tests. Throws `options_invalid`.
 */
export function createProcessDriver(options: ProcessDriverOptions): Driver {
  checkedObject('options', options)
  const runRoot = checkedPath('options_invalid', 'runRoot', options.runRoot)
  checkedNoLink('options_invalid', 'runRoot', runRoot)
  checkedGuest(options.guest)
  checkedProgram('runtime', options.runtime)
  checkedProgram('bundle', options.bundle)
  checkedFunction('scrub', options.scrub)
  if (options.content !== undefined) checkedPath('options_invalid', 'content', options.content)
  if (options.user !== undefined) checkedUser(options.user)
  requireAccount(options)
  return new ProcessDriver(options)
}

/** Only root may start processes as another account, and root must. */
function requireAccount({ user }: ProcessDriverOptions): void {
  const [uid, gid] = [process.getuid?.(), process.getgid?.()]
  if (uid === 0 && !user) {
    const text = 'user has to name a non-root uid and gid: this host is root, and a worker never is.'
    throw new DriverError('options_invalid', text)
  }
  if (uid !== 0 && user && (user.uid !== uid || user.gid !== gid)) {
    const text = `user has to be this account (uid ${uid}, gid ${gid}): only root can start another's processes.`
    throw new DriverError('options_invalid', text)
  }
}

interface Ready {
  readonly programs: StagedPrograms
  readonly files: WorkerFiles
}

class ProcessDriver implements Driver {
  readonly kind = 'process'
  readonly isolation = 'none'
  readonly #options: ProcessDriverOptions
  readonly #workers = new StartedWorkers()
  #ready: Promise<Ready> | undefined

  constructor(options: ProcessDriverOptions) {
    this.#options = options
  }

  async check(signal?: AbortSignal): Promise<void> {
    this.#workers.stopIfClosed()
    stopIfAborted(signal)
    this.#ready = undefined
    await this.#readyOnce()
    stopIfAborted(signal)
  }

  start(spec: WorkerSpec, signal?: AbortSignal): Promise<Worker> {
    return this.#workers.start(spec, signal, () => this.#startChecked(spec, signal))
  }

  /** Nothing is promised, so nothing differs. */
  verify(): readonly string[] {
    return []
  }

  async sweep(live: ReadonlySet<string>): Promise<readonly string[]> {
    this.#workers.stopIfClosed()
    const { files } = await this.#readyOnce()
    const left = (await files.list()).filter(
      ({ workerId }) => !live.has(workerId) && !this.#workers.starts(workerId),
    )
    for (const { workerId, mark } of left) {
      if (mark) await killMarkedGroup(mark)
      await files.remove(workerId)
    }
    return left.map(({ workerId }) => workerId)
  }

  /** Waits for starts under way, then kills every worker of this driver that may still run. */
  [Symbol.asyncDispose](): Promise<void> {
    return this.#workers.close()
  }

  async #startChecked(spec: WorkerSpec, signal: AbortSignal | undefined): Promise<Worker> {
    const { programs, files } = await this.#readyOnce()
    const args = [...(await workerArguments(programs.bundle, spec)), ...contentArguments(this.#options)]
    stopIfAborted(signal)
    await files.reserve(spec.workerId)
    const child = await spawnGroup(programs.runtime, args, this.#options.user).catch(
      async (error: unknown) => {
        await files.remove(spec.workerId)
        throw error
      },
    )
    const { scrub } = this.#options
    const worker = new ProcessWorker(spec.workerId, child, {
      output: createBoundedOutput(scrub ? { scrub: (text) => scrub(text) } : {}),
      onRemoved: async () => {
        this.#workers.forget(worker.id)
        await files.remove(spec.workerId)
      },
    })
    try {
      const mark = markProcess(worker.pid)
      if (mark) await files.note(spec.workerId, mark)
      stopIfAborted(signal)
      return worker
    } catch (error) {
      await worker.remove()
      throw error
    }
  }

  #readyOnce(): Promise<Ready> {
    this.#ready ??= makeReady(this.#options).catch((error: unknown) => {
      this.#ready = undefined
      throw error
    })
    return this.#ready
  }
}

const GUEST_PROGRAMS: Readonly<Record<WorkerGuest, string>> = {
  sealed: 'sealed.js',
  pi: 'pi-agent.cjs',
  precheck: 'precheck.js',
}

async function makeReady(options: ProcessDriverOptions): Promise<Ready> {
  const { runRoot, user, runtime = process.execPath, guest } = options
  const bundle = options.bundle ?? guestFile(GUEST_PROGRAMS[guest ?? 'sealed'])
  const own = join(runRoot, 'process')
  const workers = join(own, 'workers')
  const staged = join(own, 'programs')
  await ownDirectory(own, 0o711)
  await ownDirectory(workers, 0o700)
  const files = workerFiles(workers)
  if (process.getuid?.() !== 0 || !user) return { programs: await programsInPlace(runtime, bundle), files }
  // Bun lists the directory of the program that it runs.
  await ownDirectory(staged, 0o755)
  return { programs: await stagePrograms(staged, { runtime, bundle }, user), files }
}

function contentArguments({ guest, content }: ProcessDriverOptions): string[] {
  // Without content, a place where none is: the image's own path could be anybody's directory here.
  return guest === 'pi' ? ['--content', content ?? '/dev/null'] : []
}

async function workerArguments(bundle: string, spec: WorkerSpec): Promise<string[]> {
  const real = async (field: 'runDir' | 'workspaceDir') =>
    realpath(spec[field]).catch((cause: unknown) => {
      throw new DriverError('spec_invalid', `spec.${field} does not exist.`, { cause })
    })
  const [runDir, workspace] = await Promise.all([real('runDir'), real('workspaceDir')])
  return [bundle, '--socket', join(runDir, SOCKET_NAME), '--workspace', workspace]
}
