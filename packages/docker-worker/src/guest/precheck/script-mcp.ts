import { CALL_ROUTES, limits, type PrecheckJob, SEALED_PLACEHOLDER } from '@sandbox/protocol'
import type { BrokerWire, WireAnswer } from '../shared/broker-wire.ts'
import { GuestError, type GuestErrorCode } from '../shared/errors.ts'
import { isObject, type JsonObject, parseJson } from '../shared/json.ts'
import { cutText } from './cut-text.ts'

/** What a tool call of a script throws: words for whoever reads why the script failed. */
class ToolCallError extends Error {
  constructor(message: string) {
    super(cutText(message, limits.PRECHECK_ERROR_CHARS))
    this.name = 'ToolCallError'
  }
}

/** What {@link ScriptMcp} needs. */
export interface ScriptMcpParts {
  readonly wire: BrokerWire
  readonly servers: PrecheckJob['servers']
  /** Fires when the script's time is over. */
  readonly signal: AbortSignal
}

/** Why the host refuses a call, by status. */
const REFUSALS: Readonly<Record<number, string>> = {
  400: 'its arguments were not accepted',
  402: 'there is no credit left for it',
  403: 'it is not granted to this schedule',
  404: 'its server is not granted to this schedule',
  409: 'another call was still running',
  410: 'the run is over',
  413: `its arguments are over ${limits.PRECHECK_CALL_BODY_BYTES} bytes`,
  429: 'the calls of this run are used up',
  502: 'its server failed or gave no usable answer',
  504: 'its server did not answer in time',
}

/** Why there is no answer that could be read. */
const LOST: Partial<Record<GuestErrorCode, string>> = {
  aborted: 'the time of the script is over',
  timeout: 'there was no answer in time',
  connection_lost: 'the connection to the host was lost',
  answer_too_large: `the answer is over ${limits.SEALED_CALL_ANSWER_BYTES} bytes`,
  answer_invalid: 'the answer is no JSON',
}

/** The tools that a script may call. The host takes one call at a time, so calls wait for each other. */
export class ScriptMcp {
  readonly #parts: ScriptMcpParts
  #last: Promise<unknown> = Promise.resolve()
  #calls = 0

  constructor(parts: ScriptMcpParts) {
    this.#parts = parts
  }

  /** The texts of a tool's result, joined by line breaks. Throws a {@link ToolCallError}. */
  readonly call = async (server: string, tool: string, input: JsonObject = {}): Promise<string> =>
    textOf(await this.#result(server, tool, input))

  /** The structured result of a tool, or its text read as JSON. Throws a {@link ToolCallError}. */
  readonly json = async (server: string, tool: string, input: JsonObject = {}): Promise<unknown> => {
    const result = await this.#result(server, tool, input)
    if (result.structuredContent !== undefined) return result.structuredContent
    const value = parseJson(textOf(result))
    if (value === undefined) throw new ToolCallError(`${server}/${tool}: the result is no JSON`)
    return value
  }

  async #result(server: string, tool: string, input: JsonObject): Promise<JsonObject> {
    const name = `${server}/${tool}`
    this.#checkGranted(server, tool, name)
    if (!isObject(input)) throw new ToolCallError(`${name}: the arguments have to be an object`)
    this.#calls += 1
    const params = { name: tool, arguments: input }
    const body = JSON.stringify({ jsonrpc: '2.0', id: this.#calls, method: 'tools/call', params })
    if (Buffer.byteLength(body) > limits.PRECHECK_CALL_BODY_BYTES) throw refusal(name, 413)
    const sent = this.#last.then(() => this.#post(server, body, name))
    this.#last = sent.catch(() => {})
    return resultOf(await sent, name)
  }

  #checkGranted(server: string, tool: string, name: string): void {
    const { servers } = this.#parts
    if (servers.some((one) => one.server === server && one.tools.includes(tool))) return
    const all = servers.flatMap((one) => one.tools.map((other) => `${one.server}/${other}`))
    throw new ToolCallError(
      `${name}: it is not granted to this schedule, which may call ${all.join(', ') || 'nothing'}`,
    )
  }

  async #post(server: string, body: string, name: string): Promise<WireAnswer> {
    try {
      return await this.#parts.wire.call({
        method: 'POST',
        path: CALL_ROUTES.mcp + server,
        headers: { authorization: `Bearer ${SEALED_PLACEHOLDER}` },
        body,
        answerBytes: limits.SEALED_CALL_ANSWER_BYTES,
        signal: this.#parts.signal,
      })
    } catch (error) {
      const said = GuestError.isInstance(error) ? LOST[error.code] : undefined
      throw new ToolCallError(`${name}: ${said ?? 'the call failed'}`)
    }
  }
}

function resultOf(answer: WireAnswer, name: string): JsonObject {
  if (answer.status !== 200) throw refusal(name, answer.status)
  const { result, error } = isObject(answer.body) ? answer.body : {}
  if (isObject(error)) throw new ToolCallError(`${name}: ${error.message} (${error.code})`)
  if (!isObject(result)) throw new ToolCallError(`${name}: the server gave no result`)
  if (result.isError === true) throw new ToolCallError(`${name}: ${textOf(result) || 'the tool failed'}`)
  return result
}

function refusal(name: string, status: number): ToolCallError {
  return new ToolCallError(`${name}: ${REFUSALS[status] ?? `the call got ${status}`}`)
}

function textOf({ content }: JsonObject): string {
  const parts: readonly unknown[] = Array.isArray(content) ? content : []
  return parts
    .flatMap((part) =>
      isObject(part) && part.type === 'text' && typeof part.text === 'string' ? [part.text] : [],
    )
    .join('\n')
}
