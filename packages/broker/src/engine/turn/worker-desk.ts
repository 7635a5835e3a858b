import { randomBytes } from 'node:crypto'
import {
  isWorkerHello,
  PROTOCOL_VERSION,
  protocolMismatch,
  type SealedOutcome,
  type WorkerHello,
  type WorkerWelcome,
} from '@sandbox/protocol'
import { CallRefusal } from '../call/refusal.ts'
import { BrokerError } from '../errors.ts'
import type { Delivery, DeskMessages, DeskWork } from './desk-messages.ts'
import type { DeskTurn } from './sealed-messages.ts'
import { sameText } from './turn-binding.ts'
import { TurnOffer } from './turn-offer.ts'

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
  deliver(
    turn: Work,
    options: {
      /** On the clock of `performance.now()`, in milliseconds. */
      readonly deadline: number
      readonly signal?: AbortSignal
    },
  ): Promise<Outcome>
}

/** How a desk works. Times in milliseconds. */
export interface DeskOptions<Work extends DeskWork, Outcome> {
  readonly messages: DeskMessages<Work, Outcome>
  /** How long a poll is held. */
  readonly pollMs: number
  /** How long a delivered turn may stay unacknowledged. */
  readonly leaseMs: number
  /** Called once when the worker must be discarded. */
  onDiscard(): void
}

/**
 * The desk of one worker and one turn. Its host side is {@link WorkerDesk}; the other methods are what the worker
 * routes do, and refuse with {@link CallRefusal}.
 */
export class OpenDesk<Work extends DeskWork, Outcome> implements WorkerDesk<Work, Outcome> {
  readonly #options: DeskOptions<Work, Outcome>
  readonly #nonce = randomBytes(32).toString('hex')
  readonly #greeters = new Set<() => void>()
  #hello: WorkerHello | undefined
  #failure: BrokerError | undefined
  #offer: TurnOffer<Work, Outcome> | undefined
  #polling = false
  #reading = false
  #wake: (() => void) | undefined

  constructor(options: DeskOptions<Work, Outcome>) {
    this.#options = options
  }

  /** Largest result that may be handed in, in bytes. */
  get resultBytes(): number {
    return this.#options.messages.resultBytes
  }

  /** Why the worker is of no use any more; `undefined` while it is. */
  get failure(): BrokerError | undefined {
    return this.#failure
  }

  async hello(signal?: AbortSignal): Promise<WorkerHello> {
    while (this.#failure === undefined && this.#hello === undefined) {
      if (signal?.aborted) throw aborted(signal)
      await this.#greeting(signal)
    }
    if (this.#hello === undefined || this.#failure !== undefined) throw this.#failure
    return this.#hello
  }

  async deliver(
    turn: Work,
    options: { readonly deadline: number; readonly signal?: AbortSignal },
  ): Promise<Outcome> {
    if (this.#failure !== undefined) throw this.#failure
    if (this.#offer !== undefined) throw new BrokerError('already_bound', 'This worker had its turn.')
    if (options.signal?.aborted) throw aborted(options.signal)
    const offer = new TurnOffer<Work, Outcome>(this.#options.messages.checked(turn), options.deadline)
    this.#offer = offer
    const onAbort = () => offer.fail(aborted(options.signal))
    options.signal?.addEventListener('abort', onAbort)
    this.#wake?.()
    try {
      return await offer.outcome
    } finally {
      options.signal?.removeEventListener('abort', onAbort)
      this.#wake?.()
    }
  }

  /** Ends everything: waits on both sides are over. Idempotent. */
  close(): void {
    this.#end(new BrokerError('closed', 'The broker was stopped.'))
  }

  /** Whether a hello may still come: before its body is read. A second one discards the worker. */
  expectHello(): void {
    if (this.#failure !== undefined) throw new CallRefusal('worker_over')
    if (this.#hello === undefined) return
    this.#discard(new BrokerError('second_hello', 'A second hello arrived: the worker is discarded.'))
    throw new CallRefusal('second_hello')
  }

  /** Takes the worker's first message; `undefined` stands for a body that could not be read. */
  takeHello(body: Record<string, unknown> | undefined): WorkerWelcome {
    this.expectHello()
    const version = body?.protocol
    if (Number.isSafeInteger(version) && version !== PROTOCOL_VERSION) {
      const protocol = version as number
      this.#discard(new BrokerError('protocol_mismatch', protocolMismatch(protocol)))
      throw new CallRefusal('protocol_mismatch', { protocol })
    }
    if (!isWorkerHello(body) || body.mode !== this.#options.messages.mode) {
      this.#discard(new BrokerError('hello_invalid', 'The first message of the worker was no valid hello.'))
      throw new CallRefusal('hello_invalid')
    }
    this.#hello = { protocol: body.protocol, mode: body.mode, posture: body.posture }
    this.#greet()
    return { protocol: PROTOCOL_VERSION, workerNonce: this.#nonce }
  }

  /** Every worker route but hello: is this the worker, and is it still wanted? */
  checkNonce(given: string | undefined): void {
    if (this.#failure !== undefined) throw new CallRefusal('worker_over')
    if (this.#hello === undefined || !sameText(given ?? '', this.#nonce)) {
      throw new CallRefusal('worker_refused')
    }
  }

  /** Waits for a turn to hand out. One waiter at a time. */
  async next(signal: AbortSignal): Promise<Work & Delivery> {
    if (this.#polling) throw new CallRefusal('busy')
    this.#polling = true
    const endMs = performance.now() + this.#options.pollMs
    try {
      for (;;) {
        const turn = this.#tryTake()
        if (turn !== undefined) return turn
        const leftMs = endMs - performance.now()
        if (leftMs <= 0) throw new CallRefusal('no_turn')
        await this.#change(
          Math.min(leftMs, this.#offer?.leaseLeftMs(this.#options.leaseMs) ?? leftMs),
          signal,
        )
      }
    } finally {
      this.#polling = false
    }
  }

  /** The worker has the turn: it is not handed out again. */
  acknowledge(turnId: unknown): void {
    if (this.#offer?.acknowledge(turnId) !== true) throw new CallRefusal('turn_unknown')
    this.#wake?.()
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
  takeResult(body: Record<string, unknown>): void {
    const result = this.#options.messages.readResult(body)
    if (result === undefined) throw new CallRefusal('body_invalid')
    if (this.#offer?.settle(result.turnId, result.result) !== true) throw new CallRefusal('result_refused')
  }

  #tryTake(): (Work & Delivery) | undefined {
    if (this.#failure !== undefined || this.#offer?.signal.aborted) throw new CallRefusal('worker_over')
    if (this.#offer?.acknowledged) throw new CallRefusal('turn_taken')
    return this.#offer?.take(this.#options.leaseMs)
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

  #greeting(signal: AbortSignal | undefined): Promise<void> {
    return new Promise((resolve) => {
      const end = () => {
        signal?.removeEventListener('abort', end)
        this.#greeters.delete(end)
        resolve()
      }
      signal?.addEventListener('abort', end)
      this.#greeters.add(end)
    })
  }

  #greet(): void {
    for (const wake of [...this.#greeters]) wake()
  }

  #discard(failure: BrokerError): void {
    if (this.#end(failure)) this.#options.onDiscard()
  }

  #end(failure: BrokerError): boolean {
    if (this.#failure !== undefined) return false
    this.#failure = failure
    this.#offer?.fail(failure)
    this.#greet()
    this.#wake?.()
    return true
  }
}

function aborted(signal: AbortSignal | undefined): BrokerError {
  return new BrokerError('aborted', 'The wait was aborted.', { cause: signal?.reason })
}
