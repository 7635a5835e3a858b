import { protocolMismatch } from '@sandbox/protocol'
import type { WireError } from '../wire/family.ts'
import type { CallReason } from './call-event.ts'
import type { CallRefusal } from './refusal.ts'

/** A refusal as the guest sees it. */
interface RefusalRow {
  readonly status: number
  /** Machine-readable. Several reasons share one: the guest learns less than the host. */
  readonly code: string
  readonly message: string
  /** Whether the same request may work later. */
  readonly retry?: boolean
}

const over: RefusalRow = { status: 410, code: 'turn_over', message: 'There is no such turn, or it is over.' }
const failed: RefusalRow = { status: 502, code: 'call_failed', message: 'The call failed.' }
const upstream: RefusalRow = {
  status: 502,
  code: 'upstream_failed',
  message: 'The upstream service did not give a usable answer.',
}

/**
 * Every text that a guest can read from a broker, and there is no other: no scope, no name, no URL, no text of
 * an error or of an upstream.
 */
const REFUSALS: Readonly<Record<Exclude<CallReason, 'ok'>, RefusalRow>> = {
  request_invalid: { status: 400, code: 'request_invalid', message: 'This is no valid request.' },
  not_found: { status: 404, code: 'not_found', message: 'There is no such route.' },
  header_refused: { status: 403, code: 'header_refused', message: 'A header is not allowed here.' },
  credential_refused: {
    status: 403,
    code: 'credential_refused',
    message: 'Only the placeholder credential is allowed here.',
  },
  host_refused: { status: 403, code: 'host_refused', message: 'The host header must be "broker".' },
  turn_over: over,
  nonce_refused: over,
  aborted: over,
  busy: { status: 429, code: 'busy', message: 'Too many calls at once.', retry: true },
  too_fast: { status: 429, code: 'too_fast', message: 'Too many messages in a short time.', retry: true },
  budget_spent: { status: 429, code: 'budget_spent', message: 'This turn has no calls left.' },
  credit_spent: {
    status: 402,
    code: 'credit_spent',
    message: 'There is no credit left for this channel and speaker.',
  },
  credit_error: failed,
  body_too_large: { status: 413, code: 'body_too_large', message: 'The body is too large.' },
  body_invalid: { status: 400, code: 'body_invalid', message: 'The body must be a JSON object.' },
  input_refused: { status: 400, code: 'input_refused', message: 'The body has a field that is not allowed.' },
  mcp_refused: {
    status: 403,
    code: 'mcp_refused',
    message: 'Only tools/call of a listed tool, with an object of arguments, is allowed here.',
  },
  credential_missing: {
    status: 502,
    code: 'no_credential',
    message: 'There is no credential for this channel and speaker.',
  },
  credential_error: failed,
  credential_invalid: failed,
  // By these words the Pi agent knows a stream that broke from one that must not be asked for again.
  upstream_network: {
    ...upstream,
    message: 'Connection closed before the upstream service gave a usable answer.',
    retry: true,
  },
  upstream_redirect: upstream,
  upstream_status: upstream,
  upstream_error: upstream,
  upstream_invalid: { ...upstream, retry: true },
  reflection: failed,
  route_closed: {
    status: 403,
    code: 'route_closed',
    message: 'This route is closed for the rest of the turn.',
  },
  revoked: { status: 403, code: 'revoked', message: 'This turn may make no more calls.' },
  endpoint_invalid: failed,
  tool_failed: { status: 502, code: 'tool_failed', message: 'The tool failed.' },
  timeout: { status: 502, code: 'timeout', message: 'The call took too long.', retry: true },
  internal: failed,
  worker_refused: { status: 403, code: 'worker_refused', message: 'The worker nonce is missing or wrong.' },
  hello_invalid: { status: 400, code: 'hello_invalid', message: 'This is no valid hello.' },
  protocol_mismatch: { status: 426, code: 'protocol_mismatch', message: '' },
  second_hello: { status: 409, code: 'second_hello', message: 'A worker says hello once.' },
  worker_over: { status: 410, code: 'worker_over', message: 'The host is done with this worker.' },
  no_turn: { status: 408, code: 'no_turn', message: 'There is no turn yet.', retry: true },
  turn_taken: { status: 409, code: 'turn_taken', message: 'The turn was already taken.' },
  turn_unknown: { status: 409, code: 'turn_unknown', message: 'There is no such turn.' },
  result_refused: { status: 409, code: 'result_refused', message: 'No result of this turn is awaited.' },
}

/** Status, headers and body that the guest gets. */
export interface GuestAnswer {
  readonly status: number
  readonly headers: Readonly<Record<string, string>>
  readonly body: Uint8Array
}

/** Puts a refusal into the shape that a route's clients read. */
export type ErrorShape = (error: WireError) => object

/** `{ "error": { "code", "message" } }`. */
const shortShape: ErrorShape = ({ code, message }) => ({ error: { code, message } })

const encoder = new TextEncoder()
const JSON_HEADERS: Readonly<Record<string, string>> = { 'content-type': 'application/json' }

/** A fresh 200 answer: no header of any upstream is in it. */
export function successAnswer(body: Uint8Array): GuestAnswer {
  return { status: 200, headers: JSON_HEADERS, body }
}

/** A refusal as the guest may know it. */
export function wireError(refusal: CallRefusal): WireError {
  const { status, code } = REFUSALS[refusal.reason]
  return { status, code, message: messageOf(refusal) }
}

/** What the guest reads in place of an upstream's own words about a failure. */
export function upstreamError(status: number): WireError {
  if (status === 401 || status === 403) {
    return { status, code: 'upstream_refused', message: 'The upstream service did not accept this call.' }
  }
  return { status, code: upstream.code, message: upstream.message }
}

/** The answer of a refused or failed call; `shape` omitted = `{ "error": { "code", "message" } }`. */
export function refusalAnswer(refusal: CallRefusal, shape: ErrorShape = shortShape): GuestAnswer {
  const error = wireError(refusal)
  const retry = refusal.retry ?? REFUSALS[refusal.reason].retry ?? false
  const soon = refusal.reason === 'busy' || refusal.reason === 'too_fast' ? 1000 : undefined
  const waitMs = refusal.retryAfterMs ?? soon
  return {
    status: error.status,
    headers: {
      ...JSON_HEADERS,
      ...(retry ? {} : { 'x-should-retry': 'false' }),
      ...(waitMs === undefined ? {} : { 'retry-after': String(Math.max(1, Math.ceil(waitMs / 1000))) }),
    },
    body: jsonBytes(shape(error)),
  }
}

/** A JSON value as UTF-8. */
export function jsonBytes(value: unknown): Uint8Array {
  return encoder.encode(JSON.stringify(value))
}

function messageOf(refusal: CallRefusal): string {
  const { message } = REFUSALS[refusal.reason]
  if (refusal.wording !== undefined) return refusal.wording
  if (refusal.reason === 'protocol_mismatch') return protocolMismatch(refusal.protocol ?? 'unknown')
  if (refusal.problem !== undefined) return `${message} ${refusal.problem}`
  return refusal.limitBytes === undefined
    ? message
    : `${message} At most ${refusal.limitBytes} bytes are taken.`
}
