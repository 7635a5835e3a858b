import { BrokerError, type InputCheck, type McpServer, readParameters } from '@sandbox/broker/engine'
import { limits, type PiToolSpec } from '@sandbox/protocol'
import type { PiHostTool } from './host-tool.ts'

/** A host tool, checked and copied. */
export interface ResolvedPiTool {
  readonly spec: PiToolSpec
  readonly check: InputCheck
  readonly execute: PiHostTool['execute']
}

const TOOL_NAME = /^[A-Za-z0-9_-]{1,64}$/
const DESCRIPTION_CHARS = 8192

/**
 * Checks the `tools` option (W-42).
 * @throws BrokerError `options_invalid`, naming the field.
 */
export function readTools(tools: readonly PiHostTool[]): readonly ResolvedPiTool[] {
  if (!Array.isArray(tools)) throw invalid('tools', 'must be an array')
  if (tools.length > limits.PI_TOOLS) throw invalid('tools', `has more than ${limits.PI_TOOLS} entries`)
  const names = new Set<string>()
  return tools.map((tool: PiHostTool, index) => {
    const found = readTool(tool, `tools[${index}]`)
    if (names.has(found.spec.name)) throw invalid(`tools[${index}].name`, `"${found.spec.name}" is taken`)
    names.add(found.spec.name)
    return found
  })
}

/**
 * Checks the `mcp` option: each name once.
 * @throws BrokerError `options_invalid`, naming the field.
 */
export function readMcp(servers: readonly McpServer[]): readonly McpServer[] {
  if (!Array.isArray(servers)) throw invalid('mcp', 'must be an array')
  if (servers.length > limits.PI_TOOLS) throw invalid('mcp', `has more than ${limits.PI_TOOLS} entries`)
  const names = new Set<string>()
  for (const [index, server] of servers.entries()) {
    const where = `mcp[${index}]`
    if (typeof server !== 'object' || server === null || typeof server.open !== 'function') {
      throw invalid(where, 'must be made by mcpServer of @sandbox/broker/mcp')
    }
    if (names.has(server.name)) throw invalid(`${where}.name`, `"${server.name}" is taken`)
    names.add(server.name)
  }
  return [...servers]
}

function readTool(tool: PiHostTool, where: string): ResolvedPiTool {
  if (typeof tool !== 'object' || tool === null) throw invalid(where, 'must be an object')
  const { name, description, parameters } = tool
  if (typeof name !== 'string' || !TOOL_NAME.test(name)) {
    throw invalid(`${where}.name`, `must match ${TOOL_NAME.source.slice(1, -1)}`)
  }
  if (typeof description !== 'string' || description.length > DESCRIPTION_CHARS) {
    throw invalid(`${where}.description`, `must be a string of at most ${DESCRIPTION_CHARS} characters`)
  }
  if (typeof tool.execute !== 'function') throw invalid(`${where}.execute`, 'must be a function')
  const { schema, check } = readParameters(parameters, `${where}.parameters`)
  return {
    spec: { name, description, parameters: schema },
    check,
    execute: (input, context) => tool.execute(input, context),
  }
}

function invalid(field: string, problem: string): BrokerError {
  return new BrokerError('options_invalid', `${field}: ${problem}`)
}
