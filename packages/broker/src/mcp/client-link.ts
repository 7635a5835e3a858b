import { Client, ProtocolError, SdkHttpError, type Transport } from '@modelcontextprotocol/client'
import { raceSignal } from '../engine/call/call-signal.ts'
import { CallRefusal } from '../engine/call/refusal.ts'
import type { McpLink, McpOutcome, McpToolListing, McpUse } from '../engine/mcp/mcp-port.ts'
import { statusRefusal } from '../engine/upstream/forward.ts'

/** A way to one server, for one client. */
export interface Connection {
  readonly transport: Transport
  /** How long a server may ignore the first question before it counts as one of the older protocol. */
  readonly probeMs?: number
  /** Whether this use can be made with it; if not, it takes another connection. */
  fits(use: McpUse): boolean
  /** Starts a use. */
  begin(use: McpUse): ConnectionUse
  /** Tells the server that it is over. May reject. */
  leave(): Promise<void>
}

/** One use of a connection. */
export interface ConnectionUse {
  /** Fires with a CallRefusal when the use cannot succeed any more. */
  readonly signal: AbortSignal
  /** Closes what the server left open. */
  end(): void
}

/** The client's own limit: calls carry a signal, which is shorter. */
const NO_LIMIT_MS = 0x7fffffff
/** Pages of a tool list that are read. */
const MOST_PAGES = 8
const SESSION_LOST = [400, 401, 404]

/**
 * A connection through the official client, of whichever protocol era the server speaks. It offers a server
 * nothing: requests for sampling, elicitation or roots are refused. A use that fails takes the connection with it,
 * since the server may still be at work on it; the next one opens another.
 */
export class ClientLink implements McpLink {
  readonly #connect: (use: McpUse) => Connection
  readonly #closing = new Set<Promise<void>>()
  #open: { readonly connection: Connection; readonly client: Client; ready: boolean } | undefined
  #closed = false

  constructor(connect: (use: McpUse) => Connection) {
    this.#connect = connect
  }

  list(use: McpUse): Promise<readonly McpToolListing[]> {
    return this.#run(use, async (client, options) => (await client.listTools(undefined, options)).tools)
  }

  call(tool: string, input: Readonly<Record<string, unknown>>, use: McpUse): Promise<McpOutcome> {
    return this.#run(use, async (client, options) => {
      try {
        return { result: await client.callTool({ name: tool, arguments: { ...input } }, options) }
      } catch (error) {
        if (!ProtocolError.isInstance(error)) throw error
        return { error: { code: error.code, message: error.message } }
      }
    })
  }

  async close(): Promise<void> {
    this.#closed = true
    this.#drop()
    await Promise.all(this.#closing)
  }

  /** A server may have forgotten the session since the last use: then nothing was done, and a fresh one is tried. */
  async #run<T>(use: McpUse, work: Work<T>): Promise<T> {
    const reused = this.#open?.ready === true
    try {
      return await this.#once(use, work)
    } catch (error) {
      const lost = SdkHttpError.isInstance(error) && SESSION_LOST.includes(error.status)
      if (!reused || !lost || use.signal.aborted) throw toRefusal(error, use)
    }
    try {
      return await this.#once(use, work)
    } catch (error) {
      throw toRefusal(error, use)
    }
  }

  async #once<T>(use: McpUse, work: Work<T>): Promise<T> {
    use.signal.throwIfAborted()
    if (this.#closed) throw new CallRefusal('turn_over')
    if (this.#open?.connection.fits(use) === false) this.#drop()
    this.#open ??= opened(this.#connect(use))
    const open = this.#open
    const running = open.connection.begin(use)
    const options = { signal: use.signal, timeout: NO_LIMIT_MS, maxTotalTimeout: NO_LIMIT_MS }
    const whole = async () => {
      if (!open.ready) await open.client.connect(open.connection.transport, options)
      open.ready = true
      return await work(open.client, options)
    }
    try {
      const value = await raceSignal(raceSignal(whole(), running.signal), use.signal)
      running.end()
      return value
    } catch (error) {
      // In this order: what `end` aborts is not the cause.
      const cause = running.signal.aborted ? running.signal.reason : error
      running.end()
      if (this.#open === open) this.#drop()
      throw cause
    }
  }

  #drop(): void {
    const open = this.#open
    this.#open = undefined
    if (open === undefined) return
    const closing = closed(open).finally(() => this.#closing.delete(closing))
    this.#closing.add(closing)
  }
}

type Work<T> = (client: Client, options: { signal: AbortSignal; timeout: number }) => Promise<T>

function opened(connection: Connection) {
  const { probeMs } = connection
  const client = new Client(
    { name: 'sandbox-broker', version: '1' },
    {
      capabilities: {},
      versionNegotiation: {
        mode: 'auto',
        ...(probeMs === undefined ? {} : { probe: { timeoutMs: probeMs } }),
      },
      inputRequired: { autoFulfill: false },
      listMaxPages: MOST_PAGES,
      // Schemas of a server are not compiled here: its answers are data, and nobody relies on their shape.
      jsonSchemaValidator: {
        getValidator: () => (input) => ({ valid: true, data: input as never, errorMessage: undefined }),
      },
    },
  )
  client.onerror = () => {}
  return { connection, client, ready: false }
}

async function closed({ connection, client }: { connection: Connection; client: Client }): Promise<void> {
  try {
    await connection.leave()
  } catch {}
  try {
    await client.close()
  } catch {}
}

/** Nothing that a server wrote goes beyond the cause. */
function toRefusal(error: unknown, use: McpUse): unknown {
  if (use.signal.aborted) return use.signal.reason
  if (error instanceof CallRefusal) return error
  if (SdkHttpError.isInstance(error) && error.status >= 400) return statusRefusal(error.status)
  return new CallRefusal('upstream_invalid', { cause: error })
}
