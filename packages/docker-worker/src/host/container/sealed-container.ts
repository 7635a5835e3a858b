import { constants } from 'node:os'
import { setTimeout as pause } from 'node:timers/promises'
import { DriverError, stopIfAborted } from '../../errors.ts'
import type { Worker, WorkerExit } from '../driver.ts'
import type { BoundedOutput } from './bounded-output.ts'
import { bounded, type ContainerState, type Engine, statusOf } from './docker-client.ts'
import { type AttachedOutput, attachOutput, type PendingExit, waitNextExit } from './engine-stream.ts'
import { metPidLimit } from './pid-limit.ts'
import { removeContainer } from './reconcile.ts'
import type { SealedCreateBody } from './sealed-spec.ts'

const ATTACH_MS = 15_000
/** How long the output of an exited container is drained. */
const DRAIN_MS = 500

/** What {@link startContainer} needs. */
export interface StartContainer {
  readonly engine: Engine
  readonly workerId: string
  readonly name: string
  readonly body: SealedCreateBody
  readonly output: BoundedOutput
  /** Called once, with the container's id, when the worker is gone. */
  onRemoved?(id: string): void
  /** Called with the container's id and another try whenever a removal failed: it may still run. */
  onLeft?(id: string, remove: () => Promise<void>): void
  readonly signal?: AbortSignal
}

/**
 * Creates, attaches, waits and starts, in this order, so that no output and no exit is missed. When a step fails or
 * the signal aborts, what was created is removed before the rejection: the start call is never sent after an abort.
 * Where that removal fails, `onLeft` hears of it, and the rejection is `remove_failed`.
 */
export async function startContainer(request: StartContainer): Promise<Worker> {
  const { engine, output, signal } = request
  const id = await engine.create(request.name, request.body)
  let watch: Watch | undefined
  try {
    stopIfAborted(signal)
    watch = await watchContainer(engine, id, output)
    stopIfAborted(signal)
    await engine.start(id)
    stopIfAborted(signal)
    return new ContainerWorker(request, id, watch)
  } catch (error) {
    watch?.attached.close()
    try {
      await removeContainer(engine, id)
    } catch (failure) {
      request.onLeft?.(id, () => removeContainer(engine, id))
      throw failure
    } finally {
      watch?.exit.close()
    }
    throw startFailure(error)
  }
}

function startFailure(error: unknown): unknown {
  const status = statusOf(error)
  if (status === undefined) return error
  const text = error instanceof Error ? error.message : String(error)
  return new DriverError('start_failed', `The worker did not start and was removed. ${text}`, {
    cause: error,
  })
}

interface Watch {
  readonly attached: AttachedOutput
  readonly exit: PendingExit
}

async function watchContainer(engine: Engine, id: string, output: BoundedOutput): Promise<Watch> {
  const attaching = attachOutput(engine.address, id, (chunk, stream) => output.push(chunk, stream))
  const waiting = waitNextExit(engine.address, id)
  try {
    const [attached, exit] = await bounded('attach', ATTACH_MS, Promise.all([attaching, waiting]))
    return { attached, exit }
  } catch (error) {
    attaching.then((late) => late.close()).catch(() => {})
    waiting.then((late) => late.close()).catch(() => {})
    throw error
  }
}

class ContainerWorker implements Worker {
  readonly id: string
  readonly workerId: string
  readonly exited: Promise<WorkerExit>
  readonly #request: StartContainer
  readonly #watch: Watch
  #lastState: ContainerState | undefined
  #metPidLimit = false
  #removal: Promise<void> | undefined

  constructor(request: StartContainer, id: string, watch: Watch) {
    this.id = id
    this.workerId = request.workerId
    this.#request = request
    this.#watch = watch
    this.exited = this.#watchExit()
  }

  output(): string {
    return this.#request.output.text()
  }

  remove(): Promise<void> {
    this.#removal ??= this.#removeOnce().catch((error: unknown) => {
      this.#removal = undefined
      this.#request.onLeft?.(this.id, () => this.remove())
      throw error
    })
    return this.#removal
  }

  async #watchExit(): Promise<WorkerExit> {
    const code = await this.#watch.exit.code
    const ours = this.#removal !== undefined
    const state = (await this.#request.engine.state(this.id).catch(() => undefined)) ?? this.#lastState
    await Promise.race([this.#watch.attached.ended, pause(DRAIN_MS, undefined, { ref: false })])
    this.#watch.attached.close()
    const facts = { oom: state?.oomKilled === true, ours, pids: this.#metPidLimit }
    const told = code ?? (state?.running === false ? state.exitCode : undefined)
    // Podman tells 0, by event and as its state, of a container that is removed while it runs.
    const made = told === 0 && ours && this.#request.engine.kind === 'podman'
    if (told !== undefined && !made) return readExit(told, facts)
    return { reason: this.#removal ? 'killed' : 'lost' }
  }

  /** The stream goes first: an engine that is stuck on it could not remove the container. The state is read before it is lost. */
  async #removeOnce(): Promise<void> {
    this.#watch.attached.close()
    this.#lastState = await this.#request.engine.state(this.id).catch(() => undefined)
    this.#metPidLimit = this.#lastState?.running === true && (await metPidLimit(this.#lastState.pid))
    await removeContainer(this.#request.engine, this.id)
    await Promise.race([this.exited, pause(DRAIN_MS, undefined, { ref: false })])
    this.#watch.exit.close()
    this.#request.onRemoved?.(this.id)
    await this.exited
  }
}

const SIGNAL_BASE = 128

/** What is known of an end besides its code. */
interface EndFacts {
  readonly oom: boolean
  /** The removal had begun. */
  readonly ours: boolean
  readonly pids: boolean
}

/** Reads an exit code as a shell does: above 128 it is a signal. */
function readExit(code: number, { oom, ours, pids }: EndFacts): WorkerExit {
  const number = code - SIGNAL_BASE
  const signal = Object.entries(constants.signals).find(([, value]) => value === number)?.[0]
  // Nobody of ours killed it: the kernel ran out of memory and the engine missed it, or it killed itself.
  const likely = signal === 'SIGKILL' && !ours && !oom
  const limit = pids ? 'pids' : likely ? 'memory_likely' : undefined
  return {
    code,
    ...(signal === undefined ? {} : { signal }),
    reason: oom ? 'oom' : signal === undefined ? 'exited' : 'killed',
    ...(limit === undefined ? {} : { limit }),
  }
}
