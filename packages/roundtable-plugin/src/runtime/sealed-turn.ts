import type { BoundTurn } from '@sandbox/broker'
import type { ReadyWorker, Worker } from '@sandbox/docker-worker'
import type { SealedOutcome } from '@sandbox/protocol'
import type { FreshStart } from './fresh-start.ts'
import type { HandOvers } from './hand-overs.ts'
import type { TurnPolicy } from './runtime-options.ts'
import type { TurnEnding } from './turn-ending.ts'
import type { FailureEvidence } from './turn-failure.ts'
import type { TurnSnapshot } from './turn-snapshot.ts'
import type { TurnProgress } from './turn-state.ts'
import { beforeExit, type SeatTaker, type WorkerSeat } from './worker-seat.ts'

/** An engine that hangs keeps a turn waiting no longer than this. */
const START_MS = 60_000

/** One turn on one worker: from the hand-over to an answer, and back to nothing. */
export class SealedTurnRun implements SeatTaker {
  readonly #turn: TurnSnapshot
  readonly #ending: TurnEnding
  readonly #progress: TurnProgress
  /** A worker is there; it is no longer waited for. */
  readonly #seatedInTime: () => void
  #seat: WorkerSeat | undefined
  /** Gives the workspace back. */
  leave: (() => void) | undefined
  /** Called when there will be no answer, before the turn's worker is removed. */
  readonly #onFailed: () => void
  readonly #handOvers: HandOvers
  #failure: unknown
  #delivering = false
  #answered = false
  #bound: BoundTurn | undefined

  constructor(
    turn: TurnSnapshot,
    ending: TurnEnding,
    progress: TurnProgress,
    { onFailed, handOvers }: { readonly onFailed: () => void; readonly handOvers: HandOvers },
  ) {
    this.#onFailed = onFailed
    this.#handOvers = handOvers
    this.#seatedInTime = ending.needsWorkerWithin(START_MS)
    this.#turn = turn
    this.#ending = ending
    this.#progress = progress
  }

  /** What is known when the turn fails. */
  get evidence(): FailureEvidence {
    const step = this.#delivering ? 'deliver' : (this.#seat?.step ?? 'prepare')
    return { step, ending: this.#ending, trouble: this.#seat?.watch.trouble ?? {} }
  }

  /** Why there will be no answer, where that is known before {@link answer} was called. */
  get failure(): unknown {
    return this.#failure ?? this.#ending.signal.reason
  }

  /** The scrubbed tail of what the worker wrote. */
  get output(): string {
    return this.worker?.output() ?? ''
  }

  /** The worker, once it was started. */
  get worker(): Worker | undefined {
    return this.#seat?.worker
  }

  /** The turn's worker is being started here. */
  seated(seat: WorkerSeat): void {
    this.#seat = seat
  }

  failed(error: unknown): void {
    this.#failure ??= error
    this.#onFailed()
  }

  /** Hands the turn over and waits for its outcome. Rejects when a step fails or the turn ends. */
  async answer(
    { place, worker, warm }: ReadyWorker<WorkerSeat>,
    policy: TurnPolicy,
    start: FreshStart,
  ): Promise<SealedOutcome> {
    this.#seatedInTime()
    this.#seat = place
    this.#delivering = true
    const { broker, workerId } = place
    const { signal, deadline } = this.#ending
    signal.throwIfAborted()
    const { turnId, speaker, scope, text } = this.#turn
    const bound = broker.bind({ turnId, context: scope, signal })
    this.#bound = bound
    this.#ending.spending = bound
    this.#progress.servedBy({ workerId, warm, ...(place.posture && { posture: place.posture }) })
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
      mcp: await broker.mcpSpecs({ signal }),
    }
    const handedOver = this.#handOvers.begin()
    try {
      const delivery = broker.desk.deliver(turn, { deadline, signal })
      this.#progress.enter('answering')
      const outcome = await beforeExit(delivery, worker)
      this.#answered = true
      return outcome
    } finally {
      handedOver()
    }
  }

  /**
   * Ends everything that the turn began, in this order: its signal, its calls, its worker, its socket, its
   * directory. Every step is taken whatever the others do; returns what went wrong. Never rejects. A worker that gave
   * its outcome is removed a little later when other turns are being handed over.
   */
  async settle(): Promise<unknown[]> {
    this.#seatedInTime()
    this.#ending.end('over')
    const problems: unknown[] = []
    try {
      this.#bound?.release()
    } catch (problem) {
      problems.push(problem)
    }
    if (this.#answered) await this.#handOvers.giveWay()
    problems.push(...((await this.#seat?.settle()) ?? []))
    return problems
  }
}
