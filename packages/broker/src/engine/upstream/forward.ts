import { parseObject, readBody } from '../call/read-body.ts'
import { CallRefusal } from '../call/refusal.ts'
import type { UpstreamAnswer } from './open-upstream.ts'

/**
 * The JSON object of a 2xx answer. Status and body of any other answer stay here.
 * @throws CallRefusal `upstream_network`, `upstream_status`, `upstream_invalid`. Rejects with the signal's reason
 * when that fires.
 */
export async function readJson(
  answer: UpstreamAnswer,
  bounds: {
    /** Largest answer, decoded, in bytes. */
    readonly limitBytes: number
    readonly signal: AbortSignal
  },
): Promise<Record<string, unknown>> {
  try {
    if (answer.status < 200 || answer.status >= 300) throw statusRefusal(answer.status, answer.headers)
    return parseAnswer(await readAnswer(answer, bounds))
  } finally {
    answer.cancel()
  }
}

/** Longest wait that a guest is told. */
const LONGEST_WAIT_MS = 24 * 60 * 60 * 1000

/**
 * What a status other than 2xx means for a guest that does not learn it (W-45): whether the same call may work later,
 * and when the upstream says so, how much later.
 */
export function statusRefusal(status: number, headers: UpstreamAnswer['headers'] = {}): CallRefusal {
  const retry = status >= 500 || [408, 409, 429].includes(status)
  const waitMs = retry ? retryAfterMs(headers['retry-after']) : undefined
  return new CallRefusal('upstream_status', { retry, ...(waitMs !== undefined && { retryAfterMs: waitMs }) })
}

/** RFC 9110 section 5.6.7, as everybody writes it now. */
const DATE = /^[A-Z][a-z]{2}, \d{2} [A-Z][a-z]{2} \d{4} \d{2}:\d{2}:\d{2} GMT$/

/** How long an upstream asks to wait, by its `retry-after`: seconds, or a date (RFC 9110 section 10.2.3). At most a day. */
export function retryAfterMs(value: string | string[] | undefined): number | undefined {
  if (typeof value !== 'string') return undefined
  const ms = /^\d{1,9}$/.test(value)
    ? Number(value) * 1000
    : DATE.test(value)
      ? Date.parse(value) - Date.now()
      : Number.NaN
  return Number.isFinite(ms) ? Math.min(Math.max(0, ms), LONGEST_WAIT_MS) : undefined
}

/**
 * Reads a whole body.
 * @throws CallRefusal `upstream_network`, and `upstream_invalid` for one over the limit. Rejects with the signal's
 * reason when that fires.
 */
export async function readAnswer(
  { body, contentLength }: UpstreamAnswer,
  { limitBytes, signal }: { readonly limitBytes: number; readonly signal: AbortSignal },
): Promise<Uint8Array> {
  try {
    return await readBody({ body, contentLength, limitBytes, signal })
  } catch (cause) {
    signal.throwIfAborted()
    const large = cause instanceof CallRefusal && cause.reason === 'body_too_large'
    throw large
      ? new CallRefusal('upstream_invalid', { retry: false })
      : new CallRefusal('upstream_network', { cause })
  }
}

/**
 * The JSON object of an answer.
 * @throws CallRefusal `upstream_invalid`
 */
export function parseAnswer(bytes: Uint8Array): Record<string, unknown> {
  try {
    return parseObject(bytes)
  } catch {
    throw new CallRefusal('upstream_invalid')
  }
}
