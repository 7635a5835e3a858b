import type { CallUsage } from '../call/call-event.ts'
import type { FamilyEvent, FamilyStream, Reading, WireError, WireFamily } from './family.ts'
import { deltaTexts, eventBytes, objectAt, usageFrom } from './reading.ts'

type JsonObject = Readonly<Record<string, unknown>>

/** Anthropic Messages. A stream ends with `message_stop` or `error`. */
export const anthropicMessages: WireFamily = {
  name: 'anthropic',
  errorBody: anthropicError,
  usageOf: (answer) => messageUsage(answer),
  follow: () => new MessageStream(),
}

const TYPES: Readonly<Record<number, string>> = {
  402: 'billing_error',
  403: 'permission_error',
  404: 'not_found_error',
  413: 'request_too_large',
  429: 'rate_limit_error',
}

function anthropicError({ status, code, message }: WireError): object {
  const type = TYPES[status] ?? (status >= 500 ? 'api_error' : 'invalid_request_error')
  return { type: 'error', error: { type, message, code } }
}

class MessageStream implements FamilyStream {
  read({ type: named, value }: FamilyEvent): Reading {
    if (value === undefined) return {}
    const type = typeof value.type === 'string' ? value.type : named
    const block = `${value.index}`
    switch (type) {
      case 'message_start':
        return withUsage(messageUsage(objectAt(value, 'message')))
      case 'content_block_start':
        return { deltas: deltaTexts(value.content_block, block) }
      case 'content_block_delta':
        return { deltas: deltaTexts(value.delta, block) }
      case 'content_block_stop':
        return { closes: [`${block}.`] }
      case 'message_delta':
        return withUsage(messageUsage(value))
      case 'message_stop':
        return { end: 'ended' }
      case 'error':
        return { end: 'ended', failed: true }
      default:
        return {}
    }
  }

  failure(error: WireError): Uint8Array {
    return eventBytes(anthropicError(error), 'error')
  }
}

function withUsage(usage: CallUsage | undefined): Reading {
  return usage === undefined ? {} : { usage }
}

function messageUsage(message: JsonObject | undefined): CallUsage | undefined {
  const usage = objectAt(message, 'usage')
  return usageFrom({
    inputTokens: usage?.input_tokens,
    outputTokens: usage?.output_tokens,
    cachedTokens: usage?.cache_read_input_tokens,
    cacheWriteTokens: usage?.cache_creation_input_tokens,
    reasoningTokens: undefined,
  })
}
