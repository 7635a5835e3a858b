import {
  type AdmittedCall,
  CallRefusal,
  type CallRoute,
  parseMessage,
  raceSignal,
  reserveCredit,
} from '@sandbox/broker/engine'
import { snapshotScope } from '@sandbox/credential-scope'
import { imageProblem, limits, PI_PLACEHOLDER } from '@sandbox/protocol'
import type { PiToolAnswer } from '../host-tool.ts'
import type { ResolvedPiOptions } from '../options.ts'
import type { PiTurns } from '../pi-turns.ts'
import type { ResolvedPiTool } from '../tool-options.ts'

/** What the tool routes are made of. */
export interface ToolRouteOptions {
  readonly options: ResolvedPiOptions
  readonly turns: PiTurns
}

/** `/tools/<name>`: runs one host tool with `input` of the body. Who asks is known from the turn alone (PB-11). */
export function toolRoute(tool: ResolvedPiTool, { options, turns }: ToolRouteOptions): CallRoute {
  return {
    kind: 'tool',
    name: tool.spec.name,
    policy: { method: 'POST', headers: 'any', placeholder: PI_PLACEHOLDER },
    requestBytes: limits.PI_CALL_BODY_BYTES,
    answerBytes: limits.PI_CALL_ANSWER_BYTES,
    idleMs: options.idleMs,
    lane: 'parallel',
    unusable: 'tool_failed',
    run: (call) => runTool(tool, turns, call),
  }
}

async function runTool(tool: ResolvedPiTool, turns: PiTurns, call: AdmittedCall): Promise<unknown> {
  const { input } = await parseMessage(call.bytes, call.signal)
  if (!isObject(input)) throw new CallRefusal('input_refused', { problem: 'input: must be an object' })
  // Where it does not fit is for the host alone: the guest has the schema.
  call.record.problem = tool.check(input)
  if (call.record.problem !== undefined) throw new CallRefusal('input_refused')
  await reserveCredit(call)
  const { profile, thinking, deadline } = turns.contextOf(call.turn)
  const context = Object.freeze({
    ...snapshotScope(call.turn.scope),
    profile,
    thinking,
    deadline,
    signal: call.signal,
  })
  return rebuilt(await raceSignal(execute(tool, input, context), call.signal))
}

/** Also turns what the tool throws at once into a rejection. Nothing of it is passed on. */
async function execute(
  tool: ResolvedPiTool,
  input: Readonly<Record<string, unknown>>,
  context: Parameters<ResolvedPiTool['execute']>[1],
): Promise<unknown> {
  try {
    return await tool.execute(input, context)
  } catch (cause) {
    throw new CallRefusal('tool_failed', { cause })
  }
}

/** W-41 and PB-13: the known fields of an answer, each of its type and within its bounds. */
function rebuilt(answer: unknown): PiToolAnswer {
  if (!isObject(answer) || typeof answer.ok !== 'boolean') throw new CallRefusal('tool_failed')
  const { ok, image } = answer
  const text = shortText(answer.text, limits.PI_TOOL_TEXT_CHARS)
  const error = shortText(answer.error, limits.PI_ERROR_CHARS)
  if (image !== undefined && imageProblem(image) !== undefined) throw new CallRefusal('tool_failed')
  const { mimeType, data } = (image ?? {}) as NonNullable<PiToolAnswer['image']>
  return {
    ok,
    ...(text === undefined ? {} : { text }),
    ...(error === undefined ? {} : { error }),
    ...(image === undefined ? {} : { image: { mimeType, data } }),
  }
}

function shortText(value: unknown, chars: number): string | undefined {
  if (value === undefined) return undefined
  if (typeof value !== 'string' || value.length > chars) throw new CallRefusal('tool_failed')
  return value
}

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
