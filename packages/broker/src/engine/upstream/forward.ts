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
    if (answer.status < 200 || answer.status >= 300) throw statusRefusal(answer.status)
    return parseAnswer(await readAnswer(answer, bounds))
  } finally {
    answer.cancel()
  }
}

/** What a status other than 2xx means for a guest that does not learn it. */
export function statusRefusal(status: number): CallRefusal {
  return new CallRefusal('upstream_status', { retry: status >= 500 || [408, 409, 429].includes(status) })
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
