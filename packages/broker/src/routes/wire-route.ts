import type { RequestHost, RequestTable } from '../engine/body-table/request-table.ts'
import { rewriteRequest } from '../engine/body-table/rewrite-request.ts'
import { ownsMemory } from '../engine/call/read-body.ts'
import { CallRefusal } from '../engine/call/refusal.ts'
import type { AdmittedCall, CallRoute } from '../engine/call/route.ts'
import type { StreamLimits } from '../engine/stream/event-answer.ts'
import { sharedAgent } from '../engine/upstream/open-upstream.ts'
import { openWithCredential } from '../engine/upstream/open-with-credential.ts'
import { passAnswer } from '../engine/upstream/pass-answer.ts'
import type { WireFamily } from '../engine/wire/family.ts'
import type { ResolvedOptions } from '../options.ts'
import { chooseUpstream, type Upstream } from '../upstream-choice.ts'

/** Largest request: what providers take. */
const REQUEST_BYTES = 32 * 1024 * 1024
/** Largest answer that is no stream: reading it as JSON must not hold up the host. */
const ANSWER_BYTES = 8 * 1024 * 1024
const BODY_IDLE_MS = 30_000

/** What is special about one of the routes. */
export interface WireRoute {
  readonly family: WireFamily
  /** What becomes of the fields of a request. */
  readonly table: (upstream: Upstream) => RequestTable
  /** Where its calls go; `undefined` when the operator gave no such place. */
  readonly endpoint: (upstream: Upstream) => URL | undefined
  readonly placeholder: string
  readonly limits: StreamLimits
}

/**
 * A route for clients that we do not write: the request's own bytes, held against a table; the upstream's own
 * bytes, searched. Several calls at once, streamed or not, for as long as the turn lasts.
 */
export function wireRoute(options: ResolvedOptions, wire: WireRoute): CallRoute {
  return {
    kind: 'model',
    name: wire.family.name,
    policy: { method: 'POST', headers: 'any', placeholder: wire.placeholder },
    requestBytes: REQUEST_BYTES,
    answerBytes: ANSWER_BYTES,
    idleMs: BODY_IDLE_MS,
    lane: 'parallel',
    errorShape: wire.family.errorBody,
    unusable: 'upstream_invalid',
    run: (call) => callWire(options, wire, call),
  }
}

/** The credential is asked for last: a payload that is refused spends none. */
async function callWire(options: ResolvedOptions, wire: WireRoute, call: AdmittedCall): Promise<unknown> {
  const { signal, record } = call
  const chosen = await chooseUpstream(options, call)
  const url = wire.endpoint(chosen)
  if (url === undefined) throw new CallRefusal('not_found')
  const request = await rewriteRequest({
    bytes: call.bytes,
    reuse: ownsMemory(call.bytes),
    table: wire.table(chosen),
    host: hostOf(options, chosen, call),
    signal,
  })
  if (!request.ok) {
    const { path, problem } = request
    throw new CallRefusal('input_refused', { problem: path === '' ? problem : `${path}: ${problem}` })
  }
  record.droppedFields = request.dropped
  record.model = chosen.model
  record.outputTokens = request.facts.outputTokens
  const upstream = await openWithCredential(call, {
    agent: sharedAgent(),
    url,
    getter: chosen.getterFor(url),
    authSlot: chosen.authSlot,
    body: request.bytes,
    accept: request.facts.stream ? 'text/event-stream' : 'application/json',
  })
  return passAnswer(call, {
    upstream,
    family: wire.family,
    answerBytes: ANSWER_BYTES,
    limits: wire.limits,
    usageAsked: request.facts.usageAsked,
  })
}

function hostOf(options: ResolvedOptions, { model }: Upstream, { turn }: AdmittedCall): RequestHost {
  const { maxOutputTokens, allowFields, setFields } = options
  return {
    model,
    maxOutputTokens,
    allowFields,
    setFields,
    ownsId: (id) => turn.created(id),
  }
}
