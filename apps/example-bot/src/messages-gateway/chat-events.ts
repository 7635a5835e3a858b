import type { JsonObject } from './to-chat.ts'

/** Longest line that is taken. */
const LINE_CHARS = 4 * 1024 * 1024

/**
 * The pieces of a Chat Completions stream (server-sent events, one JSON object each, `[DONE]` at the end).
 *
 * Throws for a line that is too long or no JSON, and when the connection breaks.
 */
export async function* chatEvents(response: Response): AsyncGenerator<JsonObject, undefined> {
  const decoder = new TextDecoder()
  let rest = ''
  for await (const chunk of response.body ?? []) {
    rest += decoder.decode(chunk, { stream: true })
    const lines = rest.split(/\r\n|\n|\r/)
    rest = lines.pop() ?? ''
    if (rest.length > LINE_CHARS) throw new TypeError('a line of the stream is too long')
    for (const line of lines) {
      const data = /^data:\s?(.*)$/.exec(line)?.[1]
      if (data === undefined || data === '') continue
      if (data === '[DONE]') return undefined
      yield JSON.parse(data) as JsonObject
    }
  }
  return undefined
}
