import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { setTimeout as pause } from 'node:timers/promises'
import { readChatRequest } from './stand-in-request.ts'
import { scriptAnswer } from './stand-in-script.ts'

/** The path of the endpoint, as OpenAI has it. */
const ENDPOINT = '/v1/chat/completions'
const BODY_BYTES = 1024 * 1024
const RECORDED_CHARS = 200

/** What the stand-in remembers of one request: never a key, only its fingerprint. */
export interface StandInCall {
  readonly method: string
  /** The request target as it came. */
  readonly path: string
  /** What was answered. */
  readonly status: number
  /** Of the key in `authorization: Bearer`; absent when there was none. */
  readonly fingerprint?: string
  readonly knownKey: boolean
  /** Names of all request headers, sorted. */
  readonly headers: readonly string[]
  /** Names of the body's top-level fields, sorted. */
  readonly fields: readonly string[]
  readonly model?: string
  /** Whom the last message of a person names as its speaker, and its first 200 characters. */
  readonly speaker?: string
  readonly text?: string
}

/** Options of {@link startStandIn}. */
export interface StandInOptions {
  /** The keys that it knows, or `any`. Another gets a 401. */
  readonly keys: Iterable<string> | 'any'
  /** Turns a key into what is recorded of it. */
  fingerprint(key: string): string
  /** Default: any free port. */
  readonly port?: number
  /** How long an answer takes at least. Default 0. */
  readonly latencyMs?: number
  /** Called once per request, after its answer. */
  onCall?(call: StandInCall): void
}

/** A running stand-in. */
export interface StandIn extends AsyncDisposable {
  /** The full URL of its endpoint, on loopback. */
  readonly url: string
  /** Every request so far, oldest first. */
  readonly calls: readonly StandInCall[]
  /** Closes it. Idempotent. */
  close(): Promise<void>
}

/**
 * Starts a stand-in for OpenAI's Chat Completions service on loopback, so that the bot runs with no account. It
 * answers by a short script (see `scriptAnswer`), does not stream, and takes only a few keys. Its 401 repeats
 * the key, as real services partly do, and asked about the key it gives it away: what must not reach a guest.
 */
export async function startStandIn(options: StandInOptions): Promise<StandIn> {
  const keys = typeof options.keys === 'string' ? ('any' as const) : new Set(options.keys)
  const calls: StandInCall[] = []
  const server = createServer((request, response) => {
    answer(request, response, options, keys).then(
      (call) => {
        calls.push(call)
        options.onCall?.(call)
      },
      () => response.destroy(),
    )
  })
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject)
    server.listen(options.port ?? 0, '127.0.0.1', resolve)
  })
  let closed: Promise<void> | undefined
  const close = () => {
    closed ??= new Promise<void>((resolve) => {
      server.close(() => resolve())
      server.closeAllConnections()
    })
    return closed
  }
  const { port } = server.address() as AddressInfo
  return { url: `http://127.0.0.1:${port}${ENDPOINT}`, calls, close, [Symbol.asyncDispose]: close }
}

async function answer(
  request: IncomingMessage,
  response: ServerResponse,
  options: StandInOptions,
  keys: ReadonlySet<string> | 'any',
): Promise<StandInCall> {
  const body = await readBody(request)
  if (options.latencyMs !== undefined) await pause(options.latencyMs)
  const key = /^Bearer (.+)$/.exec(request.headers.authorization ?? '')?.[1]
  const knownKey = key !== undefined && (keys === 'any' || keys.has(key))
  const told = reply(request, body, key, knownKey)
  if (told.afterMs !== undefined) await pause(told.afterMs, undefined, { signal: gone(response), ref: false })
  response.writeHead(told.status, { 'content-type': 'application/json', ...told.headers })
  response.end(JSON.stringify(told.body))
  return {
    method: request.method ?? '',
    path: request.url ?? '',
    status: told.status,
    ...(key === undefined ? {} : { fingerprint: options.fingerprint(key) }),
    knownKey,
    headers: Object.keys(request.headers).sort(),
    ...recorded(body),
  }
}

interface Reply {
  readonly status: number
  readonly body: object
  readonly headers?: Readonly<Record<string, string>>
  readonly afterMs?: number
}

function reply(request: IncomingMessage, body: unknown, key: string | undefined, knownKey: boolean): Reply {
  if (request.url !== ENDPOINT) return failure(404, `Unknown request URL: ${request.method} ${request.url}.`)
  if (request.method !== 'POST') return failure(405, `Not allowed to ${request.method} on ${ENDPOINT}.`)
  if (key === undefined) return failure(401, "You didn't provide an API key.")
  if (!knownKey) return failure(401, `Incorrect API key provided: ${key}.`, 'invalid_api_key')
  const read = readChatRequest(body)
  if (!read.ok) return failure(400, read.message)
  const told = scriptAnswer(read.input)
  switch (told.kind) {
    case 'redirect':
      return { status: 302, body: {}, headers: { location: '/elsewhere' } }
    case 'leak':
      return completion(read.model, body, { role: 'assistant', content: `You call me with ${key}.` }, 'stop')
    case 'text':
      return {
        ...completion(read.model, body, { role: 'assistant', content: told.text }, 'stop'),
        ...(told.afterMs === undefined ? {} : { afterMs: told.afterMs }),
      }
    case 'calls': {
      const tool_calls = told.calls.map(({ name, input }, index) => ({
        id: `call_${index + 1}`,
        type: 'function',
        function: { name, arguments: JSON.stringify(input) },
      }))
      return completion(read.model, body, { role: 'assistant', content: null, tool_calls }, 'tool_calls')
    }
  }
}

/** Fires when the caller did not wait for its answer. */
function gone(response: ServerResponse): AbortSignal {
  const left = new AbortController()
  response.once('close', () => left.abort())
  return left.signal
}

let answers = 0

function completion(model: string, body: unknown, message: object, finish_reason: string): Reply {
  answers += 1
  const prompt_tokens = tokens(body)
  const completion_tokens = tokens(message)
  return {
    status: 200,
    body: {
      id: `chatcmpl-${answers}`,
      object: 'chat.completion',
      created: Math.floor(Date.now() / 1000),
      model,
      choices: [{ index: 0, message, finish_reason, logprobs: null }],
      usage: { prompt_tokens, completion_tokens, total_tokens: prompt_tokens + completion_tokens },
    },
  }
}

/** A rough count, as four characters a token. */
function tokens(value: unknown): number {
  return Math.ceil(JSON.stringify(value).length / 4)
}

function failure(status: number, message: string, code: string | null = null): Reply {
  return { status, body: { error: { message, type: 'invalid_request_error', param: null, code } } }
}

function recorded(body: unknown): Pick<StandInCall, 'fields' | 'model' | 'speaker' | 'text'> {
  const fields = typeof body === 'object' && body !== null ? Object.keys(body).sort() : []
  const read = readChatRequest(body)
  if (!read.ok) return { fields }
  const { speaker, text } = read.input
  return { fields, model: read.model, speaker, text: text.slice(0, RECORDED_CHARS) }
}

/** The parsed body; `undefined` when it is too large or no JSON. */
async function readBody(request: IncomingMessage): Promise<unknown> {
  const chunks: Buffer[] = []
  let bytes = 0
  for await (const chunk of request as AsyncIterable<Buffer>) {
    bytes += chunk.byteLength
    if (bytes <= BODY_BYTES) chunks.push(chunk)
  }
  try {
    return bytes > BODY_BYTES ? undefined : JSON.parse(Buffer.concat(chunks).toString('utf8'))
  } catch {
    return undefined
  }
}
