import { limits } from '@sandbox/protocol'
import type { CallEvent } from '../engine/call/call-event.ts'
import { spendCredential } from '../engine/call/credential.ts'
import { jsonBytes } from '../engine/call/guest-answer.ts'
import { CallRefusal } from '../engine/call/refusal.ts'
import type { HeadPolicy } from '../engine/call/request-head.ts'
import type { AdmittedCall, CallRoute } from '../engine/call/route.ts'
import { forwardJson, sharedAgent } from '../engine/upstream/forward.ts'
import { normaliseChat } from '../model-input/openai-chat.ts'
import type { ResolvedOptions } from '../options.ts'

/** `/model`: a Chat Completions call, rebuilt, with the credential of the turn's channel and speaker. */
export function modelRoute(
  options: ResolvedOptions,
  { policy, callMs }: { readonly policy: HeadPolicy; readonly callMs: number },
): CallRoute {
  return {
    kind: 'model',
    policy,
    requestBytes: limits.SEALED_CALL_BODY_BYTES,
    answerBytes: limits.SEALED_CALL_ANSWER_BYTES,
    callMs,
    unusable: 'upstream_invalid',
    run: (call) => callModel(options, call),
  }
}

/** The credential is asked for last: a payload that is refused spends none. */
async function callModel(options: ResolvedOptions, call: AdmittedCall): Promise<unknown> {
  const { signal, record } = call
  const chat = normaliseChat(call.body, options)
  if (!chat.ok) throw new CallRefusal('input_refused')
  record.droppedFields = chat.dropped
  const { endpoint: url, apiKey: getter, authSlot } = options
  const secret = await spendCredential(call, { getter, origin: url.origin })
  const answer = await forwardJson({
    agent: sharedAgent(),
    url,
    secret,
    authSlot,
    body: jsonBytes(chat.body),
    limitBytes: limits.SEALED_CALL_ANSWER_BYTES,
    signal,
    onStatus: (status) => {
      record.upstreamStatus = status
    },
  })
  record.usage = usageOf(answer.usage)
  return answer
}

function usageOf(usage: unknown): CallEvent['usage'] {
  if (typeof usage !== 'object' || usage === null) return undefined
  const { prompt_tokens, completion_tokens } = usage as Record<string, unknown>
  return {
    ...(isCount(prompt_tokens) ? { inputTokens: prompt_tokens } : {}),
    ...(isCount(completion_tokens) ? { outputTokens: completion_tokens } : {}),
  }
}

function isCount(value: unknown): value is number {
  return Number.isSafeInteger(value) && (value as number) >= 0
}
