import type { CredentialAnswer, SandboxCredentialScope, Secret } from '@sandbox/credential-scope'

/** For whom, and for which server, a token is asked. */
export interface McpTokenScope extends SandboxCredentialScope {
  /** The server's `name`. */
  readonly server: string
}

/** Asked before each call for the token of one server. A getter without arguments works too. */
export type McpTokenGetter = (
  scope: McpTokenScope,
  options: { readonly signal: AbortSignal },
) => CredentialAnswer | Promise<CredentialAnswer>

/** Where a server's token comes from and where it may go. */
export interface McpCredential {
  readonly token: McpTokenGetter
  /** The only origin that it is sent to. */
  readonly origin: string
}

/** An MCP server that a broker may call, as `mcpServer` of `@sandbox/broker/mcp` makes them. */
export interface McpServer {
  readonly name: string
  /** The tools that may be called, each once; no other is even shown. */
  readonly tools: readonly string[]
  /** Absent = calls carry no credential. */
  readonly credential?: McpCredential
  /** A connection for one turn. Nothing is sent before its first use. */
  open(): McpLink
}

/** What one use of a connection is made with. */
export interface McpUse {
  /** For this use alone; absent = none. */
  readonly secret?: Secret
  /** Ends it, and the connection with it. */
  readonly signal: AbortSignal
  /** Called with the status of the server's answers. */
  onStatus?(status: number): void
}

/** A tool as its server describes it. Nothing of it is checked. */
export interface McpToolListing {
  readonly name: string
  readonly description?: string | undefined
  readonly inputSchema: unknown
}

/** What came of a tool: a result, or an error of the protocol. Unchecked, but for being the answer to this call. */
export type McpOutcome =
  | { readonly result: Readonly<Record<string, unknown>> }
  | { readonly error: { readonly code: number; readonly message: string } }

/**
 * A connection to one server for one turn, used by one call after another. All methods but `close` reject with a
 * CallRefusal or with the signal's reason.
 */
export interface McpLink {
  list(use: McpUse): Promise<readonly McpToolListing[]>
  call(tool: string, input: Readonly<Record<string, unknown>>, use: McpUse): Promise<McpOutcome>
  /** Ends the session and the connection; waits a moment for the server. Idempotent; never rejects. */
  close(): Promise<void>
}
