import { randomBytes } from 'node:crypto'
import type { Server } from 'node:http'
import { serve } from '@hono/node-server'
import { Hono } from 'hono'
import type { ProviderSettings } from '../operator/bot-schema.ts'
import { chatEvents } from './chat-events.ts'
import { type MessageEvent, MessageStream, messageEvents, toMessage } from './from-chat.ts'
import { type JsonObject, toChat } from './to-chat.ts'

/** The Messages API on loopback, for the Pi agent, in front of services that speak Chat Completions. */
export interface MessagesGateway {
  /** Base URL for a provider. Its path holds a secret of this start: nobody else on this machine can use it. */
  urlOf(provider: string): string
  /** Ends every connection. Idempotent. */
  close(): Promise<void>
}

/** Where the broker puts the key. It is sent on to the provider's own address and nowhere else. */
export const GATEWAY_KEY_HEADER = 'x-api-key'

const ERROR_CHARS = 500
/** Longest wait for the first byte of an answer. */
const ANSWER_MS = 300_000

/** Opens a gateway for the providers that speak Chat Completions; others are not found there. */
export async function openMessagesGateway(options: {
  readonly providers: Readonly<Record<string, ProviderSettings>>
}): Promise<MessagesGateway> {
  const secret = randomBytes(24).toString('base64url')
  const app = new Hono()
  for (const [name, provider] of Object.entries(options.providers)) {
    if (provider.api !== 'openai') continue
    app.post(`/${secret}/${encodeURIComponent(name)}/v1/messages`, async ({ req }) =>
      answer(req.raw, provider).catch((error: unknown) => unreachable(error)),
    )
  }
  app.notFound(() => failure(404, 'There is nothing here.'))
  const server = await listen(app)
  const at = server.address()
  const port = typeof at === 'object' && at !== null ? at.port : 0
  return {
    urlOf: (name) => `http://127.0.0.1:${port}/${secret}/${encodeURIComponent(name)}`,
    close: () =>
      new Promise((done) => {
        server.close(() => done())
        server.closeAllConnections()
      }),
  }
}

async function answer(request: Request, provider: ProviderSettings): Promise<Response> {
  const key = request.headers.get(GATEWAY_KEY_HEADER)
  if (key === null) return failure(401, 'There is no key.')
  const asked = (await request.json()) as JsonObject
  const left = new AbortController()
  const late = setTimeout(() => left.abort(), ANSWER_MS)
  const gone = () => left.abort()
  request.signal.addEventListener('abort', gone, { once: true })
  const { url, auth = 'bearer', tokenLimitField, stream = true } = provider
  const response = await fetch(`${url.replace(/\/$/, '')}/chat/completions`, {
    method: 'POST',
    redirect: 'error',
    signal: left.signal,
    headers: {
      'content-type': 'application/json',
      ...(auth === 'bearer' ? { authorization: `Bearer ${key}` } : { [auth]: key }),
    },
    body: JSON.stringify(toChat(stream ? asked : { ...asked, stream }, tokenLimitField)),
  }).finally(() => clearTimeout(late))
  if (!response.ok) return await refused(response)
  if (asked.stream !== true) return Response.json(toMessage((await response.json()) as JsonObject))
  const streamed = response.headers.get('content-type')?.includes('event-stream') === true
  const body = streamed
    ? messageBytes(response, left)
    : eventBytes(messageEvents((await response.json()) as JsonObject))
  return new Response(body, { headers: { 'content-type': 'text/event-stream' } })
}

function messageBytes(response: Response, left: AbortController): ReadableStream<Uint8Array> {
  const stream = new MessageStream()
  const pieces = chatEvents(response)
  return new ReadableStream({
    async pull(controller) {
      try {
        for (;;) {
          const { done, value } = await pieces.next()
          const events = done === true ? stream.end() : stream.push(value)
          if (events.length > 0) controller.enqueue(eventBytes(events))
          if (done === true) controller.close()
          if (done === true || events.length > 0) return
        }
      } catch {
        // Without a reason to stop, what the stream ends with is an error.
        controller.enqueue(eventBytes(new MessageStream().end()))
        controller.close()
      }
    },
    cancel: () => left.abort(),
  })
}

function eventBytes(events: readonly MessageEvent[]): Uint8Array<ArrayBuffer> {
  const text = events.map((event) => `event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`)
  return new TextEncoder().encode(text.join(''))
}

/** Status and back-off stay; of a refused key nothing is repeated. */
async function refused(response: Response): Promise<Response> {
  const { status } = response
  const text = (await response.text()).slice(0, ERROR_CHARS)
  const words = status === 401 || status === 403 ? 'The service does not take this key.' : text
  const retry = response.headers.get('retry-after')
  return failure(status, words, retry === null ? {} : { 'retry-after': retry })
}

function unreachable(error: unknown): Response {
  const invalid = error instanceof SyntaxError
  return failure(invalid ? 400 : 502, invalid ? 'This is not JSON.' : 'The service cannot be reached.')
}

const ERROR_TYPES: Readonly<Record<number, string>> = {
  401: 'authentication_error',
  403: 'permission_error',
  404: 'not_found_error',
  413: 'request_too_large',
  429: 'rate_limit_error',
}

function failure(status: number, message: string, headers: Record<string, string> = {}): Response {
  const type = ERROR_TYPES[status] ?? (status >= 500 ? 'api_error' : 'invalid_request_error')
  return Response.json({ type: 'error', error: { type, message } }, { status, headers })
}

function listen(app: Hono): Promise<Server> {
  return new Promise((done, fail) => {
    const server = serve(
      { fetch: app.fetch, hostname: '127.0.0.1', port: 0, overrideGlobalObjects: false },
      () => done(server),
    ) as Server
    server.once('error', fail)
  })
}
