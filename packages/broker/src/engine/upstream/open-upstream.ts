import type { Readable } from 'node:stream'
import type { AuthSlot, Secret } from '@sandbox/credential-scope'
import type { Dispatcher } from 'undici'
import { Agent } from 'undici/index.js'
import { CallRefusal } from '../call/refusal.ts'
import { decodeBody } from './decode-body.ts'

/** One request to an upstream. */
export interface UpstreamCall {
  readonly agent: Dispatcher
  readonly url: URL
  /** Written into `authSlot`, unless it is for another origin than `url`'s. */
  readonly secret: Secret
  readonly authSlot: AuthSlot
  /** JSON. */
  readonly body: Uint8Array
  /** Omitted = `application/json`. */
  readonly accept?: string
  /** Other headers, in lower case. The host's own: none of a guest's is passed here unchecked. Omitted = none. */
  readonly headers?: Readonly<Record<string, string>>
  /** The only bound in time. When it fires, the connection goes, whatever it was doing. */
  readonly signal: AbortSignal
  /** Called with the status as soon as it is known. */
  onStatus?(status: number): void
}

/** An answer of which nothing but the head was read. Exactly one of `cancel` and `finish` ends it. */
export interface UpstreamAnswer {
  readonly status: number
  /** Names in lower case. */
  readonly headers: Readonly<Record<string, string | string[] | undefined>>
  /** In bytes, as announced; `undefined` for a compressed body. */
  readonly contentLength: number | undefined
  /** Decoded. Breaks off with an error when the connection does. */
  readonly body: AsyncIterable<Uint8Array>
  /** Throws away what is left, with its connection. Harmless once the body was read to its end. */
  cancel(): void
  /** Reads what is left in the background, if it is little and comes soon, so that the connection can be kept. */
  finish(reader: AsyncIterator<Uint8Array>): void
}

const FINISH_MS = 1000
const FINISH_BYTES = 64 * 1024
const LARGE_BYTES = 256 * 1024

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
 * Posts JSON and answers as soon as the head of the answer is there. Sends `content-type`, `accept`, the
 * credential, the headers of the call, and nothing else.
 * @throws CallRefusal `upstream_network`, `upstream_redirect`, `upstream_invalid` (no such status, or a coding that is not
 * known).
 * Rejects with the signal's reason when that fires. CredentialError `credential_origin` before anything is sent.
 */
export async function openUpstream(call: UpstreamCall): Promise<UpstreamAnswer> {
  const response = await send(call)
  const raw = response.body.on('error', () => {})
  try {
    call.onStatus?.(response.statusCode)
    if (response.statusCode >= 300 && response.statusCode < 400) throw new CallRefusal('upstream_redirect')
    if (response.statusCode > 599) throw new CallRefusal('upstream_invalid')
    const coding = response.headers['content-encoding']
    const body = decodeBody(raw, Array.isArray(coding) ? coding.join(',') : coding)
    const length = Number(response.headers['content-length'] ?? Number.NaN)
    return {
      status: response.statusCode,
      headers: response.headers,
      contentLength: body === raw && Number.isSafeInteger(length) ? length : undefined,
      body,
      cancel: () => raw.destroy(),
      finish: (reader) => {
        void drain(reader).finally(() => raw.destroy())
      },
    }
  } catch (error) {
    raw.destroy()
    throw error
  }
}

async function send(call: UpstreamCall): Promise<Dispatcher.ResponseData> {
  // A credential in the query is written into the URL.
  const url = call.authSlot.kind === 'query' ? new URL(call.url) : call.url
  const headers: Record<string, string> = {
    ...call.headers,
    'content-type': 'application/json',
    accept: call.accept ?? 'application/json',
    'content-length': String(call.body.byteLength),
  }
  call.secret.applyTo(headers, url, call.authSlot)
  try {
    return await call.agent.request({
      origin: url.origin,
      path: url.pathname + url.search,
      method: 'POST',
      headers,
      body: call.body.byteLength > LARGE_BYTES ? onceOnly(call.body) : call.body,
      signal: call.signal,
    })
  } catch (cause) {
    call.signal.throwIfAborted()
    throw new CallRefusal('upstream_network', { cause })
  }
}

/** Undici keeps what it was given until the answer has ended: of this, nothing is left once it was sent. */
function onceOnly(bytes: Uint8Array): Readable {
  let left: Uint8Array | undefined = bytes
  const next = (): IteratorResult<Uint8Array> => {
    const value = left
    left = undefined
    return value === undefined ? { done: true, value } : { done: false, value }
  }
  // Undici takes any iterable, though its types do not say so.
  const once: Iterable<Uint8Array> = { [Symbol.iterator]: () => ({ next }) }
  return once as unknown as Readable
}

async function drain(reader: AsyncIterator<Uint8Array>): Promise<void> {
  const until = new Promise<undefined>((resolve) => {
    setTimeout(() => resolve(undefined), FINISH_MS).unref()
  })
  try {
    for (let left = FINISH_BYTES; left > 0; ) {
      const next = await Promise.race([reader.next(), until])
      if (next === undefined || next.done === true) return
      left -= next.value.byteLength
    }
  } catch {}
}
