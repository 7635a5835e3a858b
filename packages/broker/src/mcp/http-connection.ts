import { StreamableHTTPClientTransport } from '@modelcontextprotocol/client'
import type { McpUse } from '../engine/mcp/mcp-port.ts'
import type { Connection, ConnectionUse } from './client-link.ts'
import { HttpWire, type HttpWireOptions } from './http-wire.ts'

/** How long a server may take to close a session. */
const LEAVE_MS = 1_000

/** Streamable HTTP to one server. */
export class HttpConnection implements Connection {
  readonly transport: StreamableHTTPClientTransport
  readonly #wire: HttpWire
  #last: McpUse | undefined

  constructor(options: HttpWireOptions) {
    this.#wire = new HttpWire(options)
    this.transport = new StreamableHTTPClientTransport(options.url, { fetch: this.#wire.fetch })
  }

  fits(): boolean {
    return true
  }

  begin(use: McpUse): ConnectionUse {
    this.#last = use
    return this.#wire.begin(use)
  }

  /** Closes the session (older era), with the credential that was used last. */
  async leave(): Promise<void> {
    if (this.transport.sessionId === undefined || this.#last === undefined) return
    const { secret } = this.#last
    const use = this.#wire.begin({ ...(secret && { secret }), signal: AbortSignal.timeout(LEAVE_MS) })
    const onTime = setTimeout(() => use.end(), LEAVE_MS)
    try {
      await this.transport.terminateSession()
    } finally {
      clearTimeout(onTime)
      use.end()
    }
  }
}
