import type { Socket } from 'node:net'
import { BROKER_HOST, limits } from '@sandbox/protocol'
import { GuestError, type GuestErrorCode } from './errors.ts'
import { HttpAnswer } from './http-answer.ts'
import { isObject, parseJson } from './json.ts'

// Not `node:http`: loading it and its first requests take as long as the rest of a worker's start, and a MiB. Not by
// `import`: that reads every export of a module.
const { connect } = process.getBuiltinModule('node:net')

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

const TARGET = /^\/[\x21-\x7e]*$/
const HEADER_VALUE = /^[\x20-\x7e]*$/

/**
 * HTTP over the worker's Unix socket, on connections that are kept alive. Sends `host`, `content-type`,
 * `content-length` and what the caller names, and nothing else: the host refuses unknown headers.
 */
export class BrokerWire {
  readonly #socketPath: string
  readonly #open = new Set<Connection>()
  readonly #idle: Connection[] = []

  constructor(socketPath: string) {
    this.#socketPath = socketPath
  }

  /**
   * Sends one request. Resolves with any status. Throws a {@link GuestError}: `connection_lost`, `timeout`,
   * `aborted`, `answer_too_large`, or `answer_invalid` for a 200 that is no JSON; a `TypeError` for a path or a header
   * that no request can carry. Never sends twice.
   */
  call(call: WireCall): Promise<WireAnswer> {
    const { path, signal, timeoutMs = limits.WORKER_CALL_TIMEOUT_MS } = call
    if (signal?.aborted) return Promise.reject(new GuestError('aborted', `${path}: the time is over`))
    return new Promise((resolve, reject) => {
      const bytes = requestText(call)
      const connection = this.#connection()
      const answer = new HttpAnswer(call.answerBytes)
      const release = () => {
        clearTimeout(timer)
        signal?.removeEventListener('abort', abort)
        connection.exchange = undefined
      }
      const fail = (code: GuestErrorCode, message: string, cause?: unknown) => {
        release()
        connection.socket.destroy()
        reject(new GuestError(code, `${path}: ${message}`, cause === undefined ? {} : { cause }))
      }
      const abort = () => fail('aborted', 'the time is over')
      const timer = setTimeout(() => fail('timeout', `no answer within ${timeoutMs} ms`), timeoutMs)
      signal?.addEventListener('abort', abort)
      connection.exchange = {
        lost: (cause) => fail('connection_lost', 'no connection to the host', cause),
        take: (chunk) => {
          const state = answer.push(chunk)
          if (state === 'more') return
          if (state === 'too_large')
            return fail('answer_too_large', `the answer is over ${call.answerBytes} bytes`)
          if (state === 'broken') return fail('connection_lost', 'the answer is no HTTP')
          const read = readAnswer(answer.status, answer.text())
          if (read === undefined) return fail('answer_invalid', 'the answer is no JSON')
          release()
          if (answer.reusable) this.#rest(connection)
          else connection.socket.destroy()
          resolve(read)
        },
      }
      connection.socket.write(bytes)
    })
  }

  /** Closes every connection; calls in flight fail. */
  close(): void {
    for (const { socket } of this.#open) socket.destroy()
  }

  #connection(): Connection {
    const idle = this.#idle.pop()
    if (idle !== undefined) {
      idle.socket.ref()
      return idle
    }
    const socket = connect(this.#socketPath)
    const connection: Connection = { socket, exchange: undefined }
    this.#open.add(connection)
    let cause: unknown
    socket.on('error', (error) => {
      cause = error
    })
    // Bytes that nobody asked for end the connection.
    socket.on('data', (chunk) => (connection.exchange ? connection.exchange.take(chunk) : socket.destroy()))
    socket.on('close', () => {
      this.#open.delete(connection)
      const at = this.#idle.indexOf(connection)
      if (at !== -1) this.#idle.splice(at, 1)
      connection.exchange?.lost(cause)
    })
    return connection
  }

  #rest(connection: Connection): void {
    connection.socket.unref()
    this.#idle.push(connection)
  }
}

interface Connection {
  readonly socket: Socket
  /** The call whose answer is awaited. */
  exchange: { take(chunk: Buffer): void; lost(cause: unknown): void } | undefined
}

function requestText({ method, path, headers, body }: WireCall): string {
  const all = Object.entries({ host: BROKER_HOST, ...bodyHeaders(body), ...headers })
  if (!TARGET.test(path) || all.some(([, value]) => !HEADER_VALUE.test(value))) {
    throw new TypeError('a path or a header of a call has characters that no request can carry')
  }
  const lines = all.map(([name, value]) => `${name}: ${value}\r\n`)
  return `${method} ${path} HTTP/1.1\r\n${lines.join('')}\r\n${body ?? ''}`
}

function bodyHeaders(body: string | undefined): Record<string, string> {
  if (body === undefined) return {}
  return { 'content-type': 'application/json', 'content-length': String(Buffer.byteLength(body)) }
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
