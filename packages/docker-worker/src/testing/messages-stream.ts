/** What a scripted Messages service says in one answer: texts and calls of tools, in order. */
export type ScriptedPart =
  | string
  | { readonly tool: string; readonly input: Record<string, unknown>; readonly id?: string }

/** The server-sent events of one streamed answer, as the Messages API sends them. Text comes in small pieces. */
export function messageEvents(parts: readonly ScriptedPart[], inputTokens = 10): readonly string[] {
  const usage = {
    input_tokens: inputTokens,
    output_tokens: 5,
    cache_creation_input_tokens: 0,
    cache_read_input_tokens: 0,
  }
  const message = { id: 'msg_1', type: 'message', role: 'assistant', model: 'm', content: [], usage }
  const calls = parts.some((part) => typeof part !== 'string')
  return [
    event({ type: 'message_start', message: { ...message, stop_reason: null, stop_sequence: null } }),
    ...parts.flatMap((part, index) => blockEvents(part, index)),
    event({
      type: 'message_delta',
      delta: { stop_reason: calls ? 'tool_use' : 'end_turn', stop_sequence: null },
      usage: { output_tokens: 5 },
    }),
    event({ type: 'message_stop' }),
  ]
}

function blockEvents(part: ScriptedPart, index: number): string[] {
  const start = (content_block: object) => event({ type: 'content_block_start', index, content_block })
  const delta = (piece: object) => event({ type: 'content_block_delta', index, delta: piece })
  const stop = event({ type: 'content_block_stop', index })
  if (typeof part === 'string') {
    const pieces = part.match(/.{1,8}/gsu) ?? []
    return [
      start({ type: 'text', text: '' }),
      ...pieces.map((text) => delta({ type: 'text_delta', text })),
      stop,
    ]
  }
  const id = part.id ?? `toolu_${index}_${Math.random().toString(36).slice(2)}`
  return [
    start({ type: 'tool_use', id, name: part.tool, input: {} }),
    delta({ type: 'input_json_delta', partial_json: JSON.stringify(part.input) }),
    stop,
  ]
}

function event(data: { readonly type: string } & Readonly<Record<string, unknown>>): string {
  return `event: ${data.type}\ndata: ${JSON.stringify(data)}\n\n`
}
