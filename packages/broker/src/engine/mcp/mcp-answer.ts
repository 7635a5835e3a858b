import type { TextMatcher } from '../reflection/scan-json.ts'
import { headOfText } from './head-of-text.ts'
import type { McpOutcome } from './mcp-port.ts'

type JsonObject = Readonly<Record<string, unknown>>

/** The fields of each kind of content that a guest gets. Unknown kinds, annotations and `_meta` are dropped. */
const PARTS: ReadonlyMap<unknown, readonly string[]> = new Map([
  ['text', ['text']],
  ['image', ['data', 'mimeType']],
  ['audio', ['data', 'mimeType']],
  ['resource_link', ['uri', 'name', 'title', 'description', 'mimeType', 'size']],
])
const RESOURCE = ['uri', 'mimeType', 'text', 'blob']
const MOST_ERROR_CHARS = 1_000

/**
 * The JSON-RPC message of an outcome, rebuilt: one id, known fields, nothing else of the server's.
 * @throws CallRefusal `reflection` for a long error that carries a secret; all else is searched as it is sent.
 */
export function mcpAnswer(outcome: McpOutcome, matcher: TextMatcher): JsonObject {
  if ('error' in outcome) {
    const { code, message } = outcome.error
    return {
      jsonrpc: '2.0',
      id: 1,
      error: { code, message: headOfText(String(message), MOST_ERROR_CHARS, matcher) },
    }
  }
  const { content, structuredContent, isError } = outcome.result
  return {
    jsonrpc: '2.0',
    id: 1,
    result: {
      content: Array.isArray(content) ? content.flatMap(plainPart) : [],
      ...(structuredContent === undefined ? {} : { structuredContent }),
      ...(isError === true ? { isError } : {}),
    },
  }
}

function plainPart(part: unknown): JsonObject[] {
  if (!isObject(part)) return []
  const { type, resource } = part
  if (type === 'resource' && isObject(resource)) return [{ type, resource: picked(resource, RESOURCE) }]
  const fields = PARTS.get(type)
  return fields === undefined ? [] : [{ type, ...picked(part, fields) }]
}

function picked(from: JsonObject, names: readonly string[]): JsonObject {
  const known = names.filter((name) => ['string', 'number'].includes(typeof from[name]))
  return Object.fromEntries(known.map((name) => [name, from[name]]))
}

function isObject(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
