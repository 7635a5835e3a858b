import { setTimeout as delay } from 'node:timers/promises'
import type { BoundTurn, CallEvent, SealedBroker } from '@sandbox/broker'
import type { Driver, Worker } from '@sandbox/docker-worker'
import type { SealedOutcome } from '@sandbox/protocol'
import { CallWatch } from './failure-words.ts'
import type { FreshStart } from './fresh-start.ts'
import type { TurnPolicy } from './runtime-options.ts'
import type { TurnEnding } from './turn-ending.ts'
import { type FailureEvidence, PostureRefused, type TurnStep, WorkerEnded } from './turn-failure.ts'
import type { TurnSnapshot } from './turn-snapshot.ts'
import type { TurnProgress } from './turn-state.ts'
import type { PreparedWorker, WorkspaceLayout } from './workspace-layout.ts'

/** What a turn is made with. */
export interface TurnParts {
  readonly layout: WorkspaceLayout
  readonly driver: Driver
  /** Opens the broker of one worker; `onCall` hears of each of its calls. */
  openBroker(onCall: (event: CallEvent) => void): SealedBroker
}

/** A result that was posted just before the worker ended may still be on its way through the event loop. */
const EXIT_GRACE_MS = 200

/** One turn on one worker: from an empty directory to an answer, and back to nothing. */
export class SealedTurnRun {
  readonly #parts: TurnParts
  readonly #turn: TurnSnapshot
  readonly #ending: TurnEnding
  readonly #progress: TurnProgress
  readonly #watch = new CallWatch()
  #step: TurnStep = 'prepare'
  #prepared: PreparedWorker | undefined
  #broker: SealedBroker | undefined
  #worker: Worker | undefined
  #bound: BoundTurn | undefined

  constructor(parts: TurnParts, turn: TurnSnapshot, ending: TurnEnding, progress: TurnProgress) {
    this.#parts = parts
    this.#turn = turn
    this.#ending = ending
    this.#progress = progress
  }

  /** What is known when the turn fails. */
  get evidence(): FailureEvidence {
    return { step: this.#step, ending: this.#ending, trouble: this.#watch.trouble }
  }

  /** The scrubbed tail of what the worker wrote. */
  get output(): string {
    return this.#worker?.output() ?? ''
  }

  /** The worker, once it was started. */
  get worker(): Worker | undefined {
    return this.#worker
  }

  /** Runs the turn up to its outcome. Rejects when a step fails or the turn ends; call {@link settle} either way. */
  async answer(policy: TurnPolicy, start: FreshStart): Promise<SealedOutcome> {
    const { signal, deadline } = this.#ending
    const broker = await this.#open()
    const worker = await this.#start()
    this.#step = 'hello'
    const { posture } = await beforeExit(broker.desk.hello(signal), worker)
    this.#step = 'verify'
    const differences = this.#parts.driver.verify(posture)
    if (differences.length > 0) throw new PostureRefused(differences)
    this.#step = 'deliver'
    const { turnId, channel, speaker, text } = this.#turn
    const bound = broker.bind({ turnId, context: { channel, speaker }, signal })
    this.#bound = bound
    this.#progress.enter('bound')
    const turn = {
      turnId,
      nonce: bound.nonce,
      text,
      speaker: { ...speaker },
      model: policy.model,
      ...(policy.prompt === undefined ? {} : { prompt: policy.prompt }),
      timeZone: policy.timeZone,
      reset: start.reset,
      tools: [...broker.toolSpecs],
      mcp: [],
    }
    const outcome = broker.desk.deliver(turn, { deadline, signal })
    this.#progress.enter('answering')
    return await beforeExit(outcome, worker)
  }

  async #open(): Promise<SealedBroker> {
    const { layout } = this.#parts
    this.#prepared = await layout.prepare(this.#turn.channel)
    this.#ending.signal.throwIfAborted()
    this.#step = 'broker'
    this.#broker = this.#parts.openBroker((event) => this.#watch.saw(event))
    await this.#broker.listen(this.#prepared.socketPath, layout.user)
    this.#ending.signal.throwIfAborted()
    return this.#broker
  }

  async #start(): Promise<Worker> {
    const { driver, layout } = this.#parts
    const { channelHash, runDir, workspaceDir } = this.#prepared as PreparedWorker
    this.#step = 'start'
    const { workerId } = this.#turn
    const spec = { workerId, channelHash, epoch: layout.epoch, runDir, workspaceDir }
    this.#worker = await driver.start(spec, this.#ending.signal)
    return this.#worker
  }

  /**
   * Ends everything that the turn began, in this order: its signal, its calls, its worker, its socket, its
   * directory. Every step is taken whatever the others do; returns what went wrong. Never rejects.
   */
  async settle(): Promise<unknown[]> {
    const problems: unknown[] = []
    const attempt = async (step: () => unknown) => {
      try {
        await step()
      } catch (problem) {
        problems.push(problem)
      }
    }
    this.#ending.end('over')
    await attempt(() => this.#bound?.release())
    await attempt(() => this.#worker?.remove())
    await attempt(() => this.#broker?.stop(true))
    await attempt(() => this.#prepared?.dispose())
    return problems
  }
}

async function beforeExit<T>(work: Promise<T>, worker: Worker): Promise<T> {
  const ended = worker.exited.then(async (exit) => {
    await delay(EXIT_GRACE_MS, undefined, { ref: false })
    throw new WorkerEnded(exit)
  })
  ended.catch(() => {})
  work.catch(() => {})
  return await Promise.race([work, ended])
}
