import type { CallEvent } from '../engine/call/call-event.ts'
import { CallRecord } from '../engine/call/call-record.ts'
import type { BrokerAnswer, BrokerHandler, BrokerRequest } from '../engine/call/exchange.ts'
import { refusalAnswer } from '../engine/call/guest-answer.ts'
import { CallRefusal } from '../engine/call/refusal.ts'
import type { Turn } from '../engine/turn/turn-binding.ts'

/** What a run may do. */
export interface RunGateOptions {
  readonly handler: BrokerHandler
  readonly run: Turn
  readonly maxCalls: number
  /** Request targets on which the worker reports to its desk: these are no requests of the script. */
  readonly worker: ReadonlySet<string>
  onCall?(event: CallEvent): void
}

/**
 * PC-04 and W-93: one request at a time, and so many in a run. Every request counts, whatever it is and whatever
 * becomes of it, but for the worker's own messages: a script that tries what it may not has less left for what it may.
 */
export class RunGate {
  readonly #options: RunGateOptions
  #left: number
  #working = false

  constructor(options: RunGateOptions) {
    this.#options = options
    this.#left = options.maxCalls
  }

  /** The handler for the listener. Never rejects. */
  readonly handle: BrokerHandler = async (request: BrokerRequest) => {
    if (this.#options.worker.has(request.target)) return await this.#options.handler(request)
    if (this.#options.run.signal.aborted) return this.#refused('turn_over')
    if (this.#left === 0) return this.#refused('budget_spent')
    this.#left -= 1
    if (this.#working) return this.#refused('busy', 409)
    this.#working = true
    const answer = await this.#options.handler(request)
    return {
      ...answer,
      ended: (sent) => {
        this.#working = false
        answer.ended(sent)
      },
    }
  }

  #refused(reason: 'turn_over' | 'budget_spent' | 'busy', as?: number): BrokerAnswer {
    const record = new CallRecord()
    record.turn = this.#options.run
    const answer = refusalAnswer(new CallRefusal(reason))
    const status = as ?? answer.status
    let open = true
    return {
      ...answer,
      status,
      ended: (sent) => {
        if (!open) return
        open = false
        void this.#tell(record.toEvent({ status: sent ? status : 0, reason }))
      },
    }
  }

  /** A broken observer breaks no run. */
  async #tell(event: CallEvent): Promise<void> {
    try {
      await this.#options.onCall?.(event)
    } catch {}
  }
}
