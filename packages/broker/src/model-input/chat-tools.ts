import type { ValueRule } from '../engine/body-table/request-table.ts'
import { schemaRule } from '../engine/body-table/schema-table.ts'
import {
  anyText,
  flag,
  listOf,
  MANY_TOOLS,
  objectOf,
  orNull,
  text,
  toolName,
  word,
} from '../engine/body-table/table-parts.ts'

/** A function that the model may call. */
export const declared = objectOf(
  {
    name: toolName,
    description: orNull(anyText),
    parameters: { object: schemaRule, null: true },
    strict: flag,
  },
  { required: ['name'] },
)

const grammar = objectOf({ definition: anyText, syntax: word }, { required: ['definition', 'syntax'] })

const customFormat = objectOf(
  { type: text(32), grammar },
  { variants: { by: 'type', of: { text: { required: [] }, grammar: { required: ['grammar'] } } } },
)

/** A tool that the guest runs. Those that the provider runs are not among them. */
export const tool = objectOf(
  {
    type: text(32),
    function: declared,
    custom: objectOf(
      { name: toolName, description: orNull(anyText), format: orNull(customFormat) },
      { required: ['name'] },
    ),
  },
  {
    variants: { by: 'type', of: { function: { required: ['function'] }, custom: { required: ['custom'] } } },
  },
)

/** A tool by its name. */
export const named = objectOf({ name: toolName }, { required: ['name'] })
const chosen = { function: { required: ['function'] }, custom: { required: ['custom'] } }
const oneTool = objectOf(
  { type: text(32), function: named, custom: named },
  { variants: { by: 'type', of: chosen } },
)

const allowedTools = objectOf(
  { mode: word, tools: listOf(oneTool, MANY_TOOLS) },
  { required: ['mode', 'tools'] },
)

/** `tool_choice` of Chat Completions. */
export const toolChoice: ValueRule = {
  string: { oneOf: ['none', 'auto', 'required'] },
  null: true,
  ...objectOf(
    { type: text(32), function: named, custom: named, allowed_tools: allowedTools },
    { variants: { by: 'type', of: { ...chosen, allowed_tools: { required: ['allowed_tools'] } } } },
  ),
}
