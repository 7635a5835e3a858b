import type { SecretMatcher } from '@sandbox/credential-scope'
import type { CallReason } from '../call/call-event.ts'
import { jsonBytes, upstreamError } from '../call/guest-answer.ts'
import { PassedAnswer } from '../call/passed-answer.ts'
import { CallRefusal } from '../call/refusal.ts'
import type { AdmittedCall } from '../call/route.ts'
import { textCarries } from '../reflection/scan-json.ts'
import { EventAnswer, type StreamLimits } from '../stream/event-answer.ts'
import type { WireFamily } from '../wire/family.ts'
import { parseAnswer, readAnswer } from './forward.ts'
import type { UpstreamAnswer } from './open-upstream.ts'
import { passedHeaders } from './passed-headers.ts'

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

const ERROR_BYTES = 64 * 1024
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
    const value = parseAnswer(bytes)
    if (carries(bytes, matcher)) throw new CallRefusal('reflection')
    call.record.usage = options.family.usageOf(value)
    noteCreated(call, options.family.createdBy?.(value))
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

function passStream(
  call: AdmittedCall,
  { upstream, family, limits, usageAsked }: PassOptions,
  headers: Readonly<Record<string, string>>,
): PassedAnswer {
  const body = new EventAnswer({
    upstream,
    family: family.follow(),
    matcher: call.turn.matcher,
    signal: call.signal,
    limits,
    usageAsked,
    onUsage: (usage) => {
      call.record.usage = usage
    },
    onCreated: (id) => noteCreated(call, id),
    // What went out already may tell how a secret begins: there is no second try.
    onReflection: () => call.turn.close('model'),
  })
  return new PassedAnswer({ status: upstream.status, headers: { ...headers, ...STREAM_HEADERS }, body })
}

async function passError(
  { turn, signal }: AdmittedCall,
  { upstream, family }: PassOptions,
  passed: Readonly<Record<string, string>>,
): Promise<PassedAnswer> {
  const { status } = upstream
  const headers = { ...passed, ...JSON_HEADERS }
  const ours = (reason: CallReason) =>
    new PassedAnswer({ status, headers, body: jsonBytes(family.errorBody(upstreamError(status))), reason })
  if (status === 401 || status === 403) return ours('upstream_status')
  try {
    const bytes = await readAnswer(upstream, { limitBytes: ERROR_BYTES, signal })
    parseAnswer(bytes)
    if (carries(bytes, turn.matcher)) return ours('reflection')
    return new PassedAnswer({ status, headers, body: bytes, reason: 'upstream_status' })
  } catch (error) {
    signal.throwIfAborted()
    if (error instanceof CallRefusal) return ours('upstream_status')
    throw error
  }
}

/** As bytes, and as the text that they are to whoever decodes them. */
function carries(bytes: Uint8Array, matcher: SecretMatcher): boolean {
  if (matcher.matchesBytes(bytes)) return true
  const view = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  return view.includes('\\') && textCarries(view.toString('utf8'), matcher)
}

function noteCreated({ turn }: AdmittedCall, id: unknown): void {
  if (typeof id === 'string' && id !== '' && id.length <= 256) turn.noteCreated(id)
}
