import { DriverError, stopIfAborted } from '../errors.ts'
import { ChannelLock } from './container/channel-lock.ts'
import type { Worker } from './driver.ts'
import {
  type ReadyWorker,
  type ResolvedPool,
  resolvePool,
  type WarmPoolOptions,
  type WarmProblem,
  type WorkerPlace,
} from './warm-pool/pool-options.ts'
import { Spare } from './warm-pool/spare.ts'
import { StartGate } from './warm-pool/start-gate.ts'
import { backoffMs, dead, untilAborted } from './warm-pool/waits.ts'

/** Keeps workers that wait for their one turn, and starts one at once where none waits. */
export interface WarmPool<Place extends WorkerPlace, Asker = never> extends AsyncDisposable {
  /**
   * A ready worker for one turn of the channel: the one that waits, or the one that is being started, or a new one.
   * Waits until the channel's former worker is dead, since they share a workspace. Soon after the hand-over the
   * channel's next worker is started. Rejects with what `prepare`, the driver or `ready` rejected with, after the
   * place was disposed of; with `aborted`, `closed`.
   */
  acquire(
    channel: string,
    options?: { readonly signal?: AbortSignal; readonly asker?: Asker },
  ): Promise<ReadyWorker<Place>>
  /**
   * Starts a spare for the channel in the background, unless it has one. When the pool is full, the spare of the
   * channel that was used least recently goes, if it was used before this one; else nothing is started.
   */
  warm(channel: string): void
  /** The channels that have a waiting worker. */
  waiting(): readonly string[]
  /**
   * Removes the channel's spare and starts no other before the next `warm` or hand-over. Resolves when it is gone, and one
   * before it too. Never rejects.
   */
  cool(channel: string): Promise<void>
  /** Removes every spare. Workers that were handed over are their holders'. Idempotent. */
  [Symbol.asyncDispose](): Promise<void>
}

/** Makes a pool. It knows nothing of turns, brokers or credentials. Throws `options_invalid` naming the field. */
export function createWarmPool<Place extends WorkerPlace, Asker = never>(
  options: WarmPoolOptions<Place, Asker>,
): WarmPool<Place, Asker> {
  return new Pool(options, resolvePool(options))
}

class Pool<Place extends WorkerPlace, Asker> implements WarmPool<Place, Asker> {
  readonly #options: WarmPoolOptions<Place, Asker>
  readonly #numbers: ResolvedPool
  readonly #gate: StartGate
  readonly #lock = new ChannelLock()
  readonly #spares = new Map<string, Spare<Place>>()
  /** Removals under way, with their channels: what they remove still counts. */
  readonly #leaving = new Map<Promise<void>, string>()
  /** When each channel had a turn last. */
  readonly #used = new Map<string, number>()
  readonly #failures = new Map<string, number>()
  /** A refill or another try, per channel. */
  readonly #later = new Map<string, NodeJS.Timeout>()
  #clock = 0
  #closed = false

  constructor(options: WarmPoolOptions<Place, Asker>, numbers: ResolvedPool) {
    this.#options = options
    this.#numbers = numbers
    this.#gate = new StartGate(numbers.startLimit)
  }

  async acquire(
    channel: string,
    options: { readonly signal?: AbortSignal; readonly asker?: Asker } = {},
  ): Promise<ReadyWorker<Place>> {
    const { signal } = options
    if (this.#closed) throw new DriverError('closed', 'The pool was disposed.')
    this.#used.set(channel, ++this.#clock)
    const unlock = await this.#lock.take(channel, signal)
    try {
      const ready = (await this.#takeSpare(channel, signal)) ?? (await this.#startCold(channel, options))
      void dead(ready.worker, this.#numbers.retryMs).then(unlock)
      this.#failures.delete(channel)
      this.#startLater(channel, this.#numbers.refillMs, this.#numbers.idleMs)
      return ready
    } catch (error) {
      unlock()
      throw error
    }
  }

  warm(channel: string): void {
    // One that failed is tried again when its time has come, not sooner.
    if (!this.#later.has(channel)) this.#start(channel, performance.now() + this.#numbers.idleMs)
  }

  waiting(): readonly string[] {
    return [...this.#spares.values()].filter(({ waiting }) => waiting).map(({ channel }) => channel)
  }

  async cool(channel: string): Promise<void> {
    this.#forget(channel)
    this.#failures.delete(channel)
    const spare = this.#spares.get(channel)
    if (spare) void this.#discard(spare)
    // One that left a moment ago may still be there.
    await Promise.all([...this.#leaving].filter(([, of]) => of === channel).map(([gone]) => gone))
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#closed = true
    for (const channel of [...this.#later.keys()]) this.#forget(channel)
    for (const spare of [...this.#spares.values()]) void this.#discard(spare)
    await Promise.all(this.#leaving.keys())
  }

  /** The channel's spare, when it is fit. A spare that a turn is called off from stays a spare. */
  async #takeSpare(
    channel: string,
    signal: AbortSignal | undefined,
  ): Promise<ReadyWorker<Place> | undefined> {
    const spare = this.#spares.get(channel)
    if (spare === undefined) return undefined
    spare.promote()
    const ready = await untilAborted(spare.started, signal)
    if (ready === undefined || this.#spares.get(channel) !== spare) return undefined
    try {
      await untilAborted(this.#fit(spare, ready, signal), signal)
    } catch (error) {
      stopIfAborted(signal)
      // The turn gets a new worker now; the next spare follows its hand-over.
      this.#failed(spare, 'unfit', error, false)
      return undefined
    }
    if (this.#spares.get(channel) !== spare) return undefined
    this.#spares.delete(channel)
    spare.taken()
    return { ...ready, warm: true }
  }

  async #fit(
    spare: Spare<Place>,
    { place, worker }: ReadyWorker<Place>,
    signal?: AbortSignal,
  ): Promise<void> {
    const [identity] = await Promise.all([
      this.#options.driver.identity?.(signal),
      place.ready(worker, signal),
    ])
    if (identity === spare.identity) return
    throw new DriverError('image_outdated', 'The image is another one than when this worker was started.')
  }

  async #startCold(
    channel: string,
    options: { readonly signal?: AbortSignal; readonly asker?: Asker },
  ): Promise<ReadyWorker<Place>> {
    const { signal = new AbortController().signal, asker } = options
    const ticket = this.#gate.enter(channel, { urgent: true, signal })
    try {
      await ticket.entered
      return await this.#open(channel, signal, asker)
    } finally {
      ticket.leave()
    }
  }

  async #open(channel: string, signal: AbortSignal, asker?: Asker): Promise<ReadyWorker<Place>> {
    const place = await this.#options.prepare(channel, {
      signal,
      ...(asker === undefined ? {} : { asker }),
    })
    let worker: Worker | undefined
    try {
      worker = await this.#options.driver.start(place.spec, signal)
      await untilAborted(place.ready(worker, signal), signal)
      return { place, worker, warm: false }
    } catch (error) {
      await this.#clean(channel, () => place.dispose(worker))
      throw error
    }
  }

  #start(channel: string, wantedUntil: number): void {
    if (this.#closed || this.#spares.has(channel) || !this.#makeRoom(channel)) return
    const spare = new Spare<Place>(channel, wantedUntil)
    this.#spares.set(channel, spare)
    spare.started = this.#startSpare(spare)
  }

  async #startSpare(spare: Spare<Place>): Promise<ReadyWorker<Place> | undefined> {
    const { channel, signal } = spare
    let leave = () => {}
    try {
      while (this.#spares.size + this.#leaving.size > this.#numbers.workers && this.#leaving.size > 0) {
        await untilAborted(Promise.race(this.#leaving.keys()), signal)
      }
      const ticket = spare.queued((urgent) => this.#gate.enter(channel, { urgent, signal }))
      leave = ticket.leave
      await ticket.entered
      spare.identity = await this.#options.driver.identity?.(signal)
      const ready = await this.#open(channel, signal)
      if (this.#spares.get(channel) === spare) this.#watch(spare, ready)
      return ready
    } catch (error) {
      if (this.#spares.get(channel) === spare) this.#failed(spare, 'start_failed', error)
      return undefined
    } finally {
      leave()
    }
  }

  #watch(spare: Spare<Place>, ready: ReadyWorker<Place>): void {
    spare.waits(ready, () => void this.#discard(spare))
    void ready.worker.exited.then(({ reason }) => {
      if (this.#spares.get(spare.channel) !== spare) return
      this.#failed(
        spare,
        'died',
        new DriverError('start_failed', `The worker ended while it waited: ${reason}.`),
      )
    })
  }

  /** True when there is room for the channel's spare, if need be that of one which was used before it. */
  #makeRoom(channel: string): boolean {
    const { workers } = this.#numbers
    if (this.#spares.size < workers) return true
    const used = (spare: Spare<Place>) => this.#used.get(spare.channel) ?? 0
    const [oldest] = [...this.#spares.values()].toSorted((a, b) => used(a) - used(b))
    if (oldest === undefined || used(oldest) >= (this.#used.get(channel) ?? 0)) return false
    void this.#discard(oldest)
    return true
  }

  #discard(spare: Spare<Place>): Promise<void> {
    if (this.#spares.get(spare.channel) === spare) this.#spares.delete(spare.channel)
    spare.cancel()
    const gone = this.#clean(spare.channel, async () => {
      const ready = await spare.started
      await ready?.place.dispose(ready.worker)
    }).finally(() => this.#leaving.delete(gone))
    this.#leaving.set(gone, spare.channel)
    return gone
  }

  /** A spare is of no use: it goes, it is reported, and another is tried. */
  #failed(spare: Spare<Place>, what: WarmProblem['what'], error: unknown, retry = true): void {
    const { channel, wantedUntil } = spare
    void this.#discard(spare)
    const outdated = DriverError.isInstance(error) && error.code === 'image_outdated'
    const failures = outdated ? 0 : (this.#failures.get(channel) ?? 0) + 1
    this.#failures.set(channel, failures)
    const retryMs = backoffMs(this.#numbers.retryMs, failures)
    const again = retry && this.#startLater(channel, retryMs, wantedUntil - performance.now())
    this.#tell({
      channel,
      what: outdated ? 'outdated' : what,
      failures,
      ...(again ? { retryMs } : {}),
      error,
    })
  }

  /** Starts the channel's spare after a while, if it is still wanted then. */
  #startLater(channel: string, afterMs: number, wantedMs: number): boolean {
    this.#forget(channel)
    if (this.#closed || this.#numbers.workers === 0 || wantedMs <= afterMs) return false
    const wantedUntil = performance.now() + wantedMs
    const timer = setTimeout(() => {
      this.#later.delete(channel)
      this.#start(channel, wantedUntil)
    }, afterMs)
    timer.unref()
    this.#later.set(channel, timer)
    return true
  }

  #forget(channel: string): void {
    clearTimeout(this.#later.get(channel))
    this.#later.delete(channel)
  }

  async #clean(channel: string, step: () => Promise<void>): Promise<void> {
    try {
      await step()
    } catch (error) {
      this.#tell({ channel, what: 'cleanup_failed', failures: this.#failures.get(channel) ?? 0, error })
    }
  }

  #tell(problem: WarmProblem): void {
    this.#options.onProblem?.(problem)
  }
}
