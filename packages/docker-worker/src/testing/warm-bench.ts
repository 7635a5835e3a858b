import { chmodSync, mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { tempDir } from '@sandbox/testing'
import type { Driver, Worker, WorkerSpec } from '../host/driver.ts'
import { createProcessDriver } from '../host/process-driver.ts'
import type { WarmPoolOptions, WarmProblem, WorkerPlace } from '../host/warm-pool/pool-options.ts'
import { createWarmPool, type WarmPool } from '../host/warm-pool.ts'
import { TINY_GUEST } from './tiny-guest.ts'
import { testPlace, testUser } from './worker-bench.ts'

/** A place that remembers for which channel it was made. */
export interface BenchPlace extends WorkerPlace {
  readonly channel: string
}

/** A pool of real processes, and what happened in it. */
export interface WarmBench extends AsyncDisposable {
  readonly pool: WarmPool<BenchPlace, string>
  readonly problems: WarmProblem[]
  /** In the order of their starts. */
  readonly started: { readonly channel: string; readonly worker: Worker }[]
  /** Workers that are started and not yet gone; `most` is the largest number that there ever was. */
  readonly alive: { now: number; most: number }
  /** The places that were made and not yet disposed of. */
  readonly places: Set<BenchPlace>
}

/** What a test changes. `program` is what the tiny guest does. */
export interface WarmBenchOptions extends Partial<WarmPoolOptions<BenchPlace, string>> {
  readonly program?: string
  ready?(place: BenchPlace, worker: Worker): Promise<void>
  identity?(): Promise<string>
}

const STAYS = 'await guest.report({})\nsetInterval(() => {}, 1000)\n'

/** Opens a pool whose workers are processes of the tiny guest. No refill unless asked for. */
export function warmBench(options: WarmBenchOptions = {}): WarmBench {
  const { program = STAYS, ready, identity, ...more } = options
  const dir = tempDir()
  chmodSync(dir.path, 0o711)
  const bundle = join(dir.path, 'guest.mjs')
  writeFileSync(bundle, TINY_GUEST, { mode: 0o600 })
  const runRoot = join(dir.path, 'root')
  mkdirSync(runRoot, { mode: 0o711 })
  const driver = createProcessDriver({ runRoot, user: testUser(), bundle })
  const problems: WarmProblem[] = []
  const started: WarmBench['started'] = []
  const places = new Set<BenchPlace>()
  const channels = new Map<string, string>()
  const alive = { now: 0, most: 0 }
  const counted = {
    ...(identity === undefined ? {} : { identity }),
    start: async (spec: WorkerSpec, signal?: AbortSignal) => {
      alive.now += 1
      alive.most = Math.max(alive.most, alive.now)
      const worker = await driver.start(spec, signal).catch((error: unknown) => {
        alive.now -= 1
        throw error
      })
      started.push({ channel: channels.get(spec.workerId) ?? '', worker })
      return worker
    },
  } satisfies Pick<Driver, 'start' | 'identity'>
  const pool = createWarmPool<BenchPlace, string>({
    driver: counted,
    refillMs: 60_000,
    retryMs: 20,
    onProblem: (problem) => problems.push(problem),
    prepare: async (channel) => {
      const own = await testPlace(program)
      channels.set(own.spec.workerId, channel)
      let reported: Promise<unknown> | undefined
      const place: BenchPlace = {
        channel,
        spec: own.spec,
        ready: async (worker) => {
          reported ??= Promise.race([own.report(), worker.exited.then(endedEarly)])
          await reported
          await ready?.(place, worker)
        },
        dispose: async (worker) => {
          if (worker) {
            await worker.remove()
            alive.now -= 1
          }
          await own[Symbol.asyncDispose]()
          places.delete(place)
        },
      }
      places.add(place)
      return place
    },
    ...more,
  })
  return {
    pool,
    problems,
    started,
    alive,
    places,
    async [Symbol.asyncDispose]() {
      await pool[Symbol.asyncDispose]()
      for (const place of [...places]) await place.dispose(undefined)
      await driver[Symbol.asyncDispose]()
      dir[Symbol.dispose]()
    },
  }
}

function endedEarly(): never {
  throw new TypeError('the guest ended before it was ready')
}
