import type { SandboxSpeaker } from '@sandbox/credential-scope'
import type { WarmPool, WarmPoolOptions, WarmProblem } from '@sandbox/docker-worker'
import { SandboxPluginError } from '../errors.ts'
import type { ChannelKey, HostLogger } from '../host-contract.ts'
import { ChannelSlots } from './channel-slots.ts'
import { tellFailure } from './failure-words.ts'
import { FreshStarts } from './fresh-start.ts'
import { HandOvers } from './hand-overs.ts'
import { LeftoverWorkers } from './leftover-workers.ts'
import { Revocations, type RunningTurn, type SpendingScope } from './revocations.ts'
import type { TurnPolicy } from './runtime-options.ts'
import { SealedErasure } from './sealed-erasure.ts'
import { SealedLog } from './sealed-log.ts'
import { SealedTurnRun } from './sealed-turn.ts'
import { SpareWorkers } from './spare-workers.ts'
import { ReplyBound, TurnEnding, untilAborted } from './turn-ending.ts'
import { CleanupFailed, failureOfError, failureOfOutcome, type TurnFailure } from './turn-failure.ts'
import { checkChannel, snapshotTurn, type TurnSnapshot } from './turn-snapshot.ts'
import { type FailureCategory, type TurnEvent, TurnProgress } from './turn-state.ts'
import { type SeatTaker, type TurnParts, type WantedSeat, WorkerSeat } from './worker-seat.ts'
import { WorkspaceFull, WorkspaceGuard } from './workspace-guard.ts'
import { WorkspaceUse } from './workspace-use.ts'

/** What a turn came to. `text` is the answer, or fixed words of the host. */
export type TurnReply =
  | { readonly ok: true; readonly text: string }
  | { readonly ok: false; readonly text: string; readonly category: FailureCategory }

/** The pool's workers sit in {@link WorkerSeat}s; turns wait for them. */
export type SeatPool = WarmPool<WorkerSeat, SeatTaker>

/** What the runtime works with. */
export interface SealedRuntimePorts extends TurnParts {
  /** Opens the pool of waiting workers over the same driver. Called once, by the constructor. */
  openPool(parts: Pick<WarmPoolOptions<WorkerSeat, SeatTaker>, 'prepare' | 'onProblem'>): SeatPool
  /** Takes secrets out of a text for the log. */
  scrub(text: string): string
  onTurn?(event: TurnEvent): void
  readonly logger?: HostLogger
}

/** Containers and directories whose turn is over are looked for this often. */
const SWEEP_MS = 60_000

/** A reply waits for the removal of its worker no longer than this: an engine may hang. */
const REPLY_MS = 5_000

/** Runs one sealed turn per channel at a time, each on a worker of its own. */
export class SealedRuntime implements AsyncDisposable {
  readonly #ports: SealedRuntimePorts
  readonly #policy: TurnPolicy
  readonly #log: SealedLog
  readonly #slots = new ChannelSlots<RunningTurn>()
  readonly #handOvers = new HandOvers()
  readonly #fresh = new FreshStarts()
  readonly #revocations = new Revocations()
  /** Ids of the workers that a turn uses or will use. The driver's sweep reads it while it runs. */
  readonly #live = new Set<string>()
  readonly #pool: SeatPool
  readonly #spares: SpareWorkers
  readonly #workspaces: WorkspaceGuard
  readonly #uses = new WorkspaceUse()
  readonly #erasure: SealedErasure
  readonly #leftovers = new LeftoverWorkers()
  /** Turns that were replied to before everything of theirs was removed, and speakers that are being forgotten. */
  readonly #unsettled = new Set<Promise<void>>()
  readonly #lifetime = new AbortController()
  #ready: Promise<void> | undefined
  #sweeping: Promise<void> | undefined
  #timer: NodeJS.Timeout | undefined
  #closed = false
  #disposed: Promise<void> | undefined

  constructor(ports: SealedRuntimePorts, policy: TurnPolicy) {
    this.#ports = ports
    this.#policy = policy
    this.#log = new SealedLog(ports)
    const workspaces = new WorkspaceGuard({
      layout: ports.layout,
      limitBytes: policy.workspaceBytes,
      onFull: (channel, problem) => this.#tellFull(channel, problem),
    })
    this.#workspaces = workspaces
    this.#pool = ports.openPool({
      prepare: (key, { signal, asker }) => {
        const channel = key as ChannelKey
        const taker = asker && { taker: asker }
        return this.#openSeat({ channel, signal, live: this.#live, workspaces, ...taker })
      },
      onProblem: (problem) => this.#tellProblem(problem),
    })
    this.#spares = new SpareWorkers(this.#pool)
    this.#erasure = new SealedErasure({
      layout: ports.layout,
      uses: this.#uses,
      pool: this.#spares,
      leftovers: this.#leftovers,
      fresh: this.#fresh,
    })
  }

  /**
   * Checks that workers can be started, and removes what an earlier host left. Idempotent; after a rejection it
   * may be tried again. The first turn does it too.
   */
  start(): Promise<void> {
    this.#ready ??= this.#begin().catch((cause) => {
      this.#ready = undefined
      throw cause
    })
    return this.#ready
  }

  /**
   * Answers one message. Resolves with an answer or with words that say why there is none. Rejects only with
   * {@link SandboxPluginError} `closed`, `busy`, `input_invalid`, and {@link CleanupFailed} when there was an answer
   * but its worker could not be removed.
   */
  async runTurn(channel: ChannelKey, speaker: SandboxSpeaker, text: string): Promise<TurnReply> {
    if (this.#closed) throw closed()
    const turn = snapshotTurn(channel, speaker, text)
    const ending = new TurnEnding(this.#policy.turnTimeoutMs)
    const running = { channel, speakerId: turn.speaker.id, ending }
    try {
      this.#slots.take(channel, running)
    } catch (cause) {
      ending.end('over')
      throw cause
    }
    this.#revocations.admit(running)
    try {
      return await this.#run(turn, ending)
    } finally {
      this.#slots.release(channel)
    }
  }

  /**
   * Starts a worker for the channel's next turn in the background, unless one waits or the pool has no room. What goes
   * wrong is logged.
   * @throws SandboxPluginError `input_invalid`
   */
  warm(channel: ChannelKey): void {
    checkChannel(channel)
    this.#spares.warm(channel, this.start())
  }

  /** Removes the worker that waits for the channel's next turn. Resolves when it is gone; never rejects. */
  cool(channel: ChannelKey): Promise<void> {
    return this.#spares.cool(channel)
  }

  /** The channels for which a worker waits. */
  warmed(): ChannelKey[] {
    return this.#spares.waiting()
  }

  /** The channel's next turn starts without history, on a worker that starts now. Memory is kept. */
  startFresh(channel: ChannelKey): void {
    this.#fresh.request(channel)
    const wanted = this.#slots.of(channel) !== undefined || this.#spares.waiting().includes(channel)
    const gone = this.#spares.cool(channel)
    if (wanted) this.#spares.warm(channel, gone)
  }

  /**
   * Ends the channel's running turn, and removes the worker that waits for the next. True when there was a turn that
   * had no answer yet.
   */
  stop(channel: ChannelKey): boolean {
    void this.#spares.cool(channel)
    return this.#slots.of(channel)?.ending.end('stopped') ?? false
  }

  /** Takes the right to spend back; returns the channels whose turn that ended. @throws SandboxPluginError `input_invalid` */
  revoke(scope: SpendingScope): ChannelKey[] {
    return this.#revocations.revoke(scope, this.#slots.all())
  }

  /** Gives it back; false when exactly this was not taken. @throws SandboxPluginError `input_invalid` */
  restore(scope: SpendingScope): boolean {
    return this.#revocations.restore(scope)
  }

  /** Who may not spend now. */
  revoked(): SpendingScope[] {
    return this.#revocations.list()
  }

  /**
   * Ends the channel's turn, removes its workers, and erases everything that is kept of it: history, memory, files. The
   * next turn waits for that and starts anew. Rejects when something could not be removed; it may be tried again, also
   * after a crash in the middle.
   * @throws SandboxPluginError `input_invalid`, `closed`
   */
  async deleteConversation(channel: ChannelKey): Promise<void> {
    if (this.#closed) throw closed()
    await this.#erasure.channel(channel, () => this.#slots.of(channel)?.ending.end('stopped'))
  }

  /**
   * Forgets the facts of one speaker, in one channel or in all of them, between turns. Returns in how many workspaces
   * there were some.
   * @throws SandboxPluginError `input_invalid`, `closed`
   */
  async forgetSpeaker(speakerId: string, channel?: ChannelKey): Promise<number> {
    if (this.#closed) throw closed()
    const forgetting = this.#erasure.speaker(speakerId, channel)
    this.#outstanding(forgetting)
    return await forgetting
  }

  /** The channels that have a turn. */
  busy(): ChannelKey[] {
    return this.#slots.busy()
  }

  /**
   * Stops every turn, waits until all are settled, and gives everything back. Idempotent. Rejects when a worker could
   * not be removed; the roots are free then too, and another call tries again.
   */
  dispose(): Promise<void> {
    this.#closed = true
    this.#disposed ??= this.#end().catch((cause) => {
      this.#disposed = undefined
      throw cause
    })
    return this.#disposed
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.dispose()
  }

  async #run(turn: TurnSnapshot, ending: TurnEnding): Promise<TurnReply> {
    const { driver, onTurn } = this.#ports
    const { turnId, channel, speaker } = turn
    const start = this.#fresh.begin(channel)
    const progress = new TurnProgress({ turnId, channel, speaker, driver: driver.kind }, (event) =>
      onTurn?.call(this.#ports, event),
    )
    using bound = new ReplyBound(REPLY_MS)
    ending.signal.addEventListener('abort', () => bound.begin(), { once: true })
    const onFailed = () => bound.begin()
    const run = new SealedTurnRun(turn, ending, progress, { onFailed, handOvers: this.#handOvers })
    progress.enter('starting')
    const answering = this.#answer(run, channel, ending, start)
    const tooLate = bound.late.then(() => failureOfError(run.failure, run.evidence))
    const result = await Promise.race([answering, tooLate])
    if (typeof result === 'string') this.#fresh.consume(channel, start)
    progress.enter('settling')
    const settling = this.#settle(channel, run, answering)
    const late = await this.#outlasts(settling, bound)
    if (typeof result === 'string') {
      const problems = late ? [] : await settling
      progress.enter('settled', { ok: true })
      if (problems.length > 0) throw new CleanupFailed(result, problems)
      return { ok: true, text: result }
    }
    const cause = `${this.#ports.scrub(result.cause)}${late ? '; its worker is still being removed' : ''}`
    progress.enter('settled', { ok: false, category: result.category, cause })
    this.#log.failed(turn, result, cause, run.output)
    const text = tellFailure(this.#policy, result, turn)
    return { ok: false, text, category: result.category }
  }

  /** A turn has its place in the workspace already; a worker that nobody waits for needs one while it is prepared. */
  async #openSeat(wanted: WantedSeat): Promise<WorkerSeat> {
    const { channel, signal, taker } = wanted
    if (taker !== undefined) return await WorkerSeat.open(this.#ports, wanted)
    const leave = await this.#uses.enter(this.#ports.layout.workspaceOf(channel), signal)
    try {
      return await WorkerSeat.open(this.#ports, wanted)
    } finally {
      leave()
    }
  }

  async #answer(
    run: SealedTurnRun,
    channel: ChannelKey,
    ending: TurnEnding,
    start: ReturnType<FreshStarts['begin']>,
  ): Promise<string | TurnFailure> {
    try {
      run.leave = await this.#uses.enter(this.#ports.layout.workspaceOf(channel), ending.signal)
      await untilAborted(this.start(), ending.signal)
      // The next turn shares the writable workspace, so it waits until the last worker is dead.
      await untilAborted(this.#leftovers.remove(channel), ending.signal)
      await this.#workspaces.admit(channel, ending.signal)
      const ready = await this.#pool.acquire(channel, { signal: ending.signal, asker: run })
      const outcome = await run.answer(ready, this.#policy, start)
      this.#log.quarantined(channel, outcome.quarantined)
      if (outcome.ok && outcome.text.trim() !== '') return outcome.text
      return failureOfOutcome(outcome, run.evidence)
    } catch (error) {
      return failureOfError(error, run.evidence)
    }
  }

  /** Gives back what the turn had, once nothing starts any more; then its workspace is measured. */
  #settle(channel: ChannelKey, run: SealedTurnRun, answering: Promise<unknown>): Promise<unknown[]> {
    const settling = answering
      .then(() => run.settle())
      .then((problems) => {
        if (problems.length > 0) this.#leftovers.hold(channel, run.worker)
        // Not before: whoever rearranges the workspace from now on looks there for the worker.
        run.leave?.()
        if (problems.length > 0) this.#log.leftover(channel, problems)
        return problems
      })
    const { signal } = this.#lifetime
    void answering.then(() => run.worker && this.#workspaces.afterTurn(channel, settling, signal))
    return settling
  }

  /** The channel's next turn will be refused, so no worker waits for it. */
  #tellFull(channel: ChannelKey, { message }: WorkspaceFull): void {
    void this.#spares.cool(channel)
    this.#log.full(channel, message)
  }

  #tellProblem(problem: WarmProblem): void {
    const { error } = problem
    if (error instanceof WorkspaceFull) this.#tellFull(problem.channel as ChannelKey, error)
    else this.#log.spare(problem)
  }

  /**
   * Waits for the end of a turn, within a bound; true when it takes longer. Then the pool holds the
   * channel's next turn until the worker is dead, and `dispose` waits for everything.
   */
  async #outlasts(settling: Promise<readonly unknown[]>, bound: ReplyBound): Promise<boolean> {
    bound.begin()
    const late = await Promise.race([bound.late, settling.then(() => false)])
    if (!late) return false
    this.#outstanding(settling)
    return true
  }

  /** `dispose` waits for it. */
  #outstanding(work: Promise<unknown>): void {
    const over = () => void this.#unsettled.delete(done)
    const done: Promise<void> = work.then(over, over)
    this.#unsettled.add(done)
  }

  async #begin(): Promise<void> {
    if (this.#closed) throw closed()
    await this.#ports.driver.check(this.#lifetime.signal)
    await this.#sweep()
    this.#lifetime.signal.throwIfAborted()
    this.#timer = setInterval(() => this.#sweepAgain(), SWEEP_MS)
    this.#timer.unref()
  }

  async #sweep(): Promise<void> {
    const workers = await this.#ports.driver.sweep(this.#live)
    const directories = await this.#ports.layout.sweep()
    this.#log.swept(workers, directories)
  }

  #sweepAgain(): void {
    this.#sweeping ??= this.#sweep()
      .catch((error) => this.#log.sweepFailed(error))
      .finally(() => {
        this.#sweeping = undefined
      })
  }

  async #end(): Promise<void> {
    this.#lifetime.abort(closed())
    clearInterval(this.#timer)
    for (const { ending } of this.#slots.all()) ending.end('stopped')
    await this.#slots.idle()
    await Promise.all(this.#unsettled)
    await this.#workspaces.idle()
    await this.#uses.idle()
    await this.#ready?.catch(() => {})
    await this.#sweeping
    try {
      await this.#pool[Symbol.asyncDispose]()
      await this.#leftovers.removeAll()
      await this.#ports.driver[Symbol.asyncDispose]()
    } finally {
      // What is left is found again by its label, by whoever takes the run root next.
      this.#ports.layout.close()
    }
  }
}

function closed(): SandboxPluginError {
  return new SandboxPluginError('closed', 'The runtime is closed; no more turns.')
}
