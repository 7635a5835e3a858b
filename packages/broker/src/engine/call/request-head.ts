import { BROKER_HOST, TURN_NONCE_HEADER } from '@sandbox/protocol'
import type { BrokerRequest } from './exchange.ts'
import { CallRefusal } from './refusal.ts'

/** The parts of a request that the checks look at. */
export interface RequestHead {
  readonly method: string
  /** The undecoded path. */
  readonly path: string
  /** Whether the target had neither a `?` nor a `#`. */
  readonly bare: boolean
  /** What follows the path, from its `?` or `#` on, undecoded; empty when there is none. */
  readonly query: string
  /** Names in lower case. */
  readonly headers: ReadonlyMap<string, string>
  /** Names that came more than once. */
  readonly repeated: ReadonlySet<string>
  /** In bytes; `undefined` when the body's size was not announced. */
  readonly contentLength: number | undefined
}

const ORIGIN_FORM = /^\/[\x21-\x7e]*$/
const LENGTH = /^\d{1,15}$/
/** Official clients send some twenty. */
const MAX_HEADERS = 100

/**
 * Reads method, target and headers from the raw request. HTTP servers admit more than a broker wants: a target
 * with a scheme and host in it, or a second `host` or `authorization`, of which each reader may pick another.
 * @throws CallRefusal `request_invalid`
 */
export function readHead(request: BrokerRequest): RequestHead {
  if (request.rawHeaders.length > 2 * MAX_HEADERS) throw new CallRefusal('request_invalid')
  if (!ORIGIN_FORM.test(request.target)) throw new CallRefusal('request_invalid')
  const headers = new Map<string, string>()
  const repeated = new Set<string>()
  for (let at = 0; at + 1 < request.rawHeaders.length; at += 2) {
    const name = (request.rawHeaders[at] as string).toLowerCase()
    if (headers.has(name)) repeated.add(name)
    headers.set(name, request.rawHeaders[at + 1] as string)
  }
  if (repeated.has('host') || repeated.has('authorization')) throw new CallRefusal('request_invalid')
  const length = headers.get('content-length')
  if (length !== undefined && !LENGTH.test(length)) throw new CallRefusal('request_invalid')
  const end = request.target.search(/[?#]/)
  return {
    method: request.method,
    path: end === -1 ? request.target : request.target.slice(0, end),
    bare: end === -1,
    query: end === -1 ? '' : request.target.slice(end),
    headers,
    repeated,
    contentLength: length === undefined ? undefined : Number(length),
  }
}

/** What a sealed worker may send on any route. */
export const SEALED_HEADERS: readonly string[] = [
  'host',
  'content-type',
  'content-length',
  'accept',
  'accept-encoding',
  'authorization',
  'user-agent',
]

/** Which requests a route takes. */
export interface HeadPolicy {
  readonly method: 'GET' | 'POST'
  /**
   * Names in lower case; any other is refused, and so is a second one of the same name. `any` is for clients that
   * we do not write: unknown headers and credentials are ignored, what concerns the connection is not. Whatever
   * it says, no header of a guest is forwarded, but for what a route takes over by a list of its own.
   */
  readonly headers: ReadonlySet<string> | 'any'
  /** The placeholder that the worker holds in place of a credential. */
  readonly placeholder: string
  /** Queries that may follow the path, as they are spelt: `?beta=true`. Omitted = none. */
  readonly queries?: readonly string[]
}

/** SB-06: the method, and no query or fragment but those that are listed. */
export function checkMethod(head: RequestHead, policy: HeadPolicy): void {
  const admitted = head.bare || policy.queries?.includes(head.query) === true
  if (head.method !== policy.method || !admitted) throw new CallRefusal('not_found')
}

/** SB-07: only listed header names, each once. Or any, but for those that are about the connection. */
export function checkHeaderNames(head: RequestHead, policy: HeadPolicy): void {
  if (policy.headers === 'any') {
    checkConnection(head)
    return
  }
  if (head.repeated.size > 0) throw new CallRefusal('header_refused')
  for (const name of head.headers.keys()) {
    if (!policy.headers.has(name)) throw new CallRefusal('header_refused')
  }
}

const ONCE = ['connection', 'content-length', 'content-type', 'transfer-encoding', TURN_NONCE_HEADER]
const HOP_BY_HOP = ['expect', 'http2-settings', 'proxy-connection', 'te', 'trailer', 'upgrade']
const KEEPS_OR_CLOSES = /^\s*(keep-alive|close)\s*$/i

/** RFC 9110 section 7.6.1 and RFC 9112 section 6: one body, of one length, on one connection. */
function checkConnection({ headers, repeated }: RequestHead): void {
  const connection = headers.get('connection') ?? 'keep-alive'
  const transfer = headers.get('transfer-encoding')
  const framed =
    transfer === undefined || (transfer.toLowerCase() === 'chunked' && !headers.has('content-length'))
  const good =
    framed &&
    KEEPS_OR_CLOSES.test(connection) &&
    (headers.get('content-encoding') ?? 'identity') === 'identity' &&
    !ONCE.some((name) => repeated.has(name)) &&
    !HOP_BY_HOP.some((name) => headers.has(name))
  if (!good) throw new CallRefusal('header_refused')
}

/** SB-08: no credential but the placeholder. Where any header may come, any credential is ignored. */
export function checkPlaceholder(head: RequestHead, policy: HeadPolicy): void {
  if (policy.headers === 'any') return
  const given = head.headers.get('authorization')
  if (given !== undefined && given !== `Bearer ${policy.placeholder}`) {
    throw new CallRefusal('credential_refused')
  }
}

const LOOPBACK = /^(localhost|127\.0\.0\.1|\[::1\])(:\d{1,5})?$/

/** SB-09: no host but `broker`. Behind a forwarder in the container, a loopback address too. */
export function checkHost(head: RequestHead, policy: HeadPolicy): void {
  const given = head.headers.get('host')
  if (given === undefined || given === BROKER_HOST) return
  if (policy.headers !== 'any' || !LOOPBACK.test(given)) throw new CallRefusal('host_refused')
}
