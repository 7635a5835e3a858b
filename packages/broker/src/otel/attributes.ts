import type { Attributes } from '@opentelemetry/api'
import type { CallEvent } from '../engine/call/call-event.ts'

/** What an event is in the words of the GenAI conventions; `undefined` for what is no call of a model or tool. */
export interface CallShape {
  readonly kind: 'inference' | 'tool'
  /** The span's name. */
  readonly title: string
  /** What tells groups of calls apart: few values each, fit for metrics. */
  readonly common: Attributes
  /** What is of this call alone: for its span. */
  readonly own: Attributes
}

/** What the host alone knows. */
export interface CallNames {
  readonly provider: string
}

/** Names as of semantic-conventions-genai v0.1.0. No text of a model, a guest or a speaker is among them. */
export function shapeOf(event: CallEvent, { provider }: CallNames): CallShape | undefined {
  if (event.route === 'model') return inference(event, provider)
  if (event.route !== 'tool' && event.route !== 'mcp') return undefined
  const name = event.name ?? ''
  return {
    kind: 'tool',
    title: `execute_tool ${name}`.trim(),
    common: {
      'gen_ai.operation.name': 'execute_tool',
      'gen_ai.tool.name': name,
      'gen_ai.tool.type': event.route === 'tool' ? 'function' : 'extension',
      ...failure(event),
    },
    own: ofThisCall(event),
  }
}

function inference(event: CallEvent, provider: string): CallShape {
  const { model, usage, streamed, firstByteMs } = event
  const tokens = {
    'gen_ai.usage.input_tokens': usage?.inputTokens,
    'gen_ai.usage.output_tokens': usage?.outputTokens,
    'gen_ai.usage.cache_read.input_tokens': usage?.cachedTokens,
    'gen_ai.usage.cache_write.input_tokens': usage?.cacheWriteTokens,
    'gen_ai.usage.reasoning.output_tokens': usage?.reasoningTokens,
  }
  return {
    kind: 'inference',
    title: model === undefined ? 'chat' : `chat ${model}`,
    common: {
      'gen_ai.operation.name': 'chat',
      'gen_ai.provider.name': provider,
      ...(model !== undefined && { 'gen_ai.request.model': model }),
      ...(streamed === true && { 'gen_ai.request.stream': true }),
      ...failure(event),
    },
    own: {
      ...Object.fromEntries(Object.entries(tokens).filter(([, count]) => count !== undefined)),
      ...(streamed === true &&
        firstByteMs !== undefined && { 'gen_ai.response.time_to_first_chunk': firstByteMs / 1000 }),
      ...ofThisCall(event),
    },
  }
}

function failure({ reason }: CallEvent): Attributes {
  return reason === 'ok' ? {} : { 'error.type': reason }
}

function ofThisCall({ callId, turnId, upstreamStatus, requestBytes, answerBytes }: CallEvent): Attributes {
  return {
    'sandbox.call.id': callId,
    ...(turnId !== undefined && { 'sandbox.turn.id': turnId }),
    ...(upstreamStatus !== undefined && { 'http.response.status_code': upstreamStatus }),
    'sandbox.call.request_bytes': requestBytes,
    'sandbox.call.answer_bytes': answerBytes,
  }
}
