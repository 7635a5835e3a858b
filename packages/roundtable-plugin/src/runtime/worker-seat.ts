import { randomBytes } from 'node:crypto'
import { setTimeout as delay } from 'node:timers/promises'
import type { CallEvent, SealedBroker } from '@sandbox/broker'
import type { Driver, Worker, WorkerPlace, WorkerSpec } from '@sandbox/docker-worker'
import type { Posture } from '@sandbox/protocol'
import type { ChannelKey } from '../host-contract.ts'
import { CallWatch } from './failure-words.ts'
import { PostureRefused, type TurnStep, WorkerEnded } from './turn-failure.ts'
import type { WorkspaceGuard } from './workspace-guard.ts'
import type { PreparedWorker, WorkspaceLayout } from './workspace-layout.ts'

/** What a worker is started with. */
export interface TurnParts {
  readonly layout: WorkspaceLayout
  readonly driver: Driver
  /** Opens the broker of one worker; `onCall` hears of each of its calls. */
  openBroker(onCall: (event: CallEvent) => void): SealedBroker
}

/** A turn that waits for a worker: it hears of the seat before there is one in it. */
export interface SeatTaker {
  seated(seat: WorkerSeat): void
  /** The worker in it is of no use: there will be no answer, though its removal may take a while. */
  failed(error: unknown): void
}

/** What a seat is opened for. */
export interface WantedSeat {
  readonly channel: ChannelKey
  readonly signal: AbortSignal
  /** Ids of workers that are not to be swept away. */
  readonly live: Set<string>
  readonly workspaces: Pick<WorkspaceGuard, 'check'>
  /** Absent for a worker that nobody waits for yet. */
  readonly taker?: SeatTaker
}

/** A result that was posted just before the worker ended may still be on its way through the event loop. */
const EXIT_GRACE_MS = 200

/** Directories, a broker on its socket, and the worker that sits there: for one turn, which may not be known yet. */
export class WorkerSeat implements WorkerPlace {
  readonly #parts: TurnParts
  readonly #wanted: WantedSeat
  /** 16 lower-case hex digits. */
  readonly workerId = randomBytes(8).toString('hex')
  readonly watch = new CallWatch()
  #step: TurnStep = 'prepare'
  #prepared: PreparedWorker | undefined
  #broker: SealedBroker | undefined
  #worker: Worker | undefined
  #posture: Posture | undefined
  #settled: Promise<unknown[]> | undefined

  private constructor(parts: TurnParts, wanted: WantedSeat) {
    this.#parts = parts
    this.#wanted = wanted
  }

  /** Makes the directories and opens the broker. Leaves nothing behind when it rejects. */
  static async open(parts: TurnParts, wanted: WantedSeat): Promise<WorkerSeat> {
    const seat = new WorkerSeat(parts, wanted)
    wanted.taker?.seated(seat)
    try {
      await seat.#open()
      return seat
    } catch (error) {
      await seat.settle()
      throw error
    }
  }

  /** What was at work last. */
  get step(): TurnStep {
    return this.#step
  }

  get spec(): WorkerSpec {
    const { channelHash, runDir, workspaceDir } = this.#prepared as PreparedWorker
    const { epoch } = this.#parts.layout
    return { workerId: this.workerId, channelHash, epoch, runDir, workspaceDir }
  }

  get broker(): SealedBroker {
    return this.#broker as SealedBroker
  }

  /** The worker, once it was started. */
  get worker(): Worker | undefined {
    return this.#worker
  }

  /** What the worker found about itself, once the driver has compared it with its profile. */
  get posture(): Posture | undefined {
    return this.#posture
  }

  /** The worker said hello, once, and what it found about itself fits the profile. */
  async ready(worker: Worker, signal?: AbortSignal): Promise<void> {
    this.#worker = worker
    try {
      this.#step = 'hello'
      const { posture } = await beforeExit(this.broker.desk.hello(signal), worker)
      this.#step = 'verify'
      const differences = this.#parts.driver.verify(posture)
      if (differences.length > 0) throw new PostureRefused(differences)
      this.#posture = posture
    } catch (error) {
      this.#wanted.taker?.failed(error)
      throw error
    }
  }

  async dispose(worker: Worker | undefined): Promise<void> {
    this.#worker ??= worker
    const problems = await this.settle()
    if (problems.length > 0) throw new AggregateError(problems, String((problems[0] as Error)?.message))
  }

  /**
   * Removes the worker, the socket and the directory, in this order. Every step is taken whatever the others do;
   * returns what went wrong. Never rejects; a second call joins the first.
   */
  settle(): Promise<unknown[]> {
    this.#settled ??= this.#settle()
    return this.#settled
  }

  async #open(): Promise<void> {
    const { layout } = this.#parts
    const { channel, signal, live, workspaces } = this.#wanted
    live.add(this.workerId)
    this.#prepared = await layout.prepare(channel)
    await workspaces.check(channel, signal)
    signal.throwIfAborted()
    this.#step = 'broker'
    this.#broker = this.#parts.openBroker((event) => this.watch.saw(event))
    await this.#broker.listen(this.#prepared.socketPath, layout.user)
    signal.throwIfAborted()
    this.#step = 'start'
  }

  async #settle(): Promise<unknown[]> {
    const problems: unknown[] = []
    for (const step of [
      () => this.#worker?.remove(),
      () => this.#broker?.stop(true),
      () => this.#prepared?.dispose(),
    ]) {
      try {
        await step()
      } catch (problem) {
        problems.push(problem)
      }
    }
    this.#wanted.live.delete(this.workerId)
    return problems
  }
}

/** Waits for `work`; rejects with {@link WorkerEnded} when the worker ends first. */
export async function beforeExit<T>(work: Promise<T>, worker: Worker): Promise<T> {
  const ended = worker.exited.then(async (exit) => {
    await delay(EXIT_GRACE_MS, undefined, { ref: false })
    throw new WorkerEnded(exit)
  })
  ended.catch(() => {})
  work.catch(() => {})
  return await Promise.race([work, ended])
}
