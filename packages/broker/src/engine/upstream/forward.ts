import type { AuthSlot, Secret } from '@sandbox/credential-scope'
import type { Dispatcher } from 'undici'
import { Agent } from 'undici/index.js'
import { parseObject, readBody } from '../call/read-body.ts'
import { CallRefusal } from '../call/refusal.ts'

/** One request to an upstream. */
export interface UpstreamCall {
  readonly agent: Dispatcher
  readonly url: URL
  /** Written into `authSlot`, unless it is for another origin than `url`'s. */
  readonly secret: Secret
  readonly authSlot: AuthSlot
  /** JSON. */
  readonly body: Uint8Array
  /** Largest answer, in bytes. */
  readonly limitBytes: number
  /** The only bound in time. */
  readonly signal: AbortSignal
  /** Called with the status as soon as it is known. */
  onStatus?(status: number): void
}

let shared: Agent | undefined

/**
 * The connection pool of this process. Brokers live for a turn, connections to a provider longer. It follows
 * no redirect, reads no proxy variable, and has no timeouts but the connect's: calls carry a signal.
 */
export function sharedAgent(): Dispatcher {
  shared ??= new Agent({
    headersTimeout: 0,
    bodyTimeout: 0,
    connect: { timeout: 10_000 },
    keepAliveTimeout: 10_000,
    allowH2: false,
    pipelining: 1,
  })
  return shared
}

/**
 * Posts JSON and returns the JSON object of a 2xx answer. Sends `content-type`, `accept`, the credential and
 * nothing else. Status and body of any other answer stay here.
 * @throws CallRefusal `upstream_network`, `upstream_redirect`, `upstream_status`, `upstream_invalid`. Rejects with
 * the signal's reason when that fires. CredentialError `credential_origin` before anything is sent.
 */
export async function forwardJson(call: UpstreamCall): Promise<Record<string, unknown>> {
  const response = await send(call)
  try {
    call.onStatus?.(response.statusCode)
    checkStatus(response.statusCode)
    checkEncoding(response.headers['content-encoding'])
    const length = Number(response.headers['content-length'] ?? Number.NaN)
    const bytes = await readAnswer(call, response, Number.isSafeInteger(length) ? length : undefined)
    return parseAnswer(bytes)
  } finally {
    // A no-op once the body was read to its end; else the connection goes.
    response.body.on('error', () => {}).destroy()
  }
}

async function send(call: UpstreamCall): Promise<Dispatcher.ResponseData> {
  const url = new URL(call.url)
  const headers: Record<string, string> = {
    'content-type': 'application/json',
    accept: 'application/json',
  }
  call.secret.applyTo(headers, url, call.authSlot)
  try {
    return await call.agent.request({
      origin: url.origin,
      path: url.pathname + url.search,
      method: 'POST',
      headers,
      body: call.body,
      signal: call.signal,
    })
  } catch (cause) {
    call.signal.throwIfAborted()
    throw new CallRefusal('upstream_network', { cause })
  }
}

function checkStatus(status: number): void {
  if (status >= 200 && status < 300) return
  if (status >= 300 && status < 400) throw new CallRefusal('upstream_redirect')
  throw new CallRefusal('upstream_status', { retry: status >= 500 || [408, 409, 429].includes(status) })
}

/** None was asked for, and what is compressed cannot be searched. */
function checkEncoding(value: string | string[] | undefined): void {
  if (value !== undefined && value !== 'identity') throw new CallRefusal('upstream_invalid', { retry: false })
}

async function readAnswer(
  call: UpstreamCall,
  response: Dispatcher.ResponseData,
  contentLength: number | undefined,
): Promise<Uint8Array> {
  const { limitBytes, signal } = call
  try {
    return await readBody({ body: response.body, contentLength, limitBytes, signal })
  } catch (cause) {
    signal.throwIfAborted()
    const large = cause instanceof CallRefusal && cause.reason === 'body_too_large'
    throw large
      ? new CallRefusal('upstream_invalid', { retry: false })
      : new CallRefusal('upstream_network', { cause })
  }
}

function parseAnswer(bytes: Uint8Array): Record<string, unknown> {
  try {
    return parseObject(bytes)
  } catch {
    throw new CallRefusal('upstream_invalid')
  }
}
