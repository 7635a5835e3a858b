import { getDefaultEnvironment, StdioClientTransport } from '@modelcontextprotocol/client/stdio'
import type { Secret } from '@sandbox/credential-scope'
import type { McpUse } from '../engine/mcp/mcp-port.ts'
import type { Connection, ConnectionUse } from './client-link.ts'

/** A server that runs on the host as a program of the operator's, one process per turn. */
export interface McpCommand {
  /** The program: a path, or a name that is looked up in `PATH`. No shell. */
  readonly command: string
  readonly args?: readonly string[]
  /** Beside `HOME`, `LOGNAME`, `PATH`, `SHELL`, `TERM` and `USER` of the host. */
  readonly env?: Readonly<Record<string, string>>
  readonly cwd?: string
  /** The environment variable that gets the token. Needed with `token`. */
  readonly tokenEnv?: string
}

const MESSAGE_BYTES = 2 * 1024 * 1024
/** Old servers do not answer questions before the handshake. */
const PROBE_MS = 2_000
const NEVER = new AbortController().signal

/** The place of a program's token; nothing can be sent there. */
export const STDIO_ORIGIN = 'https://stdio.invalid'

/** Standard input and output of one process. A process has the token that it was started with, and no other. */
export class StdioConnection implements Connection {
  readonly transport: StdioClientTransport
  readonly probeMs = PROBE_MS
  readonly #fingerprint: string | undefined

  constructor({ command, args = [], env = {}, cwd, tokenEnv }: McpCommand, { secret }: McpUse) {
    this.#fingerprint = secret?.fingerprint
    this.transport = new StdioClientTransport({
      command,
      args: [...args],
      env: { ...getDefaultEnvironment(), ...env, ...tokenIn(tokenEnv, secret) },
      ...(cwd === undefined ? {} : { cwd }),
      // What it writes there may hold its token.
      stderr: 'ignore',
      maxBufferSize: MESSAGE_BYTES,
    })
  }

  fits({ secret }: McpUse): boolean {
    return secret?.fingerprint === this.#fingerprint
  }

  begin(): ConnectionUse {
    return { signal: NEVER, end: () => {} }
  }

  async leave(): Promise<void> {}
}

function tokenIn(name: string | undefined, secret: Secret | undefined): Record<string, string> {
  if (name === undefined || secret === undefined) return {}
  const headers: Record<string, string> = {}
  secret.applyTo(headers, new URL(STDIO_ORIGIN), { kind: 'header', name: 'x-token' })
  return { [name]: headers['x-token'] ?? '' }
}
