import type { IncomingMessage } from 'node:http'
import { BROKER_HOST, limits } from '@sandbox/protocol'
import { GuestError, type GuestErrorCode } from './errors.ts'
import { isObject, parseJson } from './json.ts'

// Not by `import`: that reads every export of the module, and one of them loads Node's whole WebSocket: 30 ms.
const { Agent, request } = process.getBuiltinModule('node:http')

/** One request to the host. */
export interface WireCall {
  readonly method: 'GET' | 'POST'
  readonly path: string
  readonly headers?: Readonly<Record<string, string>>
  /** JSON text. */
  readonly body?: string
  /** Largest answer body that is read. */
  readonly answerBytes: number
  /** Default 65 s: longer than the host's own limit, so that its refusal arrives. */
  readonly timeoutMs?: number
  readonly signal?: AbortSignal
}

/** What the host answered. */
export interface WireAnswer {
  readonly status: number
  /** The parsed JSON of a 200; a fixed object for every other status. */
  readonly body: unknown
  /** The host's own words for a refusal. For the log only, never for the model. */
  readonly refusal?: string
}

/** Stands in for the body of every answer that is not a 200. */
export const REFUSED_BODY = { error: { code: 'refused' } } as const

const REFUSAL_TEXT_CHARS = 1024

/**
 * HTTP over the worker's Unix socket, on connections that are kept alive. Sends `host`, `content-type`,
 * `content-length` and what the caller names, and nothing else: the host refuses unknown headers.
 */
export class BrokerWire {
  readonly #socketPath: string
  readonly #agent = new Agent({ keepAlive: true })

  constructor(socketPath: string) {
    this.#socketPath = socketPath
  }

  /**
   * Sends one request. Resolves with any status. Throws a {@link GuestError}: `connection_lost`, `timeout`,
   * `aborted`, `answer_too_large`, or `answer_invalid` for a 200 that is no JSON. Never sends twice.
   */
  call(call: WireCall): Promise<WireAnswer> {
    const { method, path, body, signal, timeoutMs = limits.WORKER_CALL_TIMEOUT_MS } = call
    if (signal?.aborted) return Promise.reject(new GuestError('aborted', `${path}: the time is over`))
    return new Promise((resolve, reject) => {
      const outgoing = request({
        socketPath: this.#socketPath,
        agent: this.#agent,
        setDefaultHeaders: false,
        method,
        path,
        headers: { host: BROKER_HOST, ...bodyHeaders(body), ...call.headers },
      })
      const release = () => {
        clearTimeout(timer)
        signal?.removeEventListener('abort', abort)
      }
      const fail = (code: GuestErrorCode, message: string, cause?: unknown) => {
        release()
        outgoing.destroy()
        reject(new GuestError(code, `${path}: ${message}`, cause === undefined ? {} : { cause }))
      }
      const abort = () => fail('aborted', 'the time is over')
      const timer = setTimeout(() => fail('timeout', `no answer within ${timeoutMs} ms`), timeoutMs)
      signal?.addEventListener('abort', abort)
      outgoing.on('error', (cause) => fail('connection_lost', 'no connection to the host', cause))
      outgoing.on('response', (incoming) => {
        readBody(incoming, call.answerBytes, fail, (text) => {
          const answer = readAnswer(incoming.statusCode ?? 0, text)
          if (answer === undefined) return fail('answer_invalid', 'the answer is no JSON')
          release()
          resolve(answer)
        })
      })
      outgoing.end(body)
    })
  }

  /** Closes every connection; calls in flight fail. */
  close(): void {
    this.#agent.destroy()
  }
}

function bodyHeaders(body: string | undefined): Record<string, string> {
  if (body === undefined) return {}
  return { 'content-type': 'application/json', 'content-length': String(Buffer.byteLength(body)) }
}

function readBody(
  incoming: IncomingMessage,
  maxBytes: number,
  fail: (code: GuestErrorCode, message: string, cause?: unknown) => void,
  done: (text: string) => void,
): void {
  const chunks: Buffer[] = []
  let bytes = 0
  incoming.on('data', (chunk: Buffer) => {
    bytes += chunk.byteLength
    if (bytes > maxBytes) fail('answer_too_large', `the answer is over ${maxBytes} bytes`)
    else chunks.push(chunk)
  })
  incoming.on('error', (cause) => fail('connection_lost', 'the answer broke off', cause))
  incoming.on('end', () => {
    if (bytes <= maxBytes) done(Buffer.concat(chunks).toString('utf8'))
  })
}

function readAnswer(status: number, text: string): WireAnswer | undefined {
  const parsed = parseJson(text)
  if (status === 200) return parsed === undefined ? undefined : { status, body: parsed }
  const refusal = refusalText(parsed)
  return { status, body: REFUSED_BODY, ...(refusal === undefined ? {} : { refusal }) }
}

function refusalText(body: unknown): string | undefined {
  if (!isObject(body) || !isObject(body.error) || typeof body.error.message !== 'string') return undefined
  // biome-ignore lint/suspicious/noControlCharactersInRegex: a log line must not carry control characters
  return body.error.message.slice(0, REFUSAL_TEXT_CHARS).replace(/[\u0000-\u001f\u007f-\u009f]/g, ' ')
}
