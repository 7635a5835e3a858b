import { randomBytes } from 'node:crypto'
import { setTimeout as delay } from 'node:timers/promises'
import type { CallEvent } from '@sandbox/broker'
import type { Worker, WorkerExit, WorkerSpec } from '@sandbox/docker-worker'
import type { Posture } from '@sandbox/protocol'
import type { ChannelKey } from '../host-contract.ts'
import { CallWatch } from './failure-words.ts'
import type { ResolvedPiProfile } from './pi-policy.ts'
import type { PiBrokerPort, PiRuntimePorts } from './pi-ports.ts'
import { untilAborted } from './turn-ending.ts'
import { PostureRefused, WorkerEnded } from './turn-failure.ts'
import type { WorkspaceGuard } from './workspace-guard.ts'
import type { PreparedWorker } from './workspace-layout.ts'

/** The part of a start that is at work. */
export type SeatStep = 'prepare' | 'broker' | 'start' | 'hello' | 'verify' | 'ready'

/** A result that was posted just before the worker ended may still be on its way through the event loop. */
const EXIT_GRACE_MS = 200

/** What a {@link PiSeat} is made for. */
export interface PiSeatOptions {
  readonly channel: ChannelKey
  readonly profile: ResolvedPiProfile
  /** Ids of the workers that are not to be swept away. */
  readonly live: Set<string>
  readonly workspaces: Pick<WorkspaceGuard, 'check'>
}

/** Directories, a broker on its socket, and the worker that sits there for one turn after the other. */
export class PiSeat {
  readonly #ports: PiRuntimePorts
  readonly #options: PiSeatOptions
  /** 16 lower-case hex digits. */
  readonly workerId = randomBytes(8).toString('hex')
  readonly #gone = new AbortController()
  #step: SeatStep = 'prepare'
  #prepared: PreparedWorker | undefined
  #broker: PiBrokerPort | undefined
  #worker: Worker | undefined
  #posture: Posture | undefined
  #identity: string | undefined
  #exit: WorkerExit | undefined
  #opened = false
  #removed = false
  #watched: { readonly turnId: string; readonly watch: CallWatch; onMissing(): void } | undefined
  #settling: Promise<unknown[]> | undefined

  constructor(ports: PiRuntimePorts, options: PiSeatOptions) {
    this.#ports = ports
    this.#options = options
  }

  /** What was at work last. */
  get step(): SeatStep {
    return this.#step
  }

  get profile(): ResolvedPiProfile {
    return this.#options.profile
  }

  /** Only after {@link open}. */
  get broker(): PiBrokerPort {
    return this.#broker as PiBrokerPort
  }

  /** Fires when the worker has ended, with a {@link WorkerEnded}. */
  get gone(): AbortSignal {
    return this.#gone.signal
  }

  /** What the driver said that the worker was started from; absent where workers cannot be outdated. */
  get identity(): string | undefined {
    return this.#identity
  }

  /** What the worker found about itself, once the driver has compared it with its profile. */
  get posture(): Posture | undefined {
    return this.#posture
  }

  /** The scrubbed tail of what the worker wrote. */
  get output(): string {
    return this.#worker?.output() ?? ''
  }

  /** True when no worker of this seat can run any more. */
  get dead(): boolean {
    return this.#removed || this.#worker === undefined
  }

  /** What the signs of life say; `over` also when the worker ended. */
  get state(): PiBrokerPort['desk']['state'] {
    if (this.#exit !== undefined || this.#settling !== undefined) return 'over'
    return this.#opened ? this.broker.desk.state : 'starting'
  }

  /** True when a turn can be handed to its worker. */
  get usable(): boolean {
    const { state } = this
    return state === 'ready' || state === 'working'
  }

  /**
   * Makes the directories, opens the broker, starts the worker, and waits until its agent is loaded. Rejects when a step
   * fails, when the worker ends first, or when the signal fires; then {@link settle} is due.
   */
  async open(signal: AbortSignal): Promise<void> {
    const { layout, driver } = this.#ports
    const { channel, profile, live, workspaces } = this.#options
    live.add(this.workerId)
    this.#prepared = await layout.prepare(channel)
    await workspaces.check(channel, signal)
    signal.throwIfAborted()
    this.#step = 'broker'
    this.#broker = this.#ports.openBroker(profile, (event) => this.#saw(event))
    await this.#broker.listen(this.#prepared.socketPath, layout.user)
    signal.throwIfAborted()
    this.#step = 'start'
    this.#identity = await driver.identity?.(signal)
    this.#worker = await driver.start(this.#spec(), signal)
    void this.#watchExit(this.#worker)
    await this.#greet(signal)
    this.#opened = true
  }

  /**
   * Follows the model calls of one turn from now on, in place of those of the turn before. `onMissing` is called when
   * there is no credential for the turn's scope.
   */
  watch(turnId: string, onMissing: () => void): CallWatch {
    const watch = new CallWatch()
    this.#watched = { turnId, watch, onMissing }
    return watch
  }

  /**
   * Removes the worker by its id, the socket and the run directory, in this order. Every step is taken whatever the
   * others do; returns what went wrong. Never rejects; a call during another joins it, a later one tries again.
   */
  settle(): Promise<unknown[]> {
    this.#settling ??= this.#settle().then((problems) => {
      if (problems.length > 0) this.#settling = undefined
      return problems
    })
    return this.#settling
  }

  #spec(): WorkerSpec {
    const { channelHash, runDir, workspaceDir } = this.#prepared as PreparedWorker
    return { workerId: this.workerId, channelHash, epoch: this.#ports.layout.epoch, runDir, workspaceDir }
  }

  async #greet(signal: AbortSignal): Promise<void> {
    this.#step = 'hello'
    const { posture } = await untilAborted(this.broker.desk.hello(signal), this.gone)
    this.#step = 'verify'
    const differences = this.#ports.driver.verify(posture)
    if (differences.length > 0) throw new PostureRefused(differences)
    this.#posture = posture
    this.#step = 'ready'
    await untilAborted(this.broker.desk.ready(signal), this.gone)
  }

  async #watchExit(worker: Worker): Promise<void> {
    const exit = await worker.exited
    this.#exit = exit
    await delay(EXIT_GRACE_MS, undefined, { ref: false })
    this.#gone.abort(new WorkerEnded(exit))
  }

  #saw(event: CallEvent): void {
    const watched = this.#watched
    if (watched === undefined || event.turnId !== watched.turnId) return
    watched.watch.saw(event)
    if (watched.watch.trouble.credential === 'missing') watched.onMissing()
  }

  async #settle(): Promise<unknown[]> {
    const problems: unknown[] = []
    const steps = [
      async () => {
        await this.#worker?.remove()
        this.#removed = true
      },
      () => this.#broker?.stop(true),
      () => this.#prepared?.dispose(),
    ]
    for (const step of steps) {
      try {
        await step()
      } catch (problem) {
        problems.push(problem)
      }
    }
    // A worker that could not be removed may be swept away: it has no use any more.
    this.#options.live.delete(this.workerId)
    return problems
  }
}
