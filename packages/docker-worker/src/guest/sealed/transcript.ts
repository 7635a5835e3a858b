import { limits } from '@sandbox/protocol'
import { GuestError } from '../shared/errors.ts'
import { isObject, jsonBytes, parseJson } from '../shared/json.ts'
import type { HistoryEntry } from './history.ts'
import {
  INTERIM_TEXT_BYTES,
  MODEL_REQUEST_BYTES,
  REPLAYED_ARGUMENTS_BYTES,
  TOOL_RESULT_BYTES,
} from './limits.ts'
import { truncate } from './truncate.ts'

/** One tool call of the model with its result, as it is told to the model again. */
export interface AnsweredCall {
  /** The id that the model chose; anything. */
  readonly id: unknown
  /** A declared tool name. */
  readonly name: string
  /** The arguments that the model chose; anything. */
  readonly arguments: unknown
  readonly result: string
}

type ChatMessage =
  | { readonly role: 'system' | 'user'; readonly content: string }
  | { readonly role: 'assistant'; readonly content: string; readonly tool_calls?: readonly ToolCall[] }
  | { readonly role: 'tool'; readonly tool_call_id: string; readonly content: string }

interface ToolCall {
  readonly id: string
  readonly type: 'function'
  readonly function: { readonly name: string; readonly arguments: string }
}

/** Replaces arguments that are too long, no text, or no JSON object. */
const LEFT_OUT = '{"omitted":true}'

/**
 * What the model is told, within the size limits of a request. A group is an assistant message with the replies
 * to its tool calls; a group is kept or dropped whole.
 */
export class Transcript {
  readonly #system: ChatMessage
  readonly #history: ChatMessage[]
  readonly #user: ChatMessage
  readonly #groups: ChatMessage[][] = []
  readonly #usedIds = new Set<string>()
  #step = 0

  constructor(parts: {
    readonly system: string
    readonly history: readonly HistoryEntry[]
    readonly user: string
  }) {
    this.#system = { role: 'system', content: parts.system }
    this.#history = parts.history.map(({ role, content }) => ({ role, content }))
    this.#user = { role: 'user', content: parts.user }
  }

  /** Adds one answer of the model and the results of its tool calls, in their order. */
  addGroup(content: string, calls: readonly AnsweredCall[]): void {
    this.#step += 1
    const told = calls.map((call, index) => ({ ...call, id: this.#claimId(call.id, index) }))
    this.#groups.push([
      {
        role: 'assistant',
        content: truncate(content, INTERIM_TEXT_BYTES),
        tool_calls: told.map((call) => ({
          id: call.id,
          type: 'function',
          function: { name: call.name, arguments: replayed(call.arguments) },
        })),
      },
      ...told.map(({ id, result }) => ({
        role: 'tool' as const,
        tool_call_id: id,
        content: truncate(result, TOOL_RESULT_BYTES),
      })),
    ])
  }

  /**
   * The body of the next model call, at most 192 KiB and 128 messages: the oldest history is dropped first, then
   * the oldest groups. Throws a {@link GuestError} `request_too_large` when that is not enough.
   */
  request(model: string, tools: readonly unknown[]): string {
    const frame = jsonBytes({ model, messages: [], tools })
    for (;;) {
      const messages = [this.#system, ...this.#history, this.#user, ...this.#groups.flat()]
      const bytes = messages.reduce((sum, message) => sum + jsonBytes(message) + 1, frame)
      if (bytes <= MODEL_REQUEST_BYTES && messages.length <= limits.MODEL_MESSAGES) {
        return JSON.stringify({ model, messages, tools })
      }
      if (!this.#dropOldest()) {
        throw new GuestError('request_too_large', `the model request is over ${MODEL_REQUEST_BYTES} bytes`)
      }
    }
  }

  #dropOldest(): boolean {
    if (this.#history.length === 0) return this.#groups.shift() !== undefined
    this.#history.shift()
    // An answer is not left without its question.
    while (this.#history[0]?.role === 'assistant') this.#history.shift()
    return true
  }

  /** Keeps an id that is valid and unused; otherwise makes one. */
  #claimId(id: unknown, index: number): string {
    let claimed = isCallId(id) ? id : `call_${this.#step}_${index}`
    for (let suffix = 1; this.#usedIds.has(claimed); suffix += 1) {
      claimed = suffix === 1 ? `call_${this.#step}_${index}` : `call_${this.#step}_${index}_${suffix}`
    }
    this.#usedIds.add(claimed)
    return claimed
  }
}

function isCallId(id: unknown): id is string {
  return typeof id === 'string' && /^[\x21-\x7e]+$/.test(id) && id.length <= limits.TOOL_CALL_ID_CHARS
}

function replayed(value: unknown): string {
  if (typeof value !== 'string' || jsonBytes(value) > REPLAYED_ARGUMENTS_BYTES) return LEFT_OUT
  return isObject(parseJson(value)) ? value : LEFT_OUT
}
