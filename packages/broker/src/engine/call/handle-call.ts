import { TURN_NONCE_HEADER } from '@sandbox/protocol'
import { largeCarriesSecret } from '../reflection/scan-json.ts'
import type { Turn, TurnBinding } from '../turn/turn-binding.ts'
import type { BodyLease, BodyShare } from './body-budget.ts'
import type { CallEvent, CallReason, ReceiptSink } from './call-event.ts'
import { CallRecord } from './call-record.ts'
import { type CallSignal, type CallSignalSources, linkCallSignal } from './call-signal.ts'
import type { LeaveSlot } from './call-slots.ts'
import type { CallCredit } from './credit.ts'
import type { AnswerStream, BrokerAnswer, BrokerRequest } from './exchange.ts'
import { causeWords, type FailureSink, loggedWords } from './failure-words.ts'
import { type ErrorShape, type GuestAnswer, jsonBytes, refusalAnswer, successAnswer } from './guest-answer.ts'
import { PassedAnswer } from './passed-answer.ts'
import { readBody } from './read-body.ts'
import { CallRefusal } from './refusal.ts'
import {
  checkHeaderNames,
  checkHost,
  checkMethod,
  checkPlaceholder,
  type HeadPolicy,
  type RequestHead,
  readHead,
} from './request-head.ts'
import type { CallRoute, RouteTable } from './route.ts'
import type { TokenBucket } from './token-bucket.ts'

/** What a broker is made of. */
export interface CallEngine {
  readonly routes: RouteTable
  /** For requests to no route: they meet the same checks first. */
  readonly fallback: HeadPolicy
  readonly turns: TurnBinding
  /** The memory that request bodies are read into. Omitted = without limit. */
  readonly bodies?: BodyShare
  /** Longest time from the first look at a body to its end, in milliseconds. Omitted = 60 s. */
  readonly bodyMs?: number
  /** For requests that spend nothing of a turn. Omitted = as many as come. */
  readonly cheap?: TokenBucket
  /** The host's accounts. Omitted = every call may be made. */
  readonly credit?: CallCredit
  /** Gets the receipts of credentials. A throw is swallowed. */
  readonly onReceipt?: ReceiptSink
  /** Called once per call when it has ended. A throw is swallowed. */
  onCall?(event: CallEvent): void
  /** Called after `onCall` for a call that failed, when somebody said why. A throw is swallowed. */
  readonly onFailure?: FailureSink
}

/** Longest time for a body, however it drips: on a socket of this machine, 32 MiB take less than a second. */
export const BODY_MS = 60_000

/** What is held for a call until its answer's body has gone out. */
interface Held {
  leave?: LeaveSlot
  linked?: CallSignal
  /** Gone as soon as the request has been sent on, or is over. */
  memory?: BodyLease
}

/**
 * One call from first look to answer. The order of the checks is a rule (SB-05): a request that fails one has
 * spent nothing that a later one guards. Never rejects.
 */
export async function handleCall(engine: CallEngine, request: BrokerRequest): Promise<BrokerAnswer> {
  const record = new CallRecord()
  record.keepsWords = engine.onFailure !== undefined
  const held: Held = {}
  const answer = (reason: Ending, guest: GuestAnswer | PassedAnswer) =>
    toAnswer({ engine, record, held }, reason, guest)
  let shape: ErrorShape | undefined
  try {
    const head = readHead(request)
    const route = engine.routes.get(head.path)
    const policy = route?.policy ?? engine.fallback
    record.route = route?.kind ?? 'unknown'
    record.name = route?.name
    if (route?.kind !== 'worker') shape = route?.errorShape
    checkMethod(head, policy)
    checkHeaderNames(head, policy)
    checkPlaceholder(head, policy)
    checkHost(head, policy)
    if (route === undefined || route.kind === 'worker') checkPace(engine)
    if (route === undefined) throw new CallRefusal('not_found')
    if (route.kind === 'worker') {
      const { signal } = hold(held, { guest: request.signal, limitMs: route.callMs })
      const value = await route.run({ request, head, record, signal })
      return value instanceof PassedAnswer
        ? answer(value, value)
        : answer('ok', successAnswer(jsonBytes(value)))
    }
    const turn = engine.turns.admit(head.headers.get(TURN_NONCE_HEADER))
    record.turn = turn
    record.credit = engine.credit
    record.onReceipt = engine.onReceipt
    turn.checkOpen(route.kind)
    const { signal } = hold(held, {
      turn: turn.signal,
      guest: request.signal,
      ...(route.callMs !== undefined && { limitMs: route.callMs }),
    })
    held.leave = await turn.enterCall(signal, route.lane)
    const bytes = await readCall(engine, request, { head, route, record, signal, held })
    // What closes routes may have come while this call stood in line.
    turn.checkOpen(route.kind)
    const value = await route.run({ turn, head, bytes, signal, record })
    held.memory?.release()
    signal.throwIfAborted()
    if (value instanceof PassedAnswer) return answer(value, value)
    return answer('ok', successAnswer(await guestBytes(value, { route, turn, signal })))
  } catch (error) {
    held.memory?.release()
    const refusal = held.linked?.refusal() ?? toRefusal(error)
    record.problem ??= refusal.problem
    if (record.keepsWords) record.words ??= causeWords(refusal.cause)
    return answer(refusal.reason, refusalAnswer(refusal, shape))
  }
}

function checkPace({ cheap }: CallEngine): void {
  if (cheap !== undefined && cheap.take() > 0) throw new CallRefusal('too_fast')
}

/** Waits for the memory that the body needs, as announced or as its route allows, and then reads it. */
async function readCall(
  { bodies, bodyMs = BODY_MS }: CallEngine,
  { body }: BrokerRequest,
  call: { head: RequestHead; route: CallRoute; record: CallRecord; signal: AbortSignal; held: Held },
): Promise<Uint8Array> {
  const { head, route, record, signal, held } = call
  const { requestBytes: limitBytes, idleMs } = route
  const { contentLength } = head
  if (contentLength !== undefined && contentLength > limitBytes) {
    throw new CallRefusal('body_too_large', { limitBytes })
  }
  if (bodies !== undefined) held.memory = await bodies.reserve(contentLength ?? limitBytes, signal)
  const bounds = { contentLength, limitBytes, ...(idleMs && { idleMs }), wholeMs: bodyMs, signal }
  const bytes = await readBody({ body, ...bounds })
  record.requestBytes = bytes.byteLength
  held.memory?.shrink(bytes.byteLength)
  return bytes
}

function hold(held: Held, sources: CallSignalSources): CallSignal {
  held.linked = linkCallSignal(sources)
  return held.linked
}

/** Nothing leaves that carries a secret which this turn has spent, in a key or a value. */
async function guestBytes(
  value: unknown,
  { route, turn, signal }: { route: CallRoute; turn: Turn; signal: AbortSignal },
): Promise<Uint8Array> {
  if (await largeCarriesSecret(value, turn.matcher, signal)) throw new CallRefusal('reflection')
  const bytes = jsonBytes(value)
  if (bytes.byteLength > route.answerBytes) throw new CallRefusal(route.unusable)
  return bytes
}

function toRefusal(error: unknown): CallRefusal {
  return error instanceof CallRefusal ? error : new CallRefusal('internal', { cause: error })
}

/** Why a call ended; an answer that is still on its way says so when it is asked. */
type Ending = CallReason | { readonly reason: CallReason }

function toAnswer(
  { engine, record, held }: { engine: CallEngine; record: CallRecord; held: Held },
  ending: Ending,
  guest: GuestAnswer | PassedAnswer,
): BrokerAnswer {
  const reason = () => (typeof ending === 'string' ? ending : ending.reason)
  const refused = typeof ending === 'string' && ending !== 'ok'
  const body = counted(guest.body, record)
  let open = true
  return {
    status: guest.status,
    headers: guest.headers,
    body,
    // A refusal is sent even though, and often because, the signal has fired.
    ...(held.linked === undefined || refused ? {} : { signal: held.linked.signal }),
    ended: (sent) => {
      if (!open) return
      open = false
      held.leave?.()
      // A refusal keeps its reason, also when nobody waited for the answer.
      const cut = sent || refused ? undefined : held.linked?.refusal()
      held.linked?.detach()
      if (body instanceof Uint8Array && sent) record.answerBytes = body.byteLength
      const status = sent || record.answerBytes > 0 ? guest.status : 0
      const last = cut?.reason ?? reason()
      const event = record.toEvent({ status, reason: last === 'ok' && !sent ? 'aborted' : last })
      void settle(record, event)
      void report(engine, event, record)
    },
  }
}

/** Notes when the first byte is there, and of a stream how much went out. */
function counted(body: Uint8Array | AnswerStream, record: CallRecord): Uint8Array | AnswerStream {
  if (!(body instanceof Uint8Array)) {
    record.streamed = true
    return countedStream(body, record)
  }
  record.started()
  return body
}

async function* countedStream(body: AnswerStream, record: CallRecord): AnswerStream {
  for await (const chunk of body) {
    record.started()
    record.answerBytes += chunk.byteLength
    yield chunk
  }
}

/** Also when the accounts answered only after the call had ended. */
async function settle({ reserved }: CallRecord, event: CallEvent): Promise<void> {
  try {
    const answer = await reserved
    if (answer?.granted === true) await answer.settle?.(event)
  } catch {}
}

/** A broken observer breaks no call, and no host. */
async function report(engine: CallEngine, event: CallEvent, { words, turn }: CallRecord): Promise<void> {
  try {
    await engine.onCall?.(event)
  } catch {}
  if (words === undefined || event.reason === 'ok') return
  try {
    await engine.onFailure?.(event, loggedWords(words, turn?.secrets ?? []))
  } catch {}
}
