import { randomBytes } from 'node:crypto'
import type { PrecheckBroker, PrecheckOptions, PrecheckRun } from '@sandbox/broker/mcp'
import type { Driver, Worker } from '@sandbox/docker-worker'
import type { PrecheckOutcome } from '@sandbox/protocol'
import type { TurnEnding } from '../runtime/turn-ending.ts'
import { PostureRefused } from '../runtime/turn-failure.ts'
import { beforeExit } from '../runtime/worker-seat.ts'
import type { RunPlace, RunPlaces } from './run-places.ts'
import type { RunQueue } from './run-queue.ts'

/** What a run works with. */
export interface PrecheckParts {
  readonly places: RunPlaces
  readonly queue: RunQueue
  readonly driver: Driver
  /** Opens the broker of one run, once the schedule's tools were granted. */
  openBroker(
    options: Pick<PrecheckOptions, 'context' | 'signal' | 'grant' | 'approved'>,
  ): Promise<PrecheckBroker>
}

/** What was at work last. */
export type PrecheckStep = 'prepare' | 'wait' | 'grant' | 'start' | 'hello' | 'verify' | 'deliver'

/** What is asked of a run, before its tools are known. */
export interface PrecheckOrder extends Pick<PrecheckOptions, 'context' | 'grant' | 'approved'> {
  readonly job: Omit<PrecheckRun, 'servers'>
}

/** One script in one worker: from the directories to an outcome, and back to nothing. */
export class PrecheckAttempt {
  readonly workerId = randomBytes(8).toString('hex')
  readonly #parts: PrecheckParts
  readonly #ending: TurnEnding
  #step: PrecheckStep = 'prepare'
  #entered = false
  #place: RunPlace | undefined
  #broker: PrecheckBroker | undefined
  #worker: Worker | undefined

  constructor(parts: PrecheckParts, ending: TurnEnding) {
    this.#parts = parts
    this.#ending = ending
  }

  /** What was at work last. */
  get step(): PrecheckStep {
    return this.#step
  }

  /** The worker, once it was started. */
  get worker(): Worker | undefined {
    return this.#worker
  }

  /** Waits for a place, starts a worker, hands the script over and waits for what it decides. Rejects when a step fails or the run ends. */
  async outcome({ job, context, grant, approved }: PrecheckOrder): Promise<PrecheckOutcome> {
    const { places, queue, driver } = this.#parts
    const { signal, deadline } = this.#ending
    this.#step = 'wait'
    await queue.enter(signal)
    this.#entered = true
    this.#step = 'prepare'
    this.#place = await places.open()
    this.#step = 'grant'
    this.#broker = await this.#parts.openBroker({ context, signal, grant, approved })
    const { desk, servers } = this.#broker
    this.#step = 'start'
    await this.#broker.listen(this.#place.socketPath, places.user)
    const worker = await driver.start(this.#spec(this.#place), signal)
    this.#worker = worker
    this.#step = 'hello'
    const { posture } = await beforeExit(desk.hello(signal), worker)
    this.#step = 'verify'
    const differences = driver.verify(posture)
    if (differences.length > 0) throw new PostureRefused(differences)
    this.#step = 'deliver'
    const tools = servers.map((one) => ({ server: one.server, tools: [...one.tools] }))
    return await beforeExit(desk.deliver({ ...job, servers: tools }, { deadline, signal }), worker)
  }

  /**
   * Ends everything that the run began: its signal and calls, its worker, its socket, its directories, its place. Every step is
   * taken whatever the others do; returns what went wrong. Never rejects.
   */
  async settle(): Promise<unknown[]> {
    this.#ending.end('over')
    const problems: unknown[] = []
    for (const step of [
      () => this.#worker?.remove(),
      () => this.#broker?.stop(true),
      () => this.#place?.dispose(),
      () => this.#entered && this.#parts.queue.leave(),
    ]) {
      try {
        await step()
      } catch (problem) {
        problems.push(problem)
      }
    }
    return problems
  }

  #spec({ runHash, runDir, workspaceDir }: RunPlace) {
    const { workerId } = this
    return {
      workerId,
      channelHash: runHash,
      epoch: 'prechecks',
      runDir,
      workspaceDir,
      workspaceReadOnly: true,
    }
  }
}
