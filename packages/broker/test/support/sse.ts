import type { ServerResponse } from 'node:http'
import type { UpstreamScript } from '@sandbox/testing'

/** An event as a provider writes it. */
export function event(data: object | string, type?: string): string {
  const text = typeof data === 'string' ? data : JSON.stringify(data)
  return `${type === undefined ? '' : `event: ${type}\n`}data: ${text}\n\n`
}

const chunk = (choices: object[], more: object = {}) =>
  event({ id: 'chatcmpl-1', object: 'chat.completion.chunk', created: 1, model: 'm', choices, ...more })

/** A piece of a Chat Completions answer. */
export function chatDelta(delta: object, finish: string | null = null): string {
  return chunk([{ index: 0, delta, finish_reason: finish }])
}

/** A whole Chat Completions stream with this text, piece by piece. */
export function chatStream(pieces: readonly string[]): string[] {
  return [
    chatDelta({ role: 'assistant', content: '' }),
    ...pieces.map((content) => chatDelta({ content })),
    chatDelta({}, 'stop'),
    chunk([], {
      usage: {
        prompt_tokens: 7,
        completion_tokens: 5,
        total_tokens: 12,
        prompt_tokens_details: { cached_tokens: 4 },
        completion_tokens_details: { reasoning_tokens: 2 },
      },
    }),
    event('[DONE]'),
  ]
}

/** Starts an event stream. */
export function startStream(response: ServerResponse): void {
  response.writeHead(200, { 'content-type': 'text/event-stream' })
  response.flushHeaders()
}

/** Answers with these events and ends. */
export function streams(events: readonly string[]): UpstreamScript {
  return (_, response) => {
    startStream(response)
    for (const one of events) response.write(one)
    response.end()
  }
}

/** A Responses stream, up to but without its terminal event. */
export function responseStream(pieces: readonly string[]): string[] {
  const response = {
    id: 'resp_1',
    object: 'response',
    created_at: 1,
    model: 'm',
    status: 'in_progress',
    output: [],
  }
  const ids = { item_id: 'msg_1', output_index: 0, content_index: 0 }
  let sequence_number = 0
  const next = (type: string, more: object) =>
    event({ type, sequence_number: sequence_number++, ...more }, type)
  const item = { id: 'msg_1', type: 'message', role: 'assistant', status: 'in_progress', content: [] }
  return [
    next('response.created', { response }),
    next('response.output_item.added', { output_index: 0, item }),
    next('response.content_part.added', { ...ids, part: { type: 'output_text', text: '', annotations: [] } }),
    ...pieces.map((delta) => next('response.output_text.delta', { ...ids, delta })),
    next('response.output_text.done', { ...ids, text: pieces.join('') }),
  ]
}

/** How a Responses stream ends well. */
export function responseCompleted(text: string): string {
  const usage = {
    input_tokens: 9,
    output_tokens: 6,
    total_tokens: 15,
    input_tokens_details: { cached_tokens: 3 },
    output_tokens_details: { reasoning_tokens: 1 },
  }
  const content = [{ type: 'output_text', text, annotations: [] }]
  const output = [{ id: 'msg_1', type: 'message', role: 'assistant', status: 'completed', content }]
  const response = {
    id: 'resp_1',
    object: 'response',
    created_at: 1,
    model: 'm',
    status: 'completed',
    output,
    usage,
  }
  return event({ type: 'response.completed', sequence_number: 99, response }, 'response.completed')
}
