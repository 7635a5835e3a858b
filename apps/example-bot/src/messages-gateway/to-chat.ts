/** A JSON object of a request, whatever is in it. */
export type JsonObject = Readonly<Record<string, unknown>>

/** What a service calls the limit of output tokens. */
export type TokenLimitField = 'max_tokens' | 'max_completion_tokens'

/**
 * The same request in Chat Completions: system, text, pictures, tools, calls and their results. Thinking, cache marks
 * and what else only the Messages API has are left out. The broker has checked the request before.
 */
export function toChat(request: JsonObject, limitField: TokenLimitField = 'max_tokens'): JsonObject {
  const { model, max_tokens, temperature, top_p, stop_sequences, stream } = request
  const tools = objects(request.tools)
  return {
    model,
    messages: [...systemMessages(request.system), ...objects(request.messages).flatMap(chatMessages)],
    [limitField]: max_tokens,
    ...(temperature === undefined ? {} : { temperature }),
    ...(top_p === undefined ? {} : { top_p }),
    ...(Array.isArray(stop_sequences) ? { stop: stop_sequences.slice(0, 4) } : {}),
    ...(tools.length === 0 ? {} : { tools: tools.map(chatTool), ...toolChoice(request.tool_choice) }),
    ...(stream === true ? { stream, stream_options: { include_usage: true } } : {}),
  }
}

function systemMessages(system: unknown): readonly JsonObject[] {
  const content = textOf(system)
  return content === '' ? [] : [{ role: 'system', content }]
}

function chatMessages({ role, content }: JsonObject): readonly JsonObject[] {
  if (role === 'system') return systemMessages(content)
  const blocks = blocksOf(content)
  return role === 'assistant' ? [assistantMessage(blocks)] : userMessages(blocks)
}

function assistantMessage(blocks: readonly JsonObject[]): JsonObject {
  const text = textOf(blocks)
  const calls = blocks
    .filter(({ type }) => type === 'tool_use')
    .map(({ id, name, input }) => ({
      id,
      type: 'function',
      function: { name, arguments: JSON.stringify(input ?? {}) },
    }))
  return {
    role: 'assistant',
    content: text === '' && calls.length > 0 ? null : text,
    ...(calls.length === 0 ? {} : { tool_calls: calls }),
  }
}

/** Results of tools come first and as messages of their own; pictures in them follow as a person's. */
function userMessages(blocks: readonly JsonObject[]): readonly JsonObject[] {
  const results = blocks.filter(({ type }) => type === 'tool_result')
  const said = [
    ...results.flatMap(({ content }) => blocksOf(content).filter(isPicture)),
    ...blocks.filter(isSaid),
  ]
  return [
    ...results.map(({ tool_use_id, content }) => ({
      role: 'tool',
      tool_call_id: tool_use_id,
      content: textOf(content),
    })),
    ...(said.length === 0
      ? []
      : [{ role: 'user', content: said.some(isPicture) ? said.map(chatPart) : textOf(said) }]),
  ]
}

function isPicture({ type }: JsonObject): boolean {
  return type === 'image'
}

function isSaid({ type }: JsonObject): boolean {
  return type === 'text' || type === 'image'
}

function chatPart(block: JsonObject): JsonObject {
  if (!isPicture(block)) return { type: 'text', text: block.text }
  const { media_type, data } = block.source as JsonObject
  return { type: 'image_url', image_url: { url: `data:${media_type};base64,${data}` } }
}

function chatTool({ name, description, input_schema }: JsonObject): JsonObject {
  return {
    type: 'function',
    function: { name, ...(description === undefined ? {} : { description }), parameters: input_schema },
  }
}

function toolChoice(choice: unknown): JsonObject {
  if (!isObject(choice)) return {}
  const named = { type: 'function', function: { name: choice.name } }
  const words: JsonObject = { auto: 'auto', any: 'required', none: 'none', tool: named }
  const found = words[String(choice.type)]
  return found === undefined ? {} : { tool_choice: found }
}

function blocksOf(content: unknown): readonly JsonObject[] {
  return typeof content === 'string' ? [{ type: 'text', text: content }] : objects(content)
}

function textOf(content: unknown): string {
  return blocksOf(content)
    .flatMap(({ type, text }) => (type === 'text' && typeof text === 'string' ? [text] : []))
    .join('\n')
}

function objects(value: unknown): readonly JsonObject[] {
  return Array.isArray(value) ? value.filter(isObject) : []
}

function isObject(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
