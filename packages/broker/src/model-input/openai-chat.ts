import { limits } from '@sandbox/protocol'
import { localSchema, schemaProblem, schemaRoom } from '../engine/tool-schema.ts'

/** What the host decides, whatever the guest asked for. */
export interface ChatPolicy {
  readonly model: string
  /** In tokens. */
  readonly maxOutputTokens: number
  readonly tokenLimitField: 'max_tokens' | 'max_completion_tokens'
}

/** A body that may be forwarded, or why it may not. */
export type NormalisedChat =
  | {
      readonly ok: true
      readonly body: Record<string, unknown>
      /** What the guest sent and the body leaves out or sets otherwise. Names only; bounded. */
      readonly dropped: string[]
    }
  | { readonly ok: false; readonly problem: string }

type JsonObject = Record<string, unknown>

/** Thrown inside this file only; its text becomes `problem`. */
class Refusal extends Error {}

const TOOL_NAME = /^[a-z][a-z0-9_]{0,63}$/
const MESSAGE_KEYS: ReadonlySet<string> = new Set(['role', 'content', 'tool_calls', 'tool_call_id'])
const ROLES: ReadonlySet<unknown> = new Set(['system', 'user', 'assistant', 'tool'])
const TOOL_CHOICES: ReadonlySet<unknown> = new Set(['auto', 'none', 'required'])
const MAX_DROPPED = 32
const MAX_DROPPED_CHARS = 64

/**
 * Rebuilds a Chat Completions request from the fields that a guest may choose: `messages`, `tools`, `tool_choice`.
 * Model, token limit and `stream: false` are the host's. Every other field is dropped and named; what could make
 * the provider fetch something, run something of its own or read account state is refused. The guest's body is
 * not changed, and no part of it is shared except checked tool parameters.
 *
 * Texts of problems name positions and known fields, never a value.
 */
export function normaliseChat(body: JsonObject, policy: ChatPolicy): NormalisedChat {
  const dropped = new Set<string>()
  try {
    const messages = list(own(body, 'messages'), 'messages', limits.MODEL_MESSAGES).map((message, index) =>
      readMessage(message, `messages[${index}]`, dropped),
    )
    const tools = readTools(own(body, 'tools'), dropped)
    const choice = readToolChoice(own(body, 'tool_choice'))
    const rebuilt: JsonObject = {
      model: policy.model,
      messages,
      ...(tools.length === 0 ? {} : { tools }),
      // Without tools, providers refuse a choice between them.
      ...(choice === undefined || tools.length === 0 ? {} : { tool_choice: choice }),
      stream: false,
      [policy.tokenLimitField]: policy.maxOutputTokens,
    }
    for (const [key, value] of Object.entries(body)) {
      const kept = key === 'messages' || key === 'tools' || (key === 'tool_choice' && tools.length > 0)
      if (!kept && own(rebuilt, key) !== value) drop(dropped, '', key)
    }
    return { ok: true, body: rebuilt, dropped: [...dropped] }
  } catch (error) {
    if (error instanceof Refusal) return { ok: false, problem: error.message }
    throw error
  }
}

function readMessage(value: unknown, where: string, dropped: Set<string>): JsonObject {
  const message = object(value, where)
  if (Object.keys(message).some((key) => !MESSAGE_KEYS.has(key))) {
    throw new Refusal(`${where} has a field other than role, content, tool_calls and tool_call_id`)
  }
  const role = own(message, 'role')
  if (!ROLES.has(role)) throw new Refusal(`${where}.role is none of system, user, assistant and tool`)
  const calls = readToolCalls(own(message, 'tool_calls'), role, `${where}.tool_calls`, dropped)
  const content = own(message, 'content') ?? (calls.length > 0 ? '' : undefined)
  if (typeof content !== 'string') throw new Refusal(`${where}.content is not a string`)
  const id = own(message, 'tool_call_id')
  if (role === 'tool' ? !isCallId(id) : id !== undefined) {
    throw new Refusal(
      role === 'tool'
        ? `${where}.tool_call_id is not a string of 1 to ${limits.TOOL_CALL_ID_CHARS} characters`
        : `${where}.tool_call_id belongs to role tool only`,
    )
  }
  return {
    role,
    content,
    ...(calls.length === 0 ? {} : { tool_calls: calls }),
    ...(id === undefined ? {} : { tool_call_id: id }),
  }
}

function readToolCalls(value: unknown, role: unknown, where: string, dropped: Set<string>): JsonObject[] {
  if (value === undefined) return []
  if (role !== 'assistant') throw new Refusal(`${where} belongs to role assistant only`)
  return list(value, where, limits.MODEL_TOOL_CALLS).map((item, index) => {
    const at = `${where}[${index}]`
    const call = object(item, at)
    const target = functionOf(call, at)
    const id = own(call, 'id')
    const args = own(target, 'arguments')
    if (!isCallId(id))
      throw new Refusal(`${at}.id is not a string of 1 to ${limits.TOOL_CALL_ID_CHARS} characters`)
    if (typeof args !== 'string') throw new Refusal(`${at}.function.arguments is not a string`)
    dropOthers(dropped, 'messages[].tool_calls[].', call, ['id', 'type', 'function'])
    dropOthers(dropped, 'messages[].tool_calls[].function.', target, ['name', 'arguments'])
    return { id, type: 'function', function: { name: own(target, 'name'), arguments: args } }
  })
}

function readTools(value: unknown, dropped: Set<string>): JsonObject[] {
  if (value === undefined) return []
  const names = new Set<unknown>()
  const room = schemaRoom()
  return list(value, 'tools', limits.MODEL_TOOLS).map((item, index) => {
    const at = `tools[${index}]`
    const tool = object(item, at)
    const target = functionOf(tool, at)
    const name = own(target, 'name')
    const description = own(target, 'description')
    if (names.has(name)) throw new Refusal(`${at}.function.name is taken by another tool`)
    names.add(name)
    if (typeof description !== 'string') throw new Refusal(`${at}.function.description is not a string`)
    const given = object(own(target, 'parameters'), `${at}.function.parameters`)
    const problem = schemaProblem(given, room)
    if (problem !== undefined) throw new Refusal(`${at}.function.parameters: ${problem}`)
    const parameters = localSchema(given)
    for (const keyword of parameters.dropped) drop(dropped, 'tools[].function.parameters.', keyword)
    dropOthers(dropped, 'tools[].', tool, ['type', 'function'])
    dropOthers(dropped, 'tools[].function.', target, ['name', 'description', 'parameters'])
    return { type: 'function', function: { name, description, parameters: parameters.schema } }
  })
}

function readToolChoice(value: unknown): unknown {
  if (value === undefined || TOOL_CHOICES.has(value)) return value
  throw new Refusal('tool_choice is none of auto, none and required')
}

/** The `function` of a call or a tool of type `function` with a valid name. */
function functionOf(entry: JsonObject, where: string): JsonObject {
  if (own(entry, 'type') !== 'function') throw new Refusal(`${where}.type is not function`)
  const target = object(own(entry, 'function'), `${where}.function`)
  const name = own(target, 'name')
  if (typeof name !== 'string' || !TOOL_NAME.test(name)) {
    throw new Refusal(`${where}.function.name does not match [a-z][a-z0-9_]{0,63}`)
  }
  return target
}

function list(value: unknown, where: string, most: number): unknown[] {
  if (!Array.isArray(value)) throw new Refusal(`${where} is not an array`)
  if (value.length > most) throw new Refusal(`${where} has more than ${most} entries`)
  return value
}

function object(value: unknown, where: string): JsonObject {
  if (typeof value === 'object' && value !== null && !Array.isArray(value)) return value as JsonObject
  throw new Refusal(`${where} is not an object`)
}

function isCallId(value: unknown): value is string {
  return typeof value === 'string' && value.length >= 1 && value.length <= limits.TOOL_CALL_ID_CHARS
}

function dropOthers(dropped: Set<string>, prefix: string, value: JsonObject, kept: readonly string[]): void {
  for (const key of Object.keys(value)) if (!kept.includes(key)) drop(dropped, prefix, key)
}

/** Names come from the guest: a few, short, and printable. */
function drop(dropped: Set<string>, prefix: string, key: string): void {
  if (dropped.size >= MAX_DROPPED) return
  dropped.add(prefix + key.slice(0, MAX_DROPPED_CHARS).replace(/[^\w$.-]/g, '?'))
}

function own(value: JsonObject, key: string): unknown {
  return Object.hasOwn(value, key) ? value[key] : undefined
}
