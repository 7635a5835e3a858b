import type { ScriptInput, ScriptMessage } from './stand-in-script.ts'

/** A request that the stand-in takes, or what OpenAI's service would say about it. */
export type ReadRequest =
  | { readonly ok: true; readonly input: ScriptInput; readonly model: string }
  | { readonly ok: false; readonly message: string }

/** The top-level fields of a Chat Completions request that the stand-in knows. Others are an error. */
const FIELDS: ReadonlySet<string> = new Set([
  'model',
  'messages',
  'tools',
  'tool_choice',
  'max_tokens',
  'max_completion_tokens',
  'stream',
  'temperature',
  'user',
])

type JsonObject = Record<string, unknown>

/** Reads a Chat Completions request, as strictly as the real service where that shows mistakes of a caller. */
export function readChatRequest(body: unknown): ReadRequest {
  if (!isObject(body)) return refuse('The body must be a JSON object.')
  const odd = Object.keys(body).find((key) => !FIELDS.has(key))
  if (odd !== undefined) return refuse(`Unrecognized request argument supplied: ${odd.slice(0, 64)}`)
  if (typeof body.model !== 'string' || body.model === '') return refuse('you must provide a model parameter')
  if (body.stream === true) return refuse('This stand-in does not stream.')
  if (body.max_tokens !== undefined && body.max_completion_tokens !== undefined) {
    return refuse('max_tokens and max_completion_tokens cannot both be set.')
  }
  const limit = body.max_tokens ?? body.max_completion_tokens
  if (limit !== undefined && !(Number.isSafeInteger(limit) && (limit as number) > 0)) {
    return refuse('The token limit must be a positive integer.')
  }
  if (!Array.isArray(body.messages) || body.messages.length === 0)
    return refuse('messages must not be empty.')
  const messages: ScriptMessage[] = []
  for (const raw of body.messages) {
    const message = readMessage(raw)
    if (message === undefined) return refuse(`Invalid message at messages[${messages.length}].`)
    messages.push(message)
  }
  const tools = readTools(body.tools)
  if (tools === undefined) return refuse('Invalid tools.')
  return { ok: true, model: body.model, input: { messages, tools, ...lastWords(messages) } }
}

function readMessage(raw: unknown): ScriptMessage | undefined {
  if (!isObject(raw) || typeof raw.role !== 'string') return undefined
  const calls = new Map<string, string>()
  for (const call of Array.isArray(raw.tool_calls) ? raw.tool_calls : []) {
    const target = isObject(call) ? call.function : undefined
    if (!isObject(call) || !isObject(target)) return undefined
    if (typeof call.id !== 'string' || typeof target.name !== 'string') return undefined
    calls.set(call.id, target.name)
  }
  const content = raw.content ?? (calls.size > 0 ? '' : undefined)
  if (typeof content !== 'string') return undefined
  const callId = raw.tool_call_id
  if ((raw.role === 'tool') !== (typeof callId === 'string')) return undefined
  return { role: raw.role, content, calls, ...(typeof callId === 'string' ? { callId } : {}) }
}

function readTools(raw: unknown): ReadonlySet<string> | undefined {
  if (raw === undefined) return new Set()
  if (!Array.isArray(raw)) return undefined
  const names = new Set<string>()
  for (const tool of raw) {
    const target = isObject(tool) && tool.type === 'function' ? tool.function : undefined
    if (!isObject(target) || typeof target.name !== 'string') return undefined
    names.add(target.name)
  }
  return names
}

/** Who said what last: the worker sends JSON of speaker and message; plain text has no speaker. */
function lastWords(messages: readonly ScriptMessage[]): { speaker: string; text: string } {
  const content = messages.findLast(({ role }) => role === 'user')?.content ?? ''
  try {
    const said: unknown = JSON.parse(content)
    if (isObject(said) && isObject(said.speaker) && typeof said.message === 'string') {
      const { name } = said.speaker
      return {
        speaker: typeof name === 'string' && name !== '' ? name : 'stranger',
        text: said.message.trim(),
      }
    }
  } catch {
    // Not JSON: plain words.
  }
  return { speaker: 'stranger', text: content.trim() }
}

function isObject(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

function refuse(message: string): ReadRequest {
  return { ok: false, message }
}
