export type {
  McpCredential,
  McpLink,
  McpOutcome,
  McpServer,
  McpTokenGetter,
  McpTokenScope,
  McpToolListing,
  McpUse,
} from './mcp-port.ts'
export { type McpServerOptions, mcpServer } from './mcp-server.ts'
export type { McpCommand } from './stdio-connection.ts'
