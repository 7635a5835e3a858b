export type {
  McpCredential,
  McpLink,
  McpOutcome,
  McpServer,
  McpTokenGetter,
  McpTokenScope,
  McpToolListing,
  McpUse,
} from '../engine/mcp/mcp-port.ts'
export type { PrecheckGrant, PrecheckTools } from '../precheck/granted-servers.ts'
export { type PrecheckBroker, type PrecheckOptions, precheckBroker } from '../precheck/precheck-broker.ts'
export type { PrecheckRun } from '../precheck/precheck-messages.ts'
export { type McpServerOptions, mcpServer } from './mcp-server.ts'
export type { McpCommand } from './stdio-connection.ts'
