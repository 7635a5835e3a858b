import type { Turn } from '../turn/turn-binding.ts'
import type { CallReason } from './call-event.ts'
import type { CallRecord } from './call-record.ts'
import type { CallLane } from './call-slots.ts'
import type { BrokerRequest } from './exchange.ts'
import type { ErrorShape } from './guest-answer.ts'
import type { PassedAnswer } from './passed-answer.ts'
import type { HeadPolicy, RequestHead } from './request-head.ts'

/** A call that passed every check before its body, and that body. */
export interface AdmittedCall {
  /** Whose call it is. Held from admission to the end, whatever is bound meanwhile. */
  readonly turn: Turn
  /** What the checks have seen. No header of it is forwarded but by the route's own list. */
  readonly head: RequestHead
  /** As the guest sent it; `parseObject` reads it. */
  readonly bytes: Uint8Array
  /** Fires when the turn ends, the guest leaves, or the call's time is over. */
  readonly signal: AbortSignal
  /** What the host will learn. */
  readonly record: CallRecord
}

/** A kind of call that reaches something outside the container. */
export interface CallRoute {
  readonly kind: 'model' | 'tool' | 'mcp'
  /** The tool's or server's name. */
  readonly name?: string
  readonly policy: HeadPolicy
  readonly requestBytes: number
  readonly answerBytes: number
  /** Total time of a call, waiting in line included, in milliseconds; omitted = as long as the turn. */
  readonly callMs?: number
  /** Longest silence while the body arrives, in milliseconds; omitted = `callMs` is the only bound. */
  readonly idleMs?: number
  /** Which line of the turn its calls stand in. Omitted = `single`. */
  readonly lane?: CallLane
  /** What its refusals look like. Omitted = `{ "error": { "code", "message" } }`. */
  readonly errorShape?: ErrorShape
  /** The reason of an answer over `answerBytes`, or one that is no JSON. */
  readonly unusable: Exclude<CallReason, 'ok'>
  /**
   * Does the call. The JSON value that it returns is scanned and bounded before the guest gets it; a
   * {@link PassedAnswer} goes out as it is, so what made it has scanned it.
   */
  run(call: AdmittedCall): Promise<unknown>
}

/** A message of a worker to its desk. */
export interface WorkerCall {
  readonly request: BrokerRequest
  readonly head: RequestHead
  readonly record: CallRecord
  /** Fires when the guest leaves or the message's time is over. */
  readonly signal: AbortSignal
}

/** A route on which a worker reports. Needs no turn and no budget. */
export interface WorkerRoute {
  readonly kind: 'worker'
  readonly name: string
  readonly policy: HeadPolicy
  /** Total time of a message, in milliseconds. */
  readonly callMs: number
  /** Answers with the JSON value that it returns, or with a {@link PassedAnswer} as it is. */
  run(call: WorkerCall): Promise<unknown>
}

/** Routes by exact, undecoded path. A map, so that `constructor` is no route. */
export type RouteTable = ReadonlyMap<string, CallRoute | WorkerRoute>
