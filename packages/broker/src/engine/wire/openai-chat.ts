import type { CallUsage } from '../call/call-event.ts'
import { CallRefusal } from '../call/refusal.ts'
import type { DeltaText, FamilyEvent, FamilyStream, Reading, WireError, WireFamily } from './family.ts'
import { openAiError } from './openai-error.ts'
import { deltaTexts, eventBytes, indexOf, isObject, objectAt, usageFrom } from './reading.ts'

/** Chat Completions. A stream ends with `[DONE]`, or once every choice has a finish reason. */
export const openAiChat: WireFamily = {
  name: 'openai-chat',
  errorBody: openAiError,
  usageOf: (answer) => chatUsage(answer),
  follow: () => new ChatStream(),
}

/** One is what the host asks for. */
const MOST_CHOICES = 1024

class ChatStream implements FamilyStream {
  readonly #open = new Set<string>()
  #choices = 0

  read({ data, value }: FamilyEvent): Reading {
    if (data === '[DONE]') return { end: 'ended' }
    if (value === undefined) return {}
    if (isObject(value.error) || typeof value.error === 'string') return { failed: true, end: 'finished' }
    const deltas: DeltaText[] = []
    const closes: string[] = []
    const choices = Array.isArray(value.choices) ? value.choices : []
    if (choices.length > MOST_CHOICES) throw new CallRefusal('upstream_invalid', { retry: false })
    for (const [at, choice] of choices.entries()) {
      if (!isObject(choice)) continue
      const index = indexOf(choice, at)
      if (!this.#open.has(index)) this.#choices += 1
      this.#open.add(index)
      deltas.push(...deltaTexts(choice.delta, index))
      // Some services write an empty one with every piece; clients take that for none.
      if (choice.finish_reason) {
        this.#open.delete(index)
        closes.push(`${index}.`)
      }
    }
    const usage = chatUsage(value)
    const usageOnly = usage !== undefined && Array.isArray(value.choices) && value.choices.length === 0
    const finished = this.#choices > 0 && this.#open.size === 0
    return {
      deltas,
      closes,
      ...(usage && { usage, usageOnly }),
      ...(finished && { end: 'finished' as const }),
    }
  }

  failure(error: WireError): Uint8Array {
    return eventBytes(openAiError(error))
  }
}

function chatUsage(value: Readonly<Record<string, unknown>>): CallUsage | undefined {
  const usage = objectAt(value, 'usage')
  return usageFrom({
    inputTokens: usage?.prompt_tokens,
    outputTokens: usage?.completion_tokens,
    cachedTokens: objectAt(usage, 'prompt_tokens_details')?.cached_tokens,
    cacheWriteTokens: undefined,
    reasoningTokens: objectAt(usage, 'completion_tokens_details')?.reasoning_tokens,
  })
}
