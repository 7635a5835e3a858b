import { limits } from '@sandbox/protocol'
import { jsonBytes } from '../engine/call/guest-answer.ts'
import { parseObject } from '../engine/call/read-body.ts'
import { CallRefusal } from '../engine/call/refusal.ts'
import type { HeadPolicy } from '../engine/call/request-head.ts'
import type { AdmittedCall, CallRoute } from '../engine/call/route.ts'
import { readJson } from '../engine/upstream/forward.ts'
import { sharedAgent } from '../engine/upstream/open-upstream.ts'
import { openWithCredential } from '../engine/upstream/open-with-credential.ts'
import { openAiChat } from '../engine/wire/openai-chat.ts'
import { normaliseChat } from '../model-input/openai-chat.ts'
import type { ResolvedOptions } from '../options.ts'
import { chooseUpstream } from '../upstream-choice.ts'

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
  const body = parseObject(call.bytes)
  const chosen = await chooseUpstream(options, call)
  const { model, tokenLimitField, authSlot, chat: url } = chosen
  const chat = normaliseChat(body, { model, tokenLimitField, maxOutputTokens: options.maxOutputTokens })
  if (!chat.ok) throw new CallRefusal('input_refused')
  record.droppedFields = chat.dropped
  record.model = model
  record.outputTokens = options.maxOutputTokens
  const upstream = await openWithCredential(call, {
    agent: sharedAgent(),
    url,
    getter: chosen.getterFor(url),
    authSlot,
    body: jsonBytes(chat.body),
  })
  const answer = await readJson(upstream, { limitBytes: limits.SEALED_CALL_ANSWER_BYTES, signal })
  record.usage = openAiChat.usageOf(answer)
  return answer
}
