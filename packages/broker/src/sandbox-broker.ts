import { randomUUID } from 'node:crypto'
import type { TurnInput } from './engine/turn/turn-binding.ts'
import type { BrokerOptions } from './options.ts'
import { openBroker, type SealedBroker } from './sealed-broker.ts'

/** Options of {@link SandboxBroker}. */
export interface SandboxBrokerOptions extends BrokerOptions {
  /** Whose turn it is; copied at construction. The turn ends when `signal` fires. */
  readonly context: TurnInput['context'] & { readonly signal: AbortSignal }
}

/**
 * A broker that has its one turn from the start and no worker: for programs that make a broker per turn and run
 * something of their own against it. Its calls need no turn nonce, since nothing else can be meant; there are no
 * worker routes. New programs use `openSealedBroker`.
 */
export class SandboxBroker implements AsyncDisposable {
  readonly #broker: SealedBroker

  /** @throws BrokerError `options_invalid`, `turn_invalid`; CredentialError `scope_invalid`. */
  constructor(options: SandboxBrokerOptions) {
    const { context } = options
    this.#broker = openBroker(options, { worker: false })
    this.#broker.bind({ turnId: randomUUID(), context, signal: context.signal })
  }

  /** Answers one request without a socket. Never rejects. */
  handle(request: Request): Promise<Response> {
    return this.#broker.handle(request)
  }

  /** Opens a socket, mode 0600. Rejects as {@link SealedBroker.listen} does. */
  listen(socketPath: string): Promise<void> {
    return this.#broker.listen(socketPath)
  }

  /** Ends the turn and closes the socket; see {@link SealedBroker.stop}. */
  stop(force = true): Promise<void> {
    return this.#broker.stop(force)
  }

  /** As `stop()`. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.stop()
  }
}
