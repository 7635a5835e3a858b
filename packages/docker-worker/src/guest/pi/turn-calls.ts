import { limits, PI_CALL_ROUTES, PI_PLACEHOLDER, type PiImage, TURN_NONCE_HEADER } from '@sandbox/protocol'
import type { BrokerWire } from '../shared/broker-wire.ts'
import { GuestError } from '../shared/errors.ts'
import { isObject, type JsonObject } from '../shared/json.ts'
import { hasTexts } from './turn-check.ts'

/** What a tool answered. */
export interface ToolReply {
  readonly text: string
  readonly images: readonly PiImage[]
}

/**
 * The calls of one turn that a tool makes. Each carries the turn's nonce, so that one which is left over when the turn
 * ends cannot be taken for a call of the next.
 */
export class TurnCalls {
  readonly #wire: BrokerWire
  readonly #nonce: string
  readonly #endsAt: number
  readonly #over: AbortSignal

  constructor(options: {
    readonly wire: BrokerWire
    readonly nonce: string
    readonly remainingMs: number
    /** Aborts when the turn is over. */
    readonly over: AbortSignal
  }) {
    this.#wire = options.wire
    this.#nonce = options.nonce
    this.#endsAt = performance.now() + options.remainingMs
    this.#over = options.over
  }

  /** Calls a host tool. Throws a {@link GuestError} for any failure; the message may be shown to the model. */
  async tool(name: string, input: JsonObject, signal?: AbortSignal): Promise<ToolReply> {
    const answer = await this.#post(
      PI_CALL_ROUTES.tools + name,
      { input },
      limits.PI_CALL_ANSWER_BYTES,
      signal,
    )
    if (answer.ok === false) throw new GuestError('tool_refused', failureText(answer.error))
    return { text: textOf(answer.text), images: isImage(answer.image) ? [answer.image] : [] }
  }

  /** Calls a tool of an MCP server. Throws a {@link GuestError} for any failure, the server's own included. */
  async mcp(server: string, name: string, input: JsonObject, signal?: AbortSignal): Promise<ToolReply> {
    const message = { jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name, arguments: input } }
    const path = PI_CALL_ROUTES.mcp + encodeURIComponent(server)
    const { result, error } = await this.#post(path, message, limits.PI_MCP_BYTES, signal)
    if (!isObject(result) || !Array.isArray(result.content)) {
      throw new GuestError('tool_refused', failureText(isObject(error) ? error.message : undefined))
    }
    const texts = result.content.flatMap((part) =>
      isObject(part) && part.type === 'text' ? [part.text] : [],
    )
    const text = texts.map(textOf).join('\n')
    if (result.isError === true) throw new GuestError('tool_refused', failureText(text))
    return {
      text,
      images: result.content.filter((part) => isObject(part) && part.type === 'image' && isImage(part)),
    }
  }

  /** Posts any call of this turn; the JSON object of its answer. */
  async post(path: string, message: unknown, answerBytes: number, signal?: AbortSignal): Promise<JsonObject> {
    return this.#post(path, message, answerBytes, signal)
  }

  async #post(
    path: string,
    message: unknown,
    answerBytes: number,
    signal: AbortSignal | undefined,
  ): Promise<JsonObject> {
    const stop = new AbortController()
    const end = () => stop.abort()
    const signals = signal === undefined ? [this.#over] : [this.#over, signal]
    for (const one of signals) one.addEventListener('abort', end)
    if (signals.some(({ aborted }) => aborted)) end()
    try {
      const answer = await this.#wire.call({
        method: 'POST',
        path,
        headers: { authorization: `Bearer ${PI_PLACEHOLDER}`, [TURN_NONCE_HEADER]: this.#nonce },
        body: JSON.stringify(message),
        answerBytes,
        timeoutMs: Math.max(1_000, this.#endsAt - performance.now()),
        signal: stop.signal,
      })
      if (answer.status === 200 && isObject(answer.body)) return answer.body
      throw new GuestError('tool_refused', `The call was refused (${answer.status}).`)
    } finally {
      for (const one of signals) one.removeEventListener('abort', end)
    }
  }
}

function textOf(value: unknown): string {
  return typeof value === 'string' ? value : ''
}

function failureText(value: unknown): string {
  return typeof value === 'string' && value.trim() !== '' ? value : 'The tool failed.'
}

function isImage(value: unknown): value is PiImage {
  return hasTexts(value, 'mimeType', 'data')
}
