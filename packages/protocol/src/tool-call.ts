import { type Static, Type } from 'typebox'

/** How a tool is described to the model. `parameters` is a JSON Schema object. */
export const ToolSpec = Type.Object({
  name: Type.String({ pattern: '^[a-z][a-z0-9_]{0,47}$' }),
  description: Type.String({ maxLength: 8192 }),
  parameters: Type.Record(Type.String(), Type.Unknown()),
})
/** How a tool is described to the model. */
export type ToolSpec = Static<typeof ToolSpec>

/** An MCP server of a turn: its name and the tools that the host listed. */
export const McpSpec = Type.Object({
  name: Type.String({ pattern: '^[a-z][a-z0-9_]{0,47}$' }),
  tools: Type.Array(ToolSpec, { maxItems: 128 }),
})
/** An MCP server of a turn. */
export type McpSpec = Static<typeof McpSpec>

/** The answer of `/tools/<name>`. */
export const ToolAnswer = Type.Object({ text: Type.String() })
/** The answer of `/tools/<name>`. */
export type ToolAnswer = Static<typeof ToolAnswer>
