import { randomBytes } from 'node:crypto'
import {
  isWorkerHello,
  PROTOCOL_VERSION,
  protocolMismatch,
  type WorkerHello,
  type WorkerWelcome,
} from '@sandbox/protocol'
import { CallRefusal } from '../call/refusal.ts'
import { BrokerError } from '../errors.ts'
import { sameText } from './turn-binding.ts'

/** How a worker is let in. */
export interface EntryOptions {
  readonly mode: WorkerHello['mode']
  /** What the answer to its hello says besides the nonce. Omitted = nothing. */
  welcome?(): object
  /** Called once when the worker is of no use any more. `discarded`: it must be removed. */
  onEnd(failure: BrokerError, discarded: boolean): void
}

/** Lets one worker in: its hello, its nonce, and why it is of no use any more. */
export class WorkerEntry {
  readonly #options: EntryOptions
  readonly #nonce = randomBytes(32).toString('hex')
  readonly #waiting = new Set<() => void>()
  #hello: WorkerHello | undefined
  #failure: BrokerError | undefined

  constructor(options: EntryOptions) {
    this.#options = options
  }

  /** Why the worker is of no use any more; `undefined` while it is. */
  get failure(): BrokerError | undefined {
    return this.#failure
  }

  /** Its hello, once it said it. */
  get greeting(): WorkerHello | undefined {
    return this.#hello
  }

  /** Waits until `found` answers something. Rejects with the failure, and `aborted`. */
  async until<T>(found: () => T | undefined, signal: AbortSignal | undefined): Promise<T> {
    for (;;) {
      if (this.#failure !== undefined) throw this.#failure
      const value = found()
      if (value !== undefined) return value
      if (signal?.aborted) throw aborted(signal)
      await this.#change(signal)
    }
  }

  /** Makes every waiter look again. */
  wake(): void {
    for (const wake of [...this.#waiting]) wake()
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
    if (!isWorkerHello(body) || body.mode !== this.#options.mode) {
      this.#discard(new BrokerError('hello_invalid', 'The first message of the worker was no valid hello.'))
      throw new CallRefusal('hello_invalid')
    }
    this.#hello = { protocol: body.protocol, mode: body.mode, posture: body.posture }
    this.wake()
    return { protocol: PROTOCOL_VERSION, workerNonce: this.#nonce, ...this.#options.welcome?.() }
  }

  /** Every worker route but hello: is this the worker, and is it still wanted? */
  checkNonce(given: string | undefined): void {
    if (this.#failure !== undefined) throw new CallRefusal('worker_over')
    if (this.#hello === undefined || !sameText(given ?? '', this.#nonce)) {
      throw new CallRefusal('worker_refused')
    }
  }

  /** Ends everything: waits on both sides are over. Idempotent. */
  close(): void {
    this.#end(new BrokerError('closed', 'The broker was stopped.'), false)
  }

  #discard(failure: BrokerError): void {
    this.#end(failure, true)
  }

  #end(failure: BrokerError, discarded: boolean): void {
    if (this.#failure !== undefined) return
    this.#failure = failure
    this.wake()
    this.#options.onEnd(failure, discarded)
  }

  #change(signal: AbortSignal | undefined): Promise<void> {
    return new Promise((resolve) => {
      const end = () => {
        signal?.removeEventListener('abort', end)
        this.#waiting.delete(end)
        resolve()
      }
      signal?.addEventListener('abort', end)
      this.#waiting.add(end)
    })
  }
}

/** What a wait rejects with whose signal fired. */
export function aborted(signal: AbortSignal | undefined): BrokerError {
  return new BrokerError('aborted', 'The wait was cancelled.', { cause: signal?.reason })
}
