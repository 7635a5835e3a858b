import { TURN_NONCE_HEADER } from '@sandbox/protocol'
import { carriesSecret } from '../reflection/scan-json.ts'
import type { Turn, TurnBinding } from '../turn/turn-binding.ts'
import { type CallEvent, CallRecord } from './call-event.ts'
import { type CallSignal, type CallSignalSources, linkCallSignal } from './call-signal.ts'
import type { LeaveSlot } from './call-slots.ts'
import type { BrokerAnswer, BrokerRequest } from './exchange.ts'
import { type GuestAnswer, jsonBytes, refusalAnswer, successAnswer } from './guest-answer.ts'
import { parseObject, readBody } from './read-body.ts'
import { CallRefusal } from './refusal.ts'
import {
  checkHeaderNames,
  checkHost,
  checkMethod,
  checkPlaceholder,
  type HeadPolicy,
  readHead,
} from './request-head.ts'
import type { CallRoute, RouteTable } from './route.ts'

/** What a broker is made of. */
export interface CallEngine {
  readonly routes: RouteTable
  /** For requests to no route: they meet the same checks first. */
  readonly fallback: HeadPolicy
  readonly turns: TurnBinding
  /** Called once per call when it has ended. A throw is swallowed. */
  onCall?(event: CallEvent): void
}

/** What is held for a call until its answer's body has gone out. */
interface Held {
  leave?: LeaveSlot
  linked?: CallSignal
}

/**
 * One call from first look to answer. The order of the checks is a rule (SB-05): a request that fails one has
 * spent nothing that a later one guards. Never rejects.
 */
export async function handleCall(engine: CallEngine, request: BrokerRequest): Promise<BrokerAnswer> {
  const record = new CallRecord()
  const held: Held = {}
  const answer = (reason: CallEvent['reason'], guest: GuestAnswer) =>
    toAnswer({ engine, record, held }, reason, guest)
  try {
    const head = readHead(request)
    const route = engine.routes.get(head.path)
    const policy = route?.policy ?? engine.fallback
    record.route = route?.kind ?? 'unknown'
    record.name = route?.name
    checkMethod(head, policy)
    checkHeaderNames(head, policy)
    checkPlaceholder(head, policy)
    checkHost(head)
    if (route === undefined) throw new CallRefusal('not_found')
    if (route.kind === 'worker') {
      const { signal } = hold(held, { guest: request.signal, limitMs: route.callMs })
      return answer('ok', successAnswer(jsonBytes(await route.run({ request, head, record, signal }))))
    }
    const turn = engine.turns.admit(head.headers.get(TURN_NONCE_HEADER))
    record.turn = turn
    const { signal } = hold(held, { turn: turn.signal, guest: request.signal, limitMs: route.callMs })
    held.leave = await turn.enterCall(signal)
    const { contentLength } = head
    const bytes = await readBody({
      body: request.body,
      contentLength,
      limitBytes: route.requestBytes,
      signal,
    })
    record.requestBytes = bytes.byteLength
    const value = await route.run({ turn, body: parseObject(bytes), signal, record })
    signal.throwIfAborted()
    return answer('ok', successAnswer(guestBytes(value, route, turn)))
  } catch (error) {
    const refusal = held.linked?.refusal() ?? toRefusal(error)
    return answer(refusal.reason, refusalAnswer(refusal))
  }
}

function hold(held: Held, sources: CallSignalSources): CallSignal {
  held.linked = linkCallSignal(sources)
  return held.linked
}

/** Nothing leaves that carries a secret which this turn has spent, in a key or a value. */
function guestBytes(value: unknown, route: CallRoute, turn: Turn): Uint8Array {
  if (carriesSecret(value, turn.matcher)) throw new CallRefusal('reflection')
  const bytes = jsonBytes(value)
  if (bytes.byteLength > route.answerBytes) throw new CallRefusal(route.unusable)
  return bytes
}

function toRefusal(error: unknown): CallRefusal {
  return error instanceof CallRefusal ? error : new CallRefusal('internal', { cause: error })
}

function toAnswer(
  { engine, record, held }: { engine: CallEngine; record: CallRecord; held: Held },
  reason: CallEvent['reason'],
  guest: GuestAnswer,
): BrokerAnswer {
  let open = true
  return {
    ...guest,
    // A refusal is sent even though, and often because, the signal has fired.
    ...(held.linked === undefined || reason !== 'ok' ? {} : { signal: held.linked.signal }),
    ended: (sent) => {
      if (!open) return
      open = false
      held.leave?.()
      // A refusal keeps its reason, also when nobody waited for the answer.
      const cut = sent || reason !== 'ok' ? undefined : held.linked?.refusal()
      held.linked?.detach()
      void report(engine, record.toEvent(endOf(guest, cut?.reason ?? reason, sent)))
    },
  }
}

function endOf(guest: GuestAnswer, reason: CallEvent['reason'], sent: boolean) {
  if (sent) return { status: guest.status, reason, answerBytes: guest.body.byteLength }
  return { status: 0, reason: reason === 'ok' ? ('aborted' as const) : reason, answerBytes: 0 }
}

/** A broken observer breaks no call, and no host. */
async function report(engine: CallEngine, event: CallEvent): Promise<void> {
  try {
    await engine.onCall?.(event)
  } catch {}
}
