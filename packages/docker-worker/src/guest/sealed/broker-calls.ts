import { CALL_ROUTES, limits, SEALED_PLACEHOLDER, TURN_NONCE_HEADER } from '@sandbox/protocol'
import type { BrokerWire } from '../shared/broker-wire.ts'
import { GuestError } from '../shared/errors.ts'
import { isObject, type JsonObject } from '../shared/json.ts'

/**
 * The calls of one turn that reach something outside the container, one at a time. Each carries the turn's
 * nonce and the placeholder in place of a key.
 */
export class BrokerCalls {
  readonly #wire: BrokerWire
  readonly #nonce: string
  readonly #signal: AbortSignal

  constructor(options: { readonly wire: BrokerWire; readonly nonce: string; readonly signal: AbortSignal }) {
    this.#wire = options.wire
    this.#nonce = options.nonce
    this.#signal = options.signal
  }

  /**
   * The model's answer, as the service gave it. Throws a {@link GuestError}: `model_refused` for a status of 400
   * to 499, `model_failed` for any other trouble, `aborted` when the turn's time is over.
   */
  async model(body: string): Promise<unknown> {
    const answer = await this.#post(CALL_ROUTES.model, body).catch((cause) => {
      if (GuestError.isInstance(cause) && cause.code === 'aborted') throw cause
      throw new GuestError('model_failed', 'the model call failed', { cause })
    })
    if (answer.status === 200) return answer.body
    const refused = answer.status >= 400 && answer.status < 500
    throw new GuestError(refused ? 'model_refused' : 'model_failed', `the model call got ${answer.status}`)
  }

  /** The text of a host tool. Throws a {@link GuestError} for any failure. */
  async tool(name: string, input: JsonObject): Promise<string> {
    const answer = await this.#postInput(CALL_ROUTES.tools + name, input)
    if (typeof answer.text === 'string') return answer.text
    throw new GuestError('tool_refused', 'the tool gave no text')
  }

  /** The texts of an MCP tool's result. Throws a {@link GuestError} for any failure, its own errors included. */
  async mcp(server: string, name: string, input: JsonObject): Promise<string> {
    const params = { name, arguments: input }
    const message = { jsonrpc: '2.0', id: 1, method: 'tools/call', params }
    const { result } = await this.#postInput(CALL_ROUTES.mcp + server, message)
    if (!isObject(result) || result.isError === true || !Array.isArray(result.content)) {
      throw new GuestError('tool_refused', 'the MCP tool failed')
    }
    const texts = result.content.flatMap((part) =>
      isObject(part) && part.type === 'text' && typeof part.text === 'string' ? [part.text] : [],
    )
    return texts.join('\n')
  }

  async #postInput(path: string, input: JsonObject): Promise<JsonObject> {
    const answer = await this.#post(path, JSON.stringify(input))
    if (answer.status === 200 && isObject(answer.body)) return answer.body
    throw new GuestError('tool_refused', `the call got ${answer.status}`)
  }

  async #post(path: string, body: string) {
    if (Buffer.byteLength(body) > limits.SEALED_CALL_BODY_BYTES) {
      throw new GuestError('tool_refused', `the body is over ${limits.SEALED_CALL_BODY_BYTES} bytes`)
    }
    return await this.#wire.call({
      method: 'POST',
      path,
      headers: { authorization: `Bearer ${SEALED_PLACEHOLDER}`, [TURN_NONCE_HEADER]: this.#nonce },
      body,
      answerBytes: limits.SEALED_CALL_ANSWER_BYTES,
      signal: this.#signal,
    })
  }
}
