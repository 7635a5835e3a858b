import { ROUTE_NAME } from '@sandbox/protocol'
import { BrokerError } from './engine/errors.ts'
import type { McpServer } from './engine/mcp/mcp-port.ts'

const MOST_SERVERS = 32

/**
 * Checks the `mcp` option of a sealed broker (SB-03): the worker's names are shorter than those of MCP.
 * @throws BrokerError `options_invalid`, naming the field.
 */
export function readMcp(servers: readonly McpServer[]): readonly McpServer[] {
  if (!Array.isArray(servers)) throw invalid('mcp', 'must be an array')
  if (servers.length > MOST_SERVERS) throw invalid('mcp', `has more than ${MOST_SERVERS} entries`)
  const names = new Set<string>()
  for (const [index, server] of servers.entries()) {
    const where = `mcp[${index}]`
    if (typeof server !== 'object' || server === null || typeof server.open !== 'function') {
      throw invalid(where, 'must be made by mcpServer of @sandbox/broker/mcp')
    }
    for (const name of [server.name, ...server.tools]) {
      if (!ROUTE_NAME.test(name)) throw invalid(where, `"${name}" does not match [a-z][a-z0-9_]{0,47}`)
    }
    if (names.has(server.name)) throw invalid(`${where}.name`, `"${server.name}" is taken`)
    names.add(server.name)
  }
  return [...servers]
}

function invalid(field: string, problem: string): BrokerError {
  return new BrokerError('options_invalid', `${field}: ${problem}`)
}
