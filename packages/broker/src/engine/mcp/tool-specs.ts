import type { ToolSpec } from '@sandbox/protocol'
import type { TextMatcher } from '../reflection/scan-json.ts'
import { localSchema, schemaProblem } from '../tool-schema.ts'
import { headOfText } from './head-of-text.ts'
import type { McpToolListing } from './mcp-port.ts'

/** Longest description that a worker is shown; what is longer is cut. */
const DESCRIPTION_CHARS = 2_048

/** What a worker may be shown of a server's list. */
export interface ShownTools {
  readonly specs: readonly ToolSpec[]
  /** Tools that the operator lists and the worker is not shown: the server has none, or its schema is not usable. */
  readonly missing: readonly string[]
}

/**
 * W-35: the operator's tools as their server describes them, in the operator's order, and no other.
 * @throws CallRefusal `reflection` for a long description that carries a secret; all else is for the caller to search.
 */
export function shownTools(
  allowed: readonly string[],
  listed: readonly McpToolListing[],
  matcher: TextMatcher,
): ShownTools {
  const found = allowed.map((name) => {
    const tool = listed.find((one) => one.name === name)
    return { name, spec: tool === undefined ? undefined : specOf(tool, matcher) }
  })
  return {
    specs: found.flatMap(({ spec }) => spec ?? []),
    missing: found.filter(({ spec }) => spec === undefined).map(({ name }) => name),
  }
}

function specOf(
  { name, description = '', inputSchema }: McpToolListing,
  matcher: TextMatcher,
): ToolSpec | undefined {
  if (typeof inputSchema !== 'object' || inputSchema === null || Array.isArray(inputSchema)) return undefined
  if (schemaProblem(inputSchema) !== undefined) return undefined
  const parameters = localSchema(inputSchema).schema as Record<string, unknown>
  return { name, description: headOfText(description, DESCRIPTION_CHARS, matcher), parameters }
}
