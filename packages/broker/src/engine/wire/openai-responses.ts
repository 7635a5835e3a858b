import type { CallUsage } from '../call/call-event.ts'
import type { FamilyEvent, FamilyStream, Reading, WireError, WireFamily } from './family.ts'
import { openAiError } from './openai-error.ts'
import { deltaTexts, eventBytes, isObject, objectAt, usageFrom } from './reading.ts'

type JsonObject = Readonly<Record<string, unknown>>

/** Responses. A stream ends with `response.completed`, `response.incomplete`, `response.failed` or `error`. */
export const openAiResponses: WireFamily = {
  name: 'openai-responses',
  errorBody: openAiError,
  usageOf: (answer) => responseUsage(answer),
  keptItems: 'output',
  follow: () => new ResponseStream(),
}

const ENDS: ReadonlySet<unknown> = new Set([
  'response.completed',
  'response.incomplete',
  'response.failed',
  'error',
])
const FAILS: ReadonlySet<unknown> = new Set(['response.failed', 'error'])
/** Most ids of one event. */
const MOST_IDS = 1024
const JSON_TEXT = /arguments|input|code/

class ResponseStream implements FamilyStream {
  #created: JsonObject | undefined
  #sequence = -1

  read({ type: named, value }: FamilyEvent): Reading {
    if (value === undefined) return {}
    const type = typeof value.type === 'string' ? value.type : named
    if (Number.isSafeInteger(value.sequence_number)) this.#sequence = value.sequence_number as number
    const response = objectAt(value, 'response')
    if (type === 'response.created') this.#created = response
    const usage = response && responseUsage(response)
    return {
      ...(type.endsWith('.delta') && { deltas: deltasOf(type, value) }),
      ...(type.endsWith('.done') && { closes: [`${blockOf(type.slice(0, -5), value)}#`] }),
      ...createdBy(type, value, response),
      ...(usage && { usage }),
      ...(FAILS.has(type) && { failed: true }),
      ...(ENDS.has(type) && { end: 'ended' as const }),
    }
  }

  /** Clients ignore a bare `error` once a response was created. */
  failure(error: WireError): Uint8Array {
    const { code, message } = error
    const sequence_number = this.#sequence + 1
    if (this.#created === undefined) {
      return eventBytes({ type: 'error', code, message, param: null, sequence_number }, 'error')
    }
    const { id, object, created_at, model } = this.#created
    const response = { id, object, created_at, status: 'failed', error: { code, message }, model, output: [] }
    return eventBytes({ type: 'response.failed', sequence_number, response }, 'response.failed')
  }
}

/** A response from its beginning; its items once they are complete, also those that only the end lists. */
function createdBy(
  type: string,
  value: JsonObject,
  response: JsonObject | undefined,
): Pick<Reading, 'created'> {
  const items =
    type === 'response.output_item.done'
      ? [value.item]
      : type === 'response.completed' || type === 'response.incomplete'
        ? response?.output
        : []
  const kept = [
    ...(type === 'response.created' ? [response] : []),
    ...(Array.isArray(items) ? items.slice(0, MOST_IDS) : []),
  ]
  const created = kept.flatMap((one) => (isObject(one) && typeof one.id === 'string' ? [one.id] : []))
  return created.length === 0 ? {} : { created }
}

function deltasOf(type: string, value: JsonObject) {
  const kind = type.slice(0, -6)
  const block = `${blockOf(kind, value)}#`
  return deltaTexts(value.delta, block).map((delta) =>
    JSON_TEXT.test(kind) ? { ...delta, deeper: true } : delta,
  )
}

/** By its place, as clients put pieces together; its id is no help where services give it anew in every event. */
function blockOf(kind: string, value: JsonObject): string {
  const at = [value.output_index ?? value.item_id, value.content_index, value.summary_index]
  return [kind, ...at].map((part) => String(part ?? '').slice(0, 128)).join('|')
}

function responseUsage(response: JsonObject): CallUsage | undefined {
  const usage = objectAt(response, 'usage')
  return usageFrom({
    inputTokens: usage?.input_tokens,
    outputTokens: usage?.output_tokens,
    cachedTokens: objectAt(usage, 'input_tokens_details')?.cached_tokens,
    cacheWriteTokens: undefined,
    reasoningTokens: objectAt(usage, 'output_tokens_details')?.reasoning_tokens,
  })
}
