export type { PiHostContext, PiThinkingLevel } from './host-context.ts'
export type { PiHostTool, PiToolAnswer, PiToolImage } from './host-tool.ts'
export type { PiMcpServer, PiMcpTokenScope } from './mcp-server.ts'
export type { PiSandboxBrokerOptions } from './options.ts'
