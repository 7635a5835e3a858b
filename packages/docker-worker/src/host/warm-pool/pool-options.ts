import { availableParallelism } from 'node:os'
import { DriverError } from '../../errors.ts'
import { checkedObject } from '../../resolve-options.ts'
import type { Driver, Worker, WorkerSpec } from '../driver.ts'

/** What an idle sealed worker costs the machine, its supervisor included: 15 MiB when measured. */
const IDLE_WORKER_BYTES = 16 * 2 ** 20

/** How many workers may wait for a turn, and how long. */
export interface WarmLimits {
  /** Most workers that wait at once, 0 to 1,000. Default 8. */
  readonly workers?: number
  /** Memory that they may use together, at 16 MiB for each. Default 128 MiB. */
  readonly memoryBytes?: number
  /** How long one waits before it is removed, at most a day. Default 10 minutes. */
  readonly idleMs?: number
}

/** Where one worker runs: what the pool's user made for it, and takes back. */
export interface WorkerPlace {
  readonly spec: WorkerSpec
  /**
   * Resolves when the worker waits for its turn and is what it should be; rejects when it must not get one. Called
   * once after the start, and again just before the worker is handed over.
   */
  ready(worker: Worker, signal?: AbortSignal): Promise<void>
  /** Removes the worker, where one was started, and everything that was made for it. Rejects when something is left. */
  dispose(worker: Worker | undefined): Promise<void>
}

/** A worker that is ready for its one turn. Whoever got it disposes of its place. */
export interface ReadyWorker<Place extends WorkerPlace> {
  readonly place: Place
  readonly worker: Worker
  /** True when it was waiting already. */
  readonly warm: boolean
}

/** Something that happened to a spare worker, which no turn notices. */
export interface WarmProblem {
  readonly channel: string
  /**
   * `start_failed`: it did not get ready · `died`: it ended while it waited · `unfit`: it was not what it should be
   * when its turn came · `outdated`: the image is another one by now · `cleanup_failed`: something of it is left
   */
  readonly what: 'start_failed' | 'died' | 'unfit' | 'outdated' | 'cleanup_failed'
  /** How many spares of the channel failed one after the other. */
  readonly failures: number
  /** When the next one is tried, where one is. */
  readonly retryMs?: number
  readonly error: unknown
}

/** Options of `createWarmPool`. */
export interface WarmPoolOptions<Place extends WorkerPlace, Asker = never> {
  readonly driver: Pick<Driver, 'start' | 'identity'>
  /** Makes the place of one worker. `asker` is what `acquire` was given, absent for a spare. */
  prepare(channel: string, options: { readonly signal: AbortSignal; readonly asker?: Asker }): Promise<Place>
  readonly limits?: WarmLimits
  /** Most starts at once. Default: the machine's cores. */
  readonly startLimit?: number
  /** How long after a hand-over the channel's next worker is started. Default 500: the turn goes first. */
  readonly refillMs?: number
  /** How long after a spare's first failure another is tried; doubles with each, up to a minute. Default 1,000. */
  readonly retryMs?: number
  /** Must not throw. */
  onProblem?(problem: WarmProblem): void
}

/** The same with every default filled in. */
export interface ResolvedPool {
  readonly workers: number
  readonly idleMs: number
  readonly startLimit: number
  readonly refillMs: number
  readonly retryMs: number
}

/** Checks the numbers of a pool. Throws `options_invalid` naming the field. */
export function resolvePool(
  options: Pick<WarmPoolOptions<WorkerPlace>, 'limits' | 'startLimit' | 'refillMs' | 'retryMs'>,
): ResolvedPool {
  const { limits = {}, startLimit = availableParallelism(), refillMs = 500, retryMs = 1_000 } = options
  checkedObject('warm', limits)
  const { workers = 8, memoryBytes = 8 * IDLE_WORKER_BYTES, idleMs = 600_000 } = limits
  const room = whole('warm.memoryBytes', memoryBytes, 0, 2 ** 50) / IDLE_WORKER_BYTES
  return {
    workers: Math.min(whole('warm.workers', workers, 0, 1_000), Math.floor(room)),
    idleMs: whole('warm.idleMs', idleMs, 100, 86_400_000),
    startLimit: whole('startLimit', startLimit, 1, 1_000),
    refillMs: whole('refillMs', refillMs, 0, 60_000),
    retryMs: whole('retryMs', retryMs, 1, 60_000),
  }
}

function whole(field: string, value: number, min: number, max: number): number {
  if (Number.isInteger(value) && value >= min && value <= max) return value
  throw new DriverError('options_invalid', `${field} has to be a whole number from ${min} to ${max}.`)
}
