import { limits, type SealedTurn, type ToolSpec } from '@sandbox/protocol'
import { GuestError } from '../shared/errors.ts'
import { type JsonObject, jsonBytes } from '../shared/json.ts'
import type { BrokerCalls } from './broker-calls.ts'
import type { MemoryStore } from './memory.ts'

/** A tool that the model may call. */
export interface OfferedTool {
  readonly description: string
  /** A JSON Schema object. */
  readonly parameters: JsonObject
  /** Throws when the call fails or is not allowed. */
  run(input: JsonObject): string | Promise<string>
}

/** Stands in for every call of an unknown tool. */
export const INVALID_TOOL = 'invalid_tool'

/**
 * The tools of a turn by name: a placeholder, memory, the host's tools as `host_<name>` and the MCP servers' as
 * `mcp_<index>_<name>`. Throws a {@link GuestError} `turn_invalid` when their descriptions are too large.
 */
export function offeredTools(options: {
  readonly turn: SealedTurn
  readonly memory: MemoryStore
  readonly calls: BrokerCalls
}): ReadonlyMap<string, OfferedTool> {
  const { turn, memory, calls } = options
  const specs = [...turn.tools, ...turn.mcp.flatMap((server) => server.tools)]
  if (specs.reduce((sum, spec) => sum + jsonBytes(spec), 0) > limits.TOOL_SPECS_BYTES) {
    throw new GuestError('turn_invalid', `the tool descriptions are over ${limits.TOOL_SPECS_BYTES} bytes`)
  }
  const tools = new Map([...ownTools(memory)])
  for (const spec of turn.tools) {
    tools.set(
      `host_${spec.name}`,
      offered(spec, (input) => calls.tool(spec.name, input)),
    )
  }
  for (const [index, server] of turn.mcp.entries()) {
    for (const spec of server.tools) {
      tools.set(
        `mcp_${index}_${spec.name}`,
        offered(spec, (input) => calls.mcp(server.name, spec.name, input)),
      )
    }
  }
  if (tools.size > limits.MODEL_TOOLS) throw new GuestError('turn_invalid', 'too many tools')
  return tools
}

/** The tools as a model request describes them. */
export function describeTools(tools: ReadonlyMap<string, OfferedTool>): readonly unknown[] {
  return [...tools].map(([name, { description, parameters }]) => ({
    type: 'function',
    function: { name, description, parameters },
  }))
}

function offered(spec: ToolSpec, run: OfferedTool['run']): OfferedTool {
  return { description: spec.description, parameters: spec.parameters, run }
}

function ownTools(memory: MemoryStore): [string, OfferedTool][] {
  const scope = {
    type: 'string',
    enum: ['speaker', 'channel'],
    description: 'speaker: facts about whoever speaks now. channel: notes that everybody here shares.',
  }
  const text = (description: string) => ({ type: 'string', description })
  return [
    [
      INVALID_TOOL,
      {
        description: 'Stands for a call that was refused. Never call it.',
        parameters: schema({}),
        run: () => {
          throw new GuestError('tool_refused', 'no such tool')
        },
      },
    ],
    [
      'memory_set',
      {
        description: 'Remembers a text of up to 2048 characters under a key, in place of an earlier one.',
        parameters: schema({ scope, key: text('1 to 128 characters'), text: text('What to remember') }),
        run: (input) => memory.set(input),
      },
    ],
    [
      'memory_get',
      {
        description:
          'What is remembered, as JSON: [{key, text}], by key. A last element {cursor} means that more follow: ' +
          'call again with that cursor.',
        parameters: schema(
          {
            scope,
            key: text('Only this key'),
            query: text('Only entries that contain this, in key or text'),
            keys_only: { type: 'boolean', description: 'Leave the texts out' },
            cursor: text('From the call before'),
          },
          ['scope'],
        ),
        run: (input) => memory.get(input),
      },
    ],
    [
      'memory_remove',
      {
        description: 'Forgets what is remembered under a key.',
        parameters: schema({ scope, key: text('The key') }),
        run: (input) => memory.remove(input),
      },
    ],
  ]
}

function schema(properties: JsonObject, required = Object.keys(properties)): JsonObject {
  return { type: 'object', properties, required, additionalProperties: false }
}
