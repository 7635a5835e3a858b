import type { ServerResponse } from 'node:http'
import type { SeenRequest, UpstreamScript } from '@sandbox/testing'

/** An event as the Messages API writes it. */
export function event(data: { readonly type: string } & Record<string, unknown>): string {
  return `event: ${data.type}\ndata: ${JSON.stringify(data)}\n\n`
}

const USAGE = {
  input_tokens: 7,
  cache_read_input_tokens: 4,
  cache_creation_input_tokens: 2,
  output_tokens: 1,
}

/** Blocks of an answer. */
export type Block =
  | { readonly type: 'text'; readonly text: string }
  | { readonly type: 'thinking'; readonly thinking: string; readonly signature: string }
  | { readonly type: 'redacted_thinking'; readonly data: string }
  | { readonly type: 'tool_use'; readonly id: string; readonly name: string; readonly input: object }

/** A whole answer, as JSON. */
function message(blocks: readonly Block[]): object {
  const stop_reason = blocks.some(({ type }) => type === 'tool_use') ? 'tool_use' : 'end_turn'
  return {
    id: 'msg_1',
    type: 'message',
    role: 'assistant',
    model: 'claude-scripted',
    content: blocks,
    stop_reason,
    stop_sequence: null,
    usage: { ...USAGE, output_tokens: 5 },
  }
}

/** A whole answer, event by event. */
export function messageStream(blocks: readonly Block[]): string[] {
  const whole = message(blocks) as { stop_reason: string }
  return [
    event({ type: 'message_start', message: { ...whole, content: [], stop_reason: null, usage: USAGE } }),
    event({ type: 'ping' }),
    ...blocks.flatMap((block, index) => [
      event({ type: 'content_block_start', index, content_block: emptied(block) }),
      ...deltasOf(block).map((delta) => event({ type: 'content_block_delta', index, delta })),
      event({ type: 'content_block_stop', index }),
    ]),
    event({
      type: 'message_delta',
      delta: { stop_reason: whole.stop_reason, stop_sequence: null },
      usage: { output_tokens: 5 },
    }),
    event({ type: 'message_stop' }),
  ]
}

function emptied(block: Block): object {
  switch (block.type) {
    case 'text':
      return { type: 'text', text: '' }
    case 'thinking':
      return { type: 'thinking', thinking: '', signature: '' }
    case 'tool_use':
      return { ...block, input: {} }
    default:
      return block
  }
}

function deltasOf(block: Block): object[] {
  switch (block.type) {
    case 'text':
      return pieces(block.text).map((text) => ({ type: 'text_delta', text }))
    case 'thinking':
      return [
        ...pieces(block.thinking).map((thinking) => ({ type: 'thinking_delta', thinking })),
        { type: 'signature_delta', signature: block.signature },
      ]
    case 'tool_use':
      return pieces(JSON.stringify(block.input)).map((partial_json) => ({
        type: 'input_json_delta',
        partial_json,
      }))
    default:
      return []
  }
}

function pieces(text: string): string[] {
  return text.match(/.{1,7}/gsu) ?? []
}

/** An error as the API answers it. */
export function fails(
  status: number,
  type: string,
  text: string,
  headers: Readonly<Record<string, string>> = {},
): UpstreamScript {
  return (_, response) => {
    response.writeHead(status, { 'content-type': 'application/json', 'request-id': 'req_1', ...headers })
    response.end(JSON.stringify({ type: 'error', error: { type, message: text }, request_id: 'req_1' }))
  }
}

/** Starts an event stream. */
export function startStream(response: ServerResponse): void {
  response.writeHead(200, { 'content-type': 'text/event-stream; charset=utf-8', 'request-id': 'req_1' })
  response.flushHeaders()
}

/** Answers with these events, each in a write of its own, and ends. */
export function streams(events: readonly string[]): UpstreamScript {
  return (_, response) => {
    startStream(response)
    for (const one of events) response.write(one)
    response.end()
  }
}

/** A service that answers with these blocks, streamed when it is asked to, and counts tokens. */
export function answers(
  blocks: readonly Block[] | ((request: SeenRequest) => readonly Block[]),
): UpstreamScript {
  return (request, response, incoming) => {
    if (request.url.startsWith('/v1/messages/count_tokens')) return { input_tokens: 42 }
    const found = typeof blocks === 'function' ? blocks(request) : blocks
    if (JSON.parse(request.body).stream !== true) return message(found)
    return streams(messageStream(found))(request, response, incoming)
  }
}

/** The body behind `transfer-encoding: chunked`, as far as it is whole. */
export function unchunked(body: string): string {
  let left = Buffer.from(body)
  const parts: Buffer[] = []
  for (;;) {
    const line = left.indexOf('\r\n')
    const size = line === -1 ? 0 : Number.parseInt(left.subarray(0, line).toString(), 16)
    if (!(size > 0)) return Buffer.concat(parts).toString()
    parts.push(left.subarray(line + 2, line + 2 + size))
    left = left.subarray(line + 4 + size)
  }
}
