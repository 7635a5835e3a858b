import type { CredentialAnswer, SandboxCredentialScope } from '@sandbox/credential-scope'

/** For whom, and for which server, a token is asked. */
export interface PiMcpTokenScope extends SandboxCredentialScope {
  /** The server's `name`. */
  readonly server: string
}

/** An MCP server that a Pi worker may reach through the broker, with the tools that it may call there. */
export interface PiMcpServer {
  /** `[a-zA-Z0-9_-]{1,100}`, each name once. */
  readonly name: string
  /** `https:`, without user info, query and fragment. */
  readonly url: string
  /** Names of the tools that may be called; no other is even listed. */
  readonly tools: readonly string[]
  /** Asked before each call, never cached. A token of one server is never sent to another. */
  token(scope: PiMcpTokenScope): CredentialAnswer | Promise<CredentialAnswer>
}
