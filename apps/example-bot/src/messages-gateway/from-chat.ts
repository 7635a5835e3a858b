import { randomUUID } from 'node:crypto'
import type { JsonObject } from './to-chat.ts'

const STOP_REASONS: Readonly<Record<string, string>> = {
  stop: 'end_turn',
  length: 'max_tokens',
  tool_calls: 'tool_use',
  function_call: 'tool_use',
  content_filter: 'refusal',
}

/** The events of a whole answer, for a service that does not stream. */
export function messageEvents(answer: JsonObject): readonly MessageEvent[] {
  const stream = new MessageStream()
  const choices = list(answer.choices).map(({ message, ...choice }) => {
    const { tool_calls, ...delta } = object(message)
    return {
      ...choice,
      delta: { ...delta, tool_calls: list(tool_calls).map((call, index) => ({ ...call, index })) },
    }
  })
  return [...stream.push({ ...answer, choices }), ...stream.end()]
}

/** An event of a Messages stream. */
export type MessageEvent = JsonObject & { readonly type: string }

/** A whole answer of Chat Completions as one of the Messages API. */
export function toMessage(answer: JsonObject): JsonObject {
  const [choice] = list(answer.choices)
  const message = object(choice?.message)
  const text = typeof message.content === 'string' ? message.content : ''
  const calls = list(message.tool_calls).map((call) => {
    const { name, arguments: input } = object(call.function)
    return { type: 'tool_use', id: call.id, name, input: parsed(input) }
  })
  return {
    id: `msg_${randomUUID()}`,
    type: 'message',
    role: 'assistant',
    model: answer.model,
    content: [...(text === '' ? [] : [{ type: 'text', text }]), ...calls],
    stop_reason: stopReason(choice?.finish_reason, calls.length > 0),
    stop_sequence: null,
    usage: usageOf(answer.usage),
  }
}

/**
 * Turns the pieces of a Chat Completions stream into events of a Messages stream. `push` takes one piece, `end` what
 * is left when the stream is over: without a reason to stop it was broken off, and the events say so.
 */
export class MessageStream {
  #begun = false
  /** The block that is open: the index of a tool call, or `text`. */
  #open: number | 'text' | undefined
  #block = -1
  #called = false
  #finish: unknown
  #usage: JsonObject = {}

  push(piece: JsonObject): readonly MessageEvent[] {
    const events: MessageEvent[] = []
    if (!this.#begun) {
      this.#begun = true
      events.push(messageStart(piece.model))
    }
    if (piece.usage !== undefined && piece.usage !== null) this.#usage = object(piece.usage)
    const [choice] = list(piece.choices)
    if (choice === undefined) return events
    const { content, tool_calls } = object(choice.delta)
    if (typeof content === 'string' && content !== '') {
      events.push(...this.#opened('text', { type: 'text', text: '' }))
      events.push(this.#delta({ type: 'text_delta', text: content }))
    }
    for (const call of list(tool_calls)) events.push(...this.#call(call))
    if (choice.finish_reason !== undefined && choice.finish_reason !== null)
      this.#finish = choice.finish_reason
    return events
  }

  end(): readonly MessageEvent[] {
    if (this.#finish === undefined) {
      return [{ type: 'error', error: { type: 'api_error', message: 'The answer broke off.' } }]
    }
    return [
      ...this.#closed(),
      {
        type: 'message_delta',
        delta: { stop_reason: stopReason(this.#finish, this.#called), stop_sequence: null },
        usage: usageOf(this.#usage),
      },
      { type: 'message_stop' },
    ]
  }

  #call(call: JsonObject): readonly MessageEvent[] {
    const index = typeof call.index === 'number' ? call.index : 0
    const { name, arguments: input } = object(call.function)
    this.#called = true
    const opened = this.#opened(index, { type: 'tool_use', id: call.id, name, input: {} })
    if (typeof input !== 'string' || input === '') return opened
    return [...opened, this.#delta({ type: 'input_json_delta', partial_json: input })]
  }

  #opened(what: number | 'text', content_block: JsonObject): readonly MessageEvent[] {
    if (this.#open === what) return []
    const closed = this.#closed()
    this.#open = what
    this.#block += 1
    return [...closed, { type: 'content_block_start', index: this.#block, content_block }]
  }

  #closed(): readonly MessageEvent[] {
    if (this.#open === undefined) return []
    this.#open = undefined
    return [{ type: 'content_block_stop', index: this.#block }]
  }

  #delta(delta: JsonObject): MessageEvent {
    return { type: 'content_block_delta', index: this.#block, delta }
  }
}

function messageStart(model: unknown): MessageEvent {
  return {
    type: 'message_start',
    message: {
      id: `msg_${randomUUID()}`,
      type: 'message',
      role: 'assistant',
      model,
      content: [],
      stop_reason: null,
      stop_sequence: null,
      usage: usageOf({}),
    },
  }
}

function stopReason(finish: unknown, called: boolean): string {
  // Some services say "stop" when they call a tool.
  if (called && finish === 'stop') return 'tool_use'
  return STOP_REASONS[String(finish)] ?? 'end_turn'
}

function usageOf(usage: unknown): JsonObject {
  const { prompt_tokens, completion_tokens, prompt_tokens_details } = object(usage)
  const all = count(prompt_tokens)
  const cached = Math.min(all, count(object(prompt_tokens_details).cached_tokens))
  return {
    input_tokens: all - cached,
    output_tokens: count(completion_tokens),
    ...(cached === 0 ? {} : { cache_read_input_tokens: cached }),
  }
}

function count(value: unknown): number {
  return typeof value === 'number' && Number.isSafeInteger(value) && value > 0 ? value : 0
}

function parsed(input: unknown): JsonObject {
  try {
    return object(JSON.parse(String(input)))
  } catch {
    return {}
  }
}

function list(value: unknown): readonly JsonObject[] {
  return Array.isArray(value) ? value.map(object) : []
}

function object(value: unknown): JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as JsonObject) : {}
}
