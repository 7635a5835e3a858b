import { randomUUID } from 'node:crypto'
import {
  type BoundTurn,
  BrokerError,
  type BrokerHandler,
  type CallEngine,
  type CallRoute,
  CHEAP_CALLS,
  handleCall,
  handleWebRequest,
  type LastingDesk,
  LISTENER_LIMITS,
  lastingWorkerRoutes,
  listMcp,
  McpLinks,
  OpenDesk,
  type RouteTable,
  type SocketOwner,
  STREAM_LIMITS,
  sharedBodyBudget,
  specBytes,
  TokenBucket,
  UnixListener,
  type WorkerRoute,
  type WorkerRouteOptions,
  workerRoutes,
} from '@sandbox/broker/engine'
import {
  limits,
  PI_CALL_ROUTES,
  PI_PLACEHOLDER,
  type PiMcpSpec,
  type PiOutcome,
  type PiToolSpec,
  type PiWelcome,
  type PiWorkerConfig,
} from '@sandbox/protocol'
import { CompactionDesk } from './compaction/compaction-desk.ts'
import type { PiHostContext } from './host-context.ts'
import { type PiSandboxBrokerOptions, type ResolvedPiOptions, resolvePiOptions } from './options.ts'
import { type PiDeskTurn, piMessages } from './pi-messages.ts'
import { PiTurns } from './pi-turns.ts'
import { mcpRoute } from './routes/mcp-route.ts'
import { messagesRoute } from './routes/messages-route.ts'
import { toolRoute } from './routes/tool-route.ts'
import { ShownTools } from './shown-tools.ts'

/** Times of a broker, in milliseconds. Fixed but in tests. */
export interface PiTimes {
  /** For a worker's message; a poll may take longer by the time that it is held, a result by `idleMs`. */
  readonly callMs: number
  readonly pollMs: number
  readonly leaseMs: number
  readonly silenceMs: number
  readonly headersMs: number
  /** For the tool lists of all MCP servers. */
  readonly listMs: number
  /** How long such a list is kept for the speaker who was shown it. */
  readonly listKeptMs: number
  /** Silence of an upstream after which a stream's guest gets a comment. */
  readonly keepAliveMs: number
  /** How long a compactor that ignores its signal keeps others from running. */
  readonly graceMs: number
}

const TIMES: PiTimes = {
  callMs: 120_000,
  pollMs: limits.NEXT_POLL_MS,
  leaseMs: limits.ACK_LEASE_MS,
  silenceMs: limits.PI_SILENCE_MS,
  headersMs: LISTENER_LIMITS.headersMs,
  listMs: 10_000,
  listKeptMs: 60_000,
  keepAliveMs: STREAM_LIMITS.keepAliveMs,
  graceMs: 60_000,
}

/** Room for the MCP tools of a turn, as JSON. */
const MCP_SPECS_BYTES = 1024 * 1024
const MCP_TOOLS = 1024
const NEVER = new AbortController().signal

/**
 * The host side of one Pi worker, which lives for many turns: one after another, each for its own speaker. Until the
 * first `bind`, and after each `release`, only worker routes answer.
 */
export class PiSandboxBroker implements AsyncDisposable {
  /** Where the worker reports, fetches its turns and hands in its results. */
  readonly desk: LastingDesk<PiDeskTurn, PiOutcome>
  /** The host tools as the worker is told of them. */
  readonly toolSpecs: readonly PiToolSpec[]
  readonly #options: ResolvedPiOptions
  readonly #times: PiTimes
  readonly #turns: PiTurns
  readonly #desk: OpenDesk<PiDeskTurn, PiOutcome>
  readonly #links = new McpLinks()
  readonly #shown: ShownTools
  readonly #listener: UnixListener
  readonly #handler: BrokerHandler

  /** @throws BrokerError `options_invalid`, naming the field. */
  constructor(options: PiSandboxBrokerOptions, times: Partial<PiTimes> = {}) {
    const resolved = resolvePiOptions(options)
    this.#options = resolved
    this.#times = { ...TIMES, ...times }
    this.#shown = new ShownTools(this.#times.listKeptMs)
    this.toolSpecs = resolved.tools.map(({ spec }) => spec)
    this.#turns = new PiTurns({
      maxCalls: resolved.maxCalls,
      concurrent: 1,
      queued: resolved.maxQueuedCalls,
      parallel: resolved.maxParallelCalls,
    })
    this.#desk = new OpenDesk({
      messages: piMessages,
      pollMs: this.#times.pollMs,
      leaseMs: this.#times.leaseMs,
      silenceMs: this.#times.silenceMs,
      welcome: () => this.#welcome(),
      onDiscard: () => this.#turns.binding.release(),
    })
    this.desk = this.#desk
    const bodies = (resolved.bodyBudget ?? sharedBodyBudget()).share()
    const { onCall, onFailure, onReceipt, credit } = resolved
    const engine: CallEngine = {
      routes: this.#routes(bodies),
      fallback: { method: 'POST', headers: 'any', placeholder: PI_PLACEHOLDER },
      turns: this.#turns.binding,
      bodies,
      cheap: new TokenBucket(CHEAP_CALLS),
      ...(credit === undefined ? {} : { credit }),
      ...(onCall === undefined ? {} : { onCall }),
      ...(onFailure === undefined ? {} : { onFailure }),
      ...(onReceipt === undefined ? {} : { onReceipt }),
    }
    this.#handler = (request) => handleCall(engine, request)
    this.#listener = new UnixListener(this.#handler, {
      connections: LISTENER_LIMITS.connections,
      headersMs: this.#times.headersMs,
      drainMs: resolved.idleMs,
    })
  }

  /**
   * Opens the worker's socket, mode 0600. `owner` gives it to another account. Rejects with BrokerError codes
   * `socket_path_invalid`, `listen_failed`, `already_listening`.
   */
  listen(socketPath: string, owner?: SocketOwner): Promise<void> {
    return this.#listener.listen(socketPath, owner)
  }

  /** Answers one request without a socket. Never rejects. */
  handle(request: Request): Promise<Response> {
    return handleWebRequest(this.#handler, request)
  }

  /**
   * Admits a turn; its context is copied. The turn before must have been released: its calls keep their own scope
   * while they are in flight, and get 410 afterwards. `turnId` omitted = a random one.
   * @throws BrokerError `already_bound`, `turn_invalid`, and `second_hello` and the like when the worker is already
   * discarded; CredentialError `scope_invalid`.
   */
  bind(context: PiHostContext, { turnId = randomUUID() }: { readonly turnId?: string } = {}): BoundTurn {
    if (this.#desk.failure !== undefined) throw this.#desk.failure
    return this.#turns.bind(context, turnId)
  }

  /**
   * Asks the MCP servers for their tools, as the bound turn's speaker: what the turn tells its worker. Servers that
   * do not answer within 10 s, or not well, are left out, and `onCall` hears of each. A list with every server in it is
   * kept for a minute, for this speaker alone. Rejects with BrokerError `turn_invalid` when no turn is bound, and with
   * the signal's reason.
   */
  async mcpSpecs({ signal = NEVER }: { readonly signal?: AbortSignal } = {}): Promise<PiMcpSpec[]> {
    const turn = this.#turns.last
    if (turn === undefined || turn.over) {
      throw new BrokerError('turn_invalid', 'Bind the turn before asking for its MCP tools.')
    }
    const { mcp: servers, onCall, onReceipt } = this.#options
    const room = {
      bytes: this.toolSpecs.reduce((left, spec) => left - specBytes(spec), MCP_SPECS_BYTES),
      tools: MCP_TOOLS,
    }
    return await this.#shown.of(turn.scope.speaker.id, servers.length, () =>
      listMcp({
        servers,
        links: this.#links,
        turn,
        signal,
        limitMs: this.#times.listMs,
        room,
        ...(onCall === undefined ? {} : { onCall }),
        ...(onReceipt === undefined ? {} : { onReceipt }),
      }),
    )
  }

  /**
   * Ends the bound turn and closes the socket. Idempotent. `force` (default true) ends calls and connections; with
   * false, calls in flight may finish first.
   */
  async stop(force = true): Promise<void> {
    this.#desk.close()
    if (force) this.#turns.binding.release()
    await this.#listener.stop(force)
    this.#turns.binding.release()
    await this.#links.closed()
  }

  /** As `stop()`. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.stop()
  }

  #welcome(): Omit<PiWelcome, 'protocol' | 'workerNonce'> {
    return {
      tools: this.toolSpecs,
      mcp: this.#options.mcp.map(({ name, tools }) => ({ name, tools: [...tools] })),
    }
  }

  #config(): PiWorkerConfig {
    const { compaction } = this.#options
    return compaction === undefined ? {} : { compaction: { engine: compaction.engine } }
  }

  #routes(bodies: NonNullable<CallEngine['bodies']>): RouteTable {
    const options = this.#options
    const turns = this.#turns
    const { callMs, pollMs, keepAliveMs, graceMs } = this.#times
    const worker: WorkerRouteOptions = {
      desk: this.#desk,
      placeholder: PI_PLACEHOLDER,
      callMs,
      pollMs,
      anyHeaders: true,
      bodies,
    }
    const { compaction, onCompaction: onEvent } = options
    const desk = new CompactionDesk({
      turns,
      compaction,
      bodies,
      graceMs,
      ...(onEvent === undefined ? {} : { onEvent }),
    })
    const messages = messagesRoute('messages', { options, turns, keepAliveMs })
    const countTokens = messagesRoute('count_tokens', { options, turns, keepAliveMs })
    return new Map<string, CallRoute | WorkerRoute>([
      [PI_CALL_ROUTES.messages, messages],
      [PI_CALL_ROUTES.plainMessages, messages],
      [PI_CALL_ROUTES.countTokens, countTokens],
      [PI_CALL_ROUTES.plainCountTokens, countTokens],
      ...options.tools.map(
        (tool) => [PI_CALL_ROUTES.tools + tool.spec.name, toolRoute(tool, { options, turns })] as const,
      ),
      ...options.mcp.map(
        (server) =>
          [PI_CALL_ROUTES.mcp + server.name, mcpRoute(server, { options, links: this.#links })] as const,
      ),
      ...workerRoutes(worker),
      ...lastingWorkerRoutes({ ...worker, config: () => this.#config() }),
      ...desk.routes(),
    ])
  }
}
