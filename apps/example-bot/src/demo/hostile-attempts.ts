import type { CallEvent, CallReason } from '@sandbox/broker'

/** The hostile guest, one file for Node and Bun. */
export const HOSTILE_GUEST = new URL('./hostile-guest.mjs', import.meta.url)

/** What an attempt must come to: the status that the guest got, and what the host's own event says about it. */
export interface ExpectedAttempt {
  readonly status: number
  /** Absent: the host need not make an event, since its HTTP server (Node's or Bun's) may refuse by itself. */
  readonly reason?: CallReason
  /** Only where the worker is a container. */
  readonly container?: true
}

const at = (status: number, reason?: CallReason): ExpectedAttempt => ({
  status,
  ...(reason === undefined ? {} : { reason }),
})
const noWay: ExpectedAttempt = { status: 0, container: true }

/** Every attempt of the hostile guest's `attack`, in no order. */
export const ATTACK: Readonly<Record<string, ExpectedAttempt>> = {
  early_model: at(410, 'turn_over'),
  early_next: at(403, 'worker_refused'),
  early_ack: at(403, 'worker_refused'),
  no_nonce: at(410, 'nonce_refused'),
  empty_nonce: at(410, 'nonce_refused'),
  guessed_nonce: at(410, 'nonce_refused'),
  near_nonce: at(410, 'nonce_refused'),
  worker_nonce_as_turn: at(410, 'nonce_refused'),
  nonce_of_an_earlier_turn: at(410, 'nonce_refused'),
  two_nonces: at(403, 'header_refused'),
  tool_without_nonce: at(410, 'nonce_refused'),
  route_anthropic: at(404, 'not_found'),
  route_openai: at(404, 'not_found'),
  official_route: at(200, 'ok'),
  official_route_without_nonce: at(410, 'nonce_refused'),
  route_health: at(404, 'not_found'),
  route_root: at(404, 'not_found'),
  route_query: at(404, 'not_found'),
  route_fragment: at(404, 'not_found'),
  route_slash: at(404, 'not_found'),
  route_double_slash: at(404, 'not_found'),
  route_dots: at(404, 'not_found'),
  route_percent: at(404, 'not_found'),
  route_upper: at(404, 'not_found'),
  route_absolute: at(400, 'request_invalid'),
  route_absolute_other: at(400, 'request_invalid'),
  route_mcp: at(404, 'not_found'),
  tool_not_listed: at(404, 'not_found'),
  tool_percent: at(404, 'not_found'),
  tool_prototype: at(404, 'not_found'),
  method_get: at(404, 'not_found'),
  method_put: at(404, 'not_found'),
  method_options: at(400, 'request_invalid'),
  method_connect: at(0),
  own_authorization: at(403, 'credential_refused'),
  own_basic: at(403, 'credential_refused'),
  two_authorizations: at(400, 'request_invalid'),
  own_x_api_key: at(403, 'header_refused'),
  own_cookie: at(403, 'header_refused'),
  own_organization: at(403, 'header_refused'),
  own_forwarded: at(403, 'header_refused'),
  other_host: at(403, 'host_refused'),
  two_hosts: at(400),
  chunked: at(403, 'header_refused'),
  two_framings: at(400),
  upgrade: at(403, 'header_refused'),
  pipelined: at(0),
  oversized: at(413, 'body_too_large'),
  no_json: at(400, 'body_invalid'),
  list: at(400, 'body_invalid'),
  image: at(400, 'input_refused'),
  native_tool: at(400, 'input_refused'),
  developer: at(400, 'input_refused'),
  deep: at(400, 'body_invalid'),
  redirect: at(502, 'upstream_redirect'),
  leak: at(502, 'reflection'),
  own_model_and_limit: at(200, 'ok'),
  tool_as_somebody_else: at(200, 'ok'),
  next_again: at(409, 'turn_taken'),
  next_without_nonce: at(403, 'worker_refused'),
  next_with_turn_nonce: at(403, 'worker_refused'),
  ack_of_another_turn: at(409, 'turn_unknown'),
  result_for_another_turn: at(409, 'result_refused'),
  result_without_nonce: at(403, 'worker_refused'),
  result_with_turn_nonce: at(403, 'header_refused'),
  result_of_no_shape: at(400, 'body_invalid'),
  config_of_pi: at(404, 'not_found'),
  service_directly: noWay,
  metadata_address: noWay,
  engine_socket: noWay,
  key_file: noWay,
}

/** What became of one attempt. */
export interface Attempt {
  readonly attempt: string
  readonly expected: number
  /** What the guest says it got; absent when it says nothing. */
  readonly status?: number
  readonly ok: boolean
}

/** Reads the guest's `name status` lines and compares each with what is expected. */
export function readAttempts(text: string, container: boolean): readonly Attempt[] {
  const told = new Map(
    [...text.matchAll(/^([a-z_]+) (\d+)$/gm)].map(([, name = '', status]) => [name, Number(status)] as const),
  )
  return Object.entries(ATTACK)
    .filter(([, expected]) => container || expected.container !== true)
    .map(([attempt, { status: expected }]) => {
      const status = told.get(attempt)
      return { attempt, expected, ...(status === undefined ? {} : { status }), ok: status === expected }
    })
}

/**
 * Says which of the expected refusals the host does not know of: what a guest says about itself proves nothing.
 * `events` are all that the host told while the attack ran.
 */
export function missingEvents(events: readonly CallEvent[]): readonly string[] {
  const left = new Map<string, number>()
  for (const { status, reason } of events) {
    left.set(`${status} ${reason}`, (left.get(`${status} ${reason}`) ?? 0) + 1)
  }
  return Object.entries(ATTACK).flatMap(([name, { status, reason }]) => {
    if (reason === undefined) return []
    const key = `${status} ${reason}`
    const count = left.get(key) ?? 0
    left.set(key, count - 1)
    return count > 0 ? [] : [`${name}: the host made no event "${key}"`]
  })
}
