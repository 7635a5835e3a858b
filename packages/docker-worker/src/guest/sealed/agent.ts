import { type FailureCode, limits, type SealedTurn } from '@sandbox/protocol'
import { GuestError } from '../shared/errors.ts'
import { isObject, type JsonObject, parseJson } from '../shared/json.ts'
import type { BrokerCalls } from './broker-calls.ts'
import type { HistoryEntry } from './history.ts'
import { INTERIM_TEXT_BYTES, MODEL_CALLS, USER_MESSAGE_BYTES } from './limits.ts'
import type { MemoryStore } from './memory.ts'
import { systemMessage, userMessage } from './prompt.ts'
import { describeTools, INVALID_TOOL, type OfferedTool, offeredTools } from './tools.ts'
import { type AnsweredCall, Transcript } from './transcript.ts'
import { truncate } from './truncate.ts'

/** What one run of the agent needs. */
export interface AgentRun {
  readonly turn: SealedTurn
  readonly memory: MemoryStore
  readonly history: readonly HistoryEntry[]
  readonly quarantined: readonly string[]
  readonly calls: BrokerCalls
  readonly now: Date
}

/** How a run ended. `interim` is what the model said between tool calls, last. */
export type AgentEnd =
  | { readonly ok: true; readonly text: string }
  | { readonly ok: false; readonly code: FailureCode; readonly interim: string }

/** All that the model learns about a call that failed, whatever the reason. */
export const REFUSED_TEXT = 'Refused: this call failed or is not allowed.'

interface ModelAnswer {
  readonly content: string
  readonly calls: readonly unknown[]
}

/**
 * The tool loop of one turn: asks the model, runs the tools that it calls, one after another, and asks again, at
 * most 12 times. Everything in the model's answers is checked here. Never throws for what a model or a host
 * does; a deadline (the calls' signal) ends it with `deadline`.
 */
export async function runAgent(run: AgentRun): Promise<AgentEnd> {
  let interim = ''
  const failed = (code: FailureCode): AgentEnd => ({ ok: false, code, interim })
  try {
    const tools = offeredTools(run)
    const descriptions = describeTools(tools)
    const user = userMessage(run.turn, USER_MESSAGE_BYTES)
    const transcript = new Transcript({ system: systemMessage(run), history: run.history, user })
    for (let step = 1; step <= MODEL_CALLS; step += 1) {
      const answer = readAnswer(await run.calls.model(transcript.request(run.turn.model, descriptions)))
      if (answer.calls.length === 0) return { ok: true, text: finalText(answer.content) }
      if (answer.calls.length > limits.MODEL_TOOL_CALLS) return failed('too_many_tool_calls')
      if (answer.content.trim() !== '') interim = truncate(answer.content.trim(), INTERIM_TEXT_BYTES)
      // Nobody would see the results of the last answer's calls.
      if (step < MODEL_CALLS) transcript.addGroup(answer.content, await runCalls(answer.calls, tools))
    }
    return failed('model_call_limit')
  } catch (error) {
    return failed(failureCode(error))
  }
}

/** The first choice's message. Throws `model_failed` when there is none, or when it has a wrong shape. */
function readAnswer(body: unknown): ModelAnswer {
  const choice: unknown = isObject(body) && Array.isArray(body.choices) ? body.choices[0] : undefined
  const message = isObject(choice) ? choice.message : undefined
  if (!isObject(message)) throw new GuestError('model_failed', 'the answer has no message')
  const content = message.content ?? ''
  const calls = message.tool_calls ?? []
  if (typeof content !== 'string' || !Array.isArray(calls)) {
    throw new GuestError('model_failed', 'the message has a wrong shape')
  }
  return { content, calls }
}

function finalText(content: string): string {
  const text = content.trim()
  if (text === '') throw new GuestError('answer_empty', 'the model answered nothing')
  if (text.length > limits.REPLY_TEXT_CHARS) throw new GuestError('model_failed', 'the answer is too long')
  return text
}

async function runCalls(
  calls: readonly unknown[],
  tools: ReadonlyMap<string, OfferedTool>,
): Promise<readonly AnsweredCall[]> {
  const answered: AnsweredCall[] = []
  for (const call of calls) {
    const { id, name, input } = readCall(call, tools)
    answered.push({ id, name, arguments: input, result: await runTool(tools.get(name), input) })
  }
  return answered
}

function readCall(call: unknown, tools: ReadonlyMap<string, OfferedTool>) {
  const wanted = isObject(call) && call.type === 'function' && isObject(call.function) ? call.function : {}
  const name = typeof wanted.name === 'string' && tools.has(wanted.name) ? wanted.name : INVALID_TOOL
  return { id: isObject(call) ? call.id : undefined, name, input: wanted.arguments }
}

/** The result, or one fixed text for every failure: errors tell a hostile model nothing. */
async function runTool(tool: OfferedTool | undefined, input: unknown): Promise<string> {
  try {
    const parsed = readInput(input)
    return tool === undefined || parsed === undefined ? REFUSED_TEXT : await tool.run(parsed)
  } catch {
    return REFUSED_TEXT
  }
}

/** A tool without parameters may be called with no text at all. */
function readInput(input: unknown): JsonObject | undefined {
  const value =
    input === '' || input === undefined ? {} : typeof input === 'string' ? parseJson(input) : input
  return isObject(value) ? value : undefined
}

function failureCode(error: unknown): FailureCode {
  if (!GuestError.isInstance(error)) return 'internal'
  switch (error.code) {
    case 'aborted':
      return 'deadline'
    case 'model_refused':
    case 'model_failed':
    case 'answer_empty':
    case 'request_too_large':
    case 'turn_invalid':
      return error.code
    default:
      return 'internal'
  }
}
