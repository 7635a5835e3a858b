import { snapshotScope } from '@sandbox/credential-scope'
import { limits } from '@sandbox/protocol'
import { raceSignal } from '../engine/call/call-signal.ts'
import { parseObject } from '../engine/call/read-body.ts'
import { CallRefusal } from '../engine/call/refusal.ts'
import type { HeadPolicy } from '../engine/call/request-head.ts'
import { reserveCredit } from '../engine/call/reserve-credit.ts'
import type { AdmittedCall, CallRoute } from '../engine/call/route.ts'
import type { ResolvedTool } from '../options.ts'

/** `/tools/<name>`: runs one host tool. The whole body is its input; who asks is known from the turn alone. */
export function toolRoute(
  tool: ResolvedTool,
  { policy, callMs }: { readonly policy: HeadPolicy; readonly callMs: number },
): CallRoute {
  return {
    kind: 'tool',
    name: tool.spec.name,
    policy,
    requestBytes: limits.SEALED_CALL_BODY_BYTES,
    answerBytes: limits.SEALED_CALL_ANSWER_BYTES,
    callMs,
    unusable: 'tool_failed',
    run: (call) => runTool(tool, call),
  }
}

async function runTool(tool: ResolvedTool, call: AdmittedCall): Promise<unknown> {
  const input = parseObject(call.bytes)
  // Where it does not fit is for the host alone: the guest has the schema.
  call.record.problem = tool.check(input)
  if (call.record.problem !== undefined) throw new CallRefusal('input_refused')
  await reserveCredit(call)
  const { channel, speaker } = snapshotScope(call.turn.scope)
  const context = Object.freeze({ channel, speaker, signal: call.signal })
  const text: unknown = await raceSignal(execute(tool, input, context), call.signal)
  if (typeof text !== 'string') throw new CallRefusal('tool_failed')
  return { text }
}

/** Also turns what the tool throws at once into a rejection. Nothing of it is passed on. */
async function execute(
  tool: ResolvedTool,
  input: Record<string, unknown>,
  context: Parameters<ResolvedTool['execute']>[1],
): Promise<unknown> {
  try {
    return await tool.execute(input, context)
  } catch (cause) {
    throw new CallRefusal('tool_failed', { cause })
  }
}
