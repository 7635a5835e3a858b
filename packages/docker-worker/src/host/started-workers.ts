import { DriverError, stopIfAborted } from '../errors.ts'
import { checkWorkerSpec } from '../resolve-options.ts'
import type { Worker, WorkerSpec } from './driver.ts'

/** What a driver has started and starts right now, until it is disposed. */
export class StartedWorkers {
  readonly #starting = new Map<string, Promise<Worker>>()
  readonly #workers = new Map<string, Worker>()
  #closed = false

  /** Throws `closed` after {@link close}. */
  stopIfClosed(): void {
    if (this.#closed) throw new DriverError('closed', 'The driver was disposed.')
  }

  /**
   * Admits one start: refuses it where the driver is closed, the spec is wrong or the signal has fired; else begins it,
   * and keeps what comes of it until it is {@link forget forgotten}.
   */
  async start(
    spec: WorkerSpec,
    signal: AbortSignal | undefined,
    begin: () => Promise<Worker>,
  ): Promise<Worker> {
    this.stopIfClosed()
    checkWorkerSpec(spec)
    stopIfAborted(signal)
    const starting = begin()
    this.#starting.set(spec.workerId, starting)
    try {
      const worker = await starting
      this.#workers.set(worker.id, worker)
      return worker
    } finally {
      this.#starting.delete(spec.workerId)
    }
  }

  /** True while a worker with this {@link WorkerSpec.workerId} is being started: a sweep leaves it alone. */
  starts(workerId: string): boolean {
    return this.#starting.has(workerId)
  }

  /** A worker is gone, by {@link Worker.id}. */
  forget(id: string): void {
    this.#workers.delete(id)
  }

  /** Admits no start any more, waits for those under way, and removes every worker that may still run. */
  async close(): Promise<void> {
    this.#closed = true
    await Promise.allSettled(this.#starting.values())
    await Promise.all([...this.#workers.values()].map((worker) => worker.remove()))
  }
}
