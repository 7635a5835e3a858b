import type { CredentialGetter } from '@sandbox/credential-scope'
import type { PiHostTool } from './host-tool.ts'
import type { PiMcpServer } from './mcp-server.ts'

/** What a Pi broker is made from. */
export interface PiSandboxBrokerOptions {
  /** The model that every call is pinned to. */
  readonly model: string
  /** Picks the credential of a channel and a speaker. Asked before every model call, never cached. */
  readonly oauthToken: CredentialGetter
  /** Origin of the Messages API, `https:` only. Omitted = `https://api.anthropic.com`. */
  readonly upstream?: string
  readonly tools?: readonly PiHostTool[]
  readonly mcp?: readonly PiMcpServer[]
  /** Admits `http:` for MCP servers on loopback. Omitted = false. */
  readonly allowHttpMcp?: boolean
  /** Calls in one turn, 1 to 1000. Omitted = 128. */
  readonly maxCalls?: number
  /** Output tokens of one model call, 1025 to 200,000. Omitted = 128,000. */
  readonly maxOutputTokens?: number
  /** Longest silence of a worker that does not read or write, in milliseconds. Omitted = 120,000. */
  readonly idleMs?: number
}
