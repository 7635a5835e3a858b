import type { PiProgress, SealedOutcome, WorkerHello, WorkerWelcome } from '@sandbox/protocol'
import { inPieces, type Pieces } from '../call/in-pieces.ts'
import { CallRefusal } from '../call/refusal.ts'
import { BrokerError } from '../errors.ts'
import type { Delivery, DeskMessages, DeskWork } from './desk-messages.ts'
import type { DeskTurn } from './sealed-messages.ts'
import { TurnOffer } from './turn-offer.ts'
import { aborted, WorkerEntry } from './worker-entry.ts'
import { WorkerPresence } from './worker-presence.ts'

/** How a turn is handed to a worker. */
export interface DeliverOptions {
  /** On the clock of `performance.now()`, in milliseconds. */
  readonly deadline: number
  readonly signal?: AbortSignal
  /** Called with pieces of the answer as it grows; some may be missing. A throw is swallowed. */
  onProgress?(piece: PiProgress): void
}

/** Where one worker reports, fetches its turn and hands in its result. */
export interface WorkerDesk<Work extends DeskWork = DeskTurn, Outcome = SealedOutcome> {
  /**
   * Waits for the worker's hello; the same answer for every caller. Rejects with {@link BrokerError} codes
   * `protocol_mismatch`, `hello_invalid`, `second_hello`, `aborted`, `closed`. There is no time limit but the
   * signal.
   */
  hello(signal?: AbortSignal): Promise<WorkerHello>
  /**
   * Offers a turn to the worker and waits for its result. Nothing but the signal, `stop` and a second hello
   * ends the wait: the deadline only becomes the turn's `remainingMs`. Rejects with {@link BrokerError} codes
   * `turn_invalid` (nothing was offered), `already_bound` (this desk had its turn), `second_hello`,
   * `aborted`, `closed`.
   */
  deliver(turn: Work, options: DeliverOptions): Promise<Outcome>
}

/**
 * What a worker does now, as far as its host can know. `starting`: it has not asked for a turn yet; `ready`: it
 * waits for one; `working`: a turn is on the desk; `silent`: no sign of life for too long; `over`: discarded, or the
 * broker was stopped.
 */
export type DeskState = 'starting' | 'ready' | 'working' | 'silent' | 'over'

/** The desk of a worker that lives for many turns, one after another. */
export interface LastingDesk<Work extends DeskWork, Outcome> extends WorkerDesk<Work, Outcome> {
  readonly state: DeskState
  /** Waits until the worker asks for a turn for the first time. Rejects as `hello` does. */
  ready(signal?: AbortSignal): Promise<void>
  /**
   * As {@link WorkerDesk.deliver}, again and again. Rejects with `worker_busy` while another turn is on the desk, and
   * with `worker_lost` when the worker gives no sign of life for too long.
   */
  deliver(turn: Work, options: DeliverOptions): Promise<Outcome>
}

/** How a desk works. Times in milliseconds. */
export interface DeskOptions<Work extends DeskWork, Outcome> {
  readonly messages: DeskMessages<Work, Outcome>
  /** How long a poll is held. */
  readonly pollMs: number
  /** How long a delivered turn may stay unacknowledged. */
  readonly leaseMs: number
  /** For a worker of many turns: how long it may give no sign of life. Omitted = the worker has one turn. */
  readonly silenceMs?: number
  /** What the answer to its hello says besides the nonce. Omitted = nothing. */
  welcome?(): object
  /** Called once when the worker must be discarded. */
  onDiscard(): void
}

/**
 * The desk of one worker, for one turn or for many. Its host side is {@link WorkerDesk} or {@link LastingDesk}; the
 * other methods are what the worker routes do, and refuse with {@link CallRefusal}.
 */
export class OpenDesk<Work extends DeskWork, Outcome> implements LastingDesk<Work, Outcome> {
  readonly #options: DeskOptions<Work, Outcome>
  readonly #entry: WorkerEntry
  /** Only of a worker that lives for many turns. */
  readonly #presence: WorkerPresence | undefined
  #offer: TurnOffer<Work, Outcome> | undefined
  #taking = false
  #polling = false
  #reading = false
  #wake: (() => void) | undefined

  constructor(options: DeskOptions<Work, Outcome>) {
    const { messages, silenceMs } = options
    this.#options = options
    this.#presence = silenceMs === undefined ? undefined : new WorkerPresence({ silenceMs })
    this.#entry = new WorkerEntry({
      mode: messages.mode,
      ...(options.welcome === undefined ? {} : { welcome: options.welcome }),
      onEnd: (failure, discarded) => {
        this.#offer?.fail(failure)
        this.#wake?.()
        if (discarded) options.onDiscard()
      },
    })
  }

  /** Largest result that may be handed in, in bytes. */
  get resultBytes(): number {
    return this.#options.messages.resultBytes
  }

  /** Why the worker is of no use any more; `undefined` while it is. */
  get failure(): BrokerError | undefined {
    return this.#entry.failure
  }

  get state(): DeskState {
    if (this.failure !== undefined) return 'over'
    if (this.#presence?.polled !== true) return 'starting'
    if (this.#presence.leftMs <= 0) return 'silent'
    return this.#offer === undefined || this.#offer.signal.aborted ? 'ready' : 'working'
  }

  hello(signal?: AbortSignal): Promise<WorkerHello> {
    return this.#entry.until(() => this.#entry.greeting, signal)
  }

  async ready(signal?: AbortSignal): Promise<void> {
    await this.#entry.until(() => (this.#presence?.polled === true ? true : undefined), signal)
  }

  async deliver(turn: Work, options: DeliverOptions): Promise<Outcome> {
    if (this.failure !== undefined) throw this.failure
    this.#checkFree()
    if (options.signal?.aborted) throw aborted(options.signal)
    const { messages } = this.#options
    const pieces = messages.checkedPieces?.(turn)
    const checked = pieces === undefined ? messages.checked(turn) : await this.#taken(pieces, options.signal)
    const offer = new TurnOffer<Work, Outcome>(checked, options)
    this.#offer = offer
    const onAbort = () => offer.fail(aborted(options.signal))
    options.signal?.addEventListener('abort', onAbort)
    const unwatch = this.#presence?.watch(() => {
      offer.fail(new BrokerError('worker_lost', 'The worker has given no sign of life for too long.'))
    })
    this.#wake?.()
    try {
      return await offer.outcome
    } finally {
      unwatch?.()
      options.signal?.removeEventListener('abort', onAbort)
      this.#wake?.()
    }
  }

  /** Ends everything: waits on both sides are over. Idempotent. */
  close(): void {
    this.#entry.close()
  }

  /** Whether a hello may still come: before its body is read. A second one discards the worker. */
  expectHello(): void {
    this.#entry.expectHello()
  }

  /** Takes the worker's first message; `undefined` stands for a body that could not be read. */
  takeHello(body: Record<string, unknown> | undefined): WorkerWelcome {
    return this.#entry.takeHello(body)
  }

  /** Every worker route but hello: is this the worker, and is it still wanted? It is a sign of life. */
  checkNonce(given: string | undefined): void {
    this.#entry.checkNonce(given)
    this.#presence?.seen()
  }

  /** Waits for a turn to hand out. One waiter at a time. */
  async next(signal: AbortSignal): Promise<Work & Delivery> {
    if (this.#polling) throw new CallRefusal('busy')
    this.#polling = true
    this.#presence?.hold(true)
    this.#entry.wake()
    const endMs = performance.now() + this.#options.pollMs
    try {
      for (;;) {
        const turn = this.#tryTake()
        if (turn !== undefined) return turn
        const leftMs = endMs - performance.now()
        if (leftMs <= 0) throw new CallRefusal('no_turn')
        const lease = this.#openOffer()?.leaseLeftMs(this.#options.leaseMs)
        await this.#change(Math.min(leftMs, lease ?? leftMs), signal)
      }
    } finally {
      this.#polling = false
      this.#presence?.hold(false)
    }
  }

  /** What a poll is answered with. */
  written(delivery: Work & Delivery): unknown {
    return this.#options.messages.written?.(delivery) ?? delivery
  }

  /** The worker has the turn: it is not handed out again. */
  acknowledge(turnId: unknown): void {
    if (this.#offer?.acknowledge(turnId) !== true) throw new CallRefusal('turn_unknown')
    this.#wake?.()
  }

  /** Whether a turn is still wanted that the worker says it works on. */
  isWanted(turnId: unknown): boolean {
    return this.#offer?.awaitsResult === true && this.#offer.turnId === turnId
  }

  /** Passes a piece of the answer on. One that comes too late is dropped. */
  takeProgress(piece: PiProgress): void {
    if (!this.isWanted(piece.turnId)) throw new CallRefusal('result_refused')
    this.#offer?.tell(piece)
  }

  /** Before a result's body is read. The signal fires when the result is no longer wanted. */
  beginResult(): { readonly signal: AbortSignal; end(): void } {
    if (this.#offer?.awaitsResult !== true) throw new CallRefusal('result_refused')
    if (this.#reading) throw new CallRefusal('busy')
    this.#reading = true
    return {
      signal: this.#offer.signal,
      end: () => {
        this.#reading = false
      },
    }
  }

  /** Takes the worker's result. A body of a wrong shape leaves the turn pending. */
  async takeResult(body: Record<string, unknown>, signal: AbortSignal): Promise<void> {
    const { messages } = this.#options
    const pieces = messages.resultPieces?.(body)
    const result = pieces === undefined ? messages.readResult(body) : await inPieces(pieces, signal)
    if (result === undefined) throw new CallRefusal('body_invalid')
    if (this.#offer?.settle(result.turnId, result.result) !== true) throw new CallRefusal('result_refused')
  }

  /** The copy that is offered. Meanwhile the desk is taken, and may be closed. */
  async #taken(pieces: Pieces<Work>, signal: AbortSignal | undefined): Promise<Work> {
    this.#taking = true
    try {
      const checked = await inPieces(pieces, NEVER)
      if (this.failure !== undefined) throw this.failure
      if (signal?.aborted) throw aborted(signal)
      return checked
    } finally {
      this.#taking = false
    }
  }

  #checkFree(): void {
    if (this.#taking) throw busy()
    if (this.#offer === undefined) return
    if (this.#presence === undefined) throw new BrokerError('already_bound', 'This worker had its turn.')
    if (!this.#offer.signal.aborted) throw busy()
  }

  /** The turn on the desk; one that is settled is on the desk no more. */
  #openOffer(): TurnOffer<Work, Outcome> | undefined {
    return this.#offer?.signal.aborted ? undefined : this.#offer
  }

  #tryTake(): (Work & Delivery) | undefined {
    const isOver = this.#presence === undefined && this.#offer?.signal.aborted === true
    if (this.failure !== undefined || isOver) throw new CallRefusal('worker_over')
    const offer = this.#openOffer()
    if (offer?.acknowledged) throw new CallRefusal('turn_taken')
    return offer?.take(this.#options.leaseMs)
  }

  /** Waits until something changed, the time is over, or the signal fires: then it rejects. */
  #change(ms: number, signal: AbortSignal): Promise<void> {
    return new Promise((resolve, reject) => {
      const end = () => {
        clearTimeout(timer)
        signal.removeEventListener('abort', end)
        this.#wake = undefined
        if (signal.aborted) reject(signal.reason)
        else resolve()
      }
      const timer = setTimeout(end, Math.ceil(ms))
      signal.addEventListener('abort', end)
      this.#wake = end
      if (signal.aborted) end()
    })
  }
}

const NEVER = new AbortController().signal

function busy(): BrokerError {
  return new BrokerError('worker_busy', 'Worker is busy with another turn.')
}
