import type { AuthSlot, Secret } from '@sandbox/credential-scope'
import type { Dispatcher } from 'undici'
import { CallRefusal } from '../engine/call/refusal.ts'
import type { McpUse } from '../engine/mcp/mcp-port.ts'
import { decodeBody } from '../engine/upstream/decode-body.ts'

/** Bounds of one use of a connection. */
export interface WireLimits {
  /** All that the server sends, decoded, in bytes. */
  readonly answerBytes: number
  /** Requests to the server: the handshake, pages of a list, refused requests of the server's own. */
  readonly requests: number
  /** After this time without an open answer the server is not going to give one, in milliseconds. */
  readonly silenceMs: number
}

/** What every use may take. */
export const WIRE_LIMITS: WireLimits = { answerBytes: 2 * 1024 * 1024, requests: 32, silenceMs: 5_000 }

/** Where requests go, and how. */
export interface HttpWireOptions {
  readonly agent: Dispatcher
  readonly url: URL
  readonly authSlot: AuthSlot
  readonly limits: WireLimits
}

/** The protocol's own headers. Nothing else of the client's travels, and a credential of its own least of all. */
const HEADERS = /^(accept|content-type|last-event-id|mcp-(protocol-version|session-id|method|name|param-.+))$/

/**
 * The `fetch` of an MCP client, for one server: it reaches that URL and no other, follows no redirect, puts the
 * credential of the current use into its slot, and counts. A bound that is crossed ends the use with a reason.
 */
export class HttpWire {
  readonly #options: HttpWireOptions
  #use: WireUse | undefined

  constructor(options: HttpWireOptions) {
    this.#options = options
  }

  /** Starts a use; `signal` of what it returns fires when the use cannot succeed any more. */
  begin(use: McpUse): WireUse {
    this.#use = new WireUse(use, this.#options.limits)
    return this.#use
  }

  /** To be handed to the client's transport. */
  readonly fetch = async (target: string | URL, init: RequestInit = {}): Promise<Response> => {
    const use = this.#use
    const { url } = this.#options
    // A stream for messages that nobody asked for: no server needs it, and a silent one would stay open for ever.
    const resumes = new Headers(init.headers).has('last-event-id')
    if (init.method === 'GET' && !resumes) return new Response(null, { status: 405 })
    if (use === undefined || String(target) !== url.href) throw new CallRefusal('internal')
    const stop = joined(use.signal, init.signal)
    try {
      use.sending()
      const response = await this.#send(init, use.secret, stop.signal)
      return use.received(response, stop)
    } catch (cause) {
      stop.abort()
      throw use.fail(cause instanceof CallRefusal ? cause : new CallRefusal('upstream_network', { cause }))
    }
  }

  #send(
    init: RequestInit,
    secret: Secret | undefined,
    signal: AbortSignal,
  ): Promise<Dispatcher.ResponseData> {
    const { agent, authSlot } = this.#options
    const url = new URL(this.#options.url)
    const headers: Record<string, string> = {}
    new Headers(init.headers).forEach((value, name) => {
      if (HEADERS.test(name)) headers[name] = value
    })
    secret?.applyTo(headers, url, authSlot)
    return agent.request({
      origin: url.origin,
      path: url.pathname + url.search,
      method: (init.method ?? 'POST') as Dispatcher.HttpMethod,
      headers,
      body: typeof init.body === 'string' ? init.body : null,
      signal,
    })
  }
}

/** A signal of our own that fires with either of two. */
function joined(first: AbortSignal, second: AbortSignal | null | undefined): AbortController & Detachable {
  const control = new AbortController()
  const onAbort = () => control.abort()
  for (const signal of [first, second]) {
    signal?.addEventListener('abort', onAbort)
    if (signal?.aborted) onAbort()
  }
  return Object.assign(control, {
    detach: () => {
      for (const signal of [first, second]) signal?.removeEventListener('abort', onAbort)
    },
  })
}

interface Detachable {
  /** Lets go of the signals that were joined. */
  detach(): void
}

/** One use of a wire: its credential, what it may still take, and why it failed. */
export class WireUse {
  readonly #use: McpUse
  readonly #control = new AbortController()
  readonly #limits: WireLimits
  #requestsLeft: number
  #bytesLeft: number
  #open = 0
  #silence: NodeJS.Timeout | undefined

  constructor(use: McpUse, limits: WireLimits) {
    this.#use = use
    this.#limits = limits
    this.#requestsLeft = limits.requests
    this.#bytesLeft = limits.answerBytes
  }

  get secret(): Secret | undefined {
    return this.#use.secret
  }

  /** Fires with a CallRefusal when the use failed, and when it ended: whatever it still has open goes. */
  get signal(): AbortSignal {
    return this.#control.signal
  }

  /** Ends the use; the first reason counts, and is returned. */
  fail(refusal: CallRefusal): CallRefusal {
    this.#control.abort(refusal)
    clearTimeout(this.#silence)
    return this.#control.signal.reason as CallRefusal
  }

  /** Closes what the server left open. */
  end(): void {
    this.fail(new CallRefusal('aborted'))
  }

  /** Counts a request. */
  sending(): void {
    if (this.signal.aborted) throw this.signal.reason
    this.#requestsLeft -= 1
    if (this.#requestsLeft < 0) throw new CallRefusal('upstream_invalid', { retry: false })
    this.#open += 1
    clearTimeout(this.#silence)
  }

  /** The answer for the client, its body decoded and counted. */
  received(response: Dispatcher.ResponseData, stop: AbortController & Detachable): Response {
    const { statusCode: status, headers, body: raw } = response
    raw.on('error', () => {})
    this.#use.onStatus?.(status)
    if (status >= 300 && status < 400) throw new CallRefusal('upstream_redirect')
    const coding = headers['content-encoding']
    const body = decodeBody(raw, Array.isArray(coding) ? coding.join(',') : coding)
    const kept = new Headers()
    for (const name of ['content-type', 'mcp-session-id'] as const) {
      const value = headers[name]
      if (typeof value === 'string') kept.set(name, value)
    }
    const stream = this.#counted(body, () => {
      stop.detach()
      raw.destroy()
    })
    if (status !== 204 && status !== 205) return new Response(stream, { status, headers: kept })
    void stream.cancel()
    return new Response(null, { status, headers: kept })
  }

  #counted(body: AsyncIterable<Uint8Array>, over: () => void): ReadableStream<Uint8Array> {
    const reader = body[Symbol.asyncIterator]()
    const closed = () => {
      over()
      this.#closed()
    }
    return new ReadableStream({
      pull: async (sink) => {
        try {
          const next = await reader.next()
          if (next.done === true) {
            closed()
            return sink.close()
          }
          this.#bytesLeft -= next.value.byteLength
          if (this.#bytesLeft < 0) throw new CallRefusal('upstream_invalid', { retry: false })
          sink.enqueue(Uint8Array.from(next.value))
        } catch (cause) {
          closed()
          sink.error(
            this.fail(cause instanceof CallRefusal ? cause : new CallRefusal('upstream_network', { cause })),
          )
        }
      },
      cancel: closed,
    })
  }

  /** A server that has closed every answer may give another on a new request, but only soon. */
  #closed(): void {
    this.#open -= 1
    if (this.#open > 0 || this.signal.aborted) return
    this.#silence = setTimeout(() => this.fail(new CallRefusal('upstream_invalid')), this.#limits.silenceMs)
  }
}
