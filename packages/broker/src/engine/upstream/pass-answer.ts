import type { CallReason } from '../call/call-event.ts'
import type { CallRecord } from '../call/call-record.ts'
import { bodyWords } from '../call/failure-words.ts'
import { jsonBytes, upstreamError } from '../call/guest-answer.ts'
import { PassedAnswer } from '../call/passed-answer.ts'
import { CallRefusal } from '../call/refusal.ts'
import type { AdmittedCall } from '../call/route.ts'
import { bytesCarry, largeBytesCarry } from '../reflection/scan-json.ts'
import { EventAnswer, type StreamLimits } from '../stream/event-answer.ts'
import type { Turn } from '../turn/turn-binding.ts'
import type { WireFamily } from '../wire/family.ts'
import { parseAnswer, readAnswer } from './forward.ts'
import type { UpstreamAnswer } from './open-upstream.ts'
import { passedHeaders } from './passed-headers.ts'
import { readFields } from './read-fields.ts'

/** How an answer is passed on. */
export interface PassOptions {
  readonly upstream: UpstreamAnswer
  readonly family: WireFamily
  /** Largest answer that is no stream, in bytes. */
  readonly answerBytes: number
  readonly limits: StreamLimits
  /** Whether the guest asked for token counts in the stream; when not, an event that only tells them is kept back. */
  readonly usageAsked: boolean
}

/** What is looked at in an answer. */
const FACTS: ReadonlySet<string> = new Set(['id', 'usage'])
const ERROR_BYTES = 64 * 1024
/** Answers up to this size are searched at once. */
const SMALL_BYTES = 64 * 1024
const JSON_HEADERS = { 'content-type': 'application/json' }
const STREAM_HEADERS = { 'content-type': 'text/event-stream; charset=utf-8', 'cache-control': 'no-cache' }

/**
 * Passes an upstream's answer on in its own bytes, searched for every secret that the turn has spent: JSON as a
 * whole, a stream event by event, an error with its status. What an upstream says about a refused credential
 * is replaced.
 * @throws CallRefusal `upstream_network`, `upstream_invalid`, `reflection`. Rejects with the signal's reason when
 * that fires.
 */
export async function passAnswer(call: AdmittedCall, options: PassOptions): Promise<PassedAnswer> {
  const { upstream } = options
  const { matcher } = call.turn
  const headers = passedHeaders(upstream.headers, matcher)
  const ok = upstream.status >= 200 && upstream.status < 300
  if (ok && isEventStream(upstream)) return passStream(call, options, headers)
  try {
    if (!ok) return await passError(call, options, headers)
    const bytes = await readAnswer(upstream, { limitBytes: options.answerBytes, signal: call.signal })
    const carries =
      bytes.byteLength <= SMALL_BYTES
        ? bytesCarry(bytes, matcher)
        : await largeBytesCarry(bytes, matcher, call.signal)
    if (carries) throw new CallRefusal('reflection')
    const { family } = options
    const { keptItems } = family
    const facts = await readFields(bytes, {
      names: FACTS,
      ...(keptItems && { idsOf: keptItems }),
      signal: call.signal,
    })
    call.record.usage = family.usageOf(facts.found)
    if (keptItems !== undefined) for (const id of [facts.found.id, ...facts.ids]) noteCreated(call.turn, id)
    return new PassedAnswer({
      status: upstream.status,
      headers: { ...headers, ...JSON_HEADERS },
      body: bytes,
    })
  } finally {
    upstream.cancel()
  }
}

function isEventStream({ headers }: UpstreamAnswer): boolean {
  return /^text\/event-stream\s*(;|$)/i.test(String(headers['content-type'] ?? ''))
}

/** What lives as long as the stream must not keep the call, and with it the request's body. */
function passStream(
  { turn, record, signal }: AdmittedCall,
  { upstream, family, limits, usageAsked }: PassOptions,
  headers: Readonly<Record<string, string>>,
): PassedAnswer {
  const body = new EventAnswer({
    upstream,
    family: family.follow(),
    matcher: turn.matcher,
    signal,
    limits,
    usageAsked,
    onUsage: (usage) => {
      record.usage = usage
    },
    onCreated: (id) => noteCreated(turn, id),
    onFailed: (data) => noteWords(record, data),
    // What went out already may tell how a secret begins: there is no second try.
    onReflection: () => turn.close('model'),
  })
  return new PassedAnswer({ status: upstream.status, headers: { ...headers, ...STREAM_HEADERS }, body })
}

async function passError(
  { turn, record, signal }: AdmittedCall,
  { upstream, family }: PassOptions,
  passed: Readonly<Record<string, string>>,
): Promise<PassedAnswer> {
  const { status } = upstream
  const headers = { ...passed, ...JSON_HEADERS }
  const ours = (reason: CallReason) =>
    new PassedAnswer({ status, headers, body: jsonBytes(family.errorBody(upstreamError(status))), reason })
  const refused = status === 401 || status === 403
  if (refused && !record.keepsWords) return ours('upstream_status')
  try {
    const bytes = await readAnswer(upstream, { limitBytes: ERROR_BYTES, signal })
    noteWords(record, bytes)
    if (refused) return ours('upstream_status')
    parseAnswer(bytes)
    if (bytesCarry(bytes, turn.matcher)) return ours('reflection')
    return new PassedAnswer({ status, headers, body: bytes, reason: 'upstream_status' })
  } catch (error) {
    signal.throwIfAborted()
    if (error instanceof CallRefusal) return ours('upstream_status')
    throw error
  }
}

/** T30: what a guest does not read, or not all of, is for the host's log. */
function noteWords(record: CallRecord, bytes: Uint8Array): void {
  if (record.keepsWords) record.words = bodyWords(bytes)
}

function noteCreated(turn: Turn, id: unknown): void {
  if (typeof id === 'string') turn.noteCreated(id)
}
