import {
  limits,
  type McpSpec,
  SEALED_PLACEHOLDER,
  type SealedOutcome,
  type ToolSpec,
  TURN_NONCE_HEADER,
} from '@sandbox/protocol'
import { sharedBodyBudget } from './engine/call/body-budget.ts'
import type { BrokerHandler } from './engine/call/exchange.ts'
import { BODY_MS, type CallEngine, handleCall } from './engine/call/handle-call.ts'
import { type HeadPolicy, SEALED_HEADERS } from './engine/call/request-head.ts'
import type { RouteTable } from './engine/call/route.ts'
import { CHEAP_CALLS, TokenBucket } from './engine/call/token-bucket.ts'
import { BrokerError } from './engine/errors.ts'
import { LISTENER_LIMITS, type SocketOwner, UnixListener } from './engine/listener/unix-listener.ts'
import { handleWebRequest } from './engine/listener/web-adapter.ts'
import { McpLinks } from './engine/mcp/mcp-links.ts'
import { listMcp, specBytes } from './engine/mcp/mcp-listing.ts'
import { STREAM_LIMITS } from './engine/stream/event-answer.ts'
import { type DeskTurn, sealedMessages } from './engine/turn/sealed-messages.ts'
import { type BoundTurn, type Turn, TurnBinding, type TurnInput } from './engine/turn/turn-binding.ts'
import { OpenDesk, type WorkerDesk } from './engine/turn/worker-desk.ts'
import { workerRoutes } from './engine/turn/worker-routes.ts'
import { type BrokerOptions, type ResolvedOptions, resolveOptions } from './options.ts'
import { mcpRoute } from './routes/mcp-route.ts'
import { modelRoute } from './routes/model-route.ts'
import { toolRoute } from './routes/tool-route.ts'
import { wireRoutes } from './routes/wire-routes.ts'

/** The host side of one sealed worker. */
export interface SealedBroker extends AsyncDisposable {
  readonly desk: WorkerDesk
  /** The tools as the turn describes them to the worker. */
  readonly toolSpecs: readonly ToolSpec[]
  /**
   * Asks the MCP servers for their tools, as the bound turn's speaker: what the turn tells its worker. Servers that
   * do not answer within 10 s, or not well, are left out, and `onCall` hears of each. Rejects with
   * {@link BrokerError} `turn_invalid` before `bind`, and with the signal's reason.
   */
  mcpSpecs(options?: { readonly signal?: AbortSignal }): Promise<McpSpec[]>
  /**
   * Opens the worker's socket, mode 0600. `owner` gives it to another account. Rejects with
   * {@link BrokerError} codes `socket_path_invalid`, `listen_failed`, `already_listening`.
   */
  listen(socketPath: string, owner?: SocketOwner): Promise<void>
  /** Answers one request without a socket. Never rejects. */
  handle(request: Request): Promise<Response>
  /**
   * Admits the worker's turn. Throws {@link BrokerError} `already_bound` on a second bind, `turn_invalid`, and
   * `second_hello` and the like when the worker is already discarded; CredentialError `scope_invalid`.
   */
  bind(turn: TurnInput): BoundTurn
  /**
   * Ends the turn and closes the socket. Idempotent. `force` (default true) ends calls and connections; with
   * false, calls in flight may finish first.
   */
  stop(force?: boolean): Promise<void>
}

/** Times of a broker, in milliseconds. Fixed but in tests. */
export interface SealedTimes {
  readonly callMs: number
  readonly pollMs: number
  readonly leaseMs: number
  readonly headersMs: number
  /** Longest time for a request's body, however its pieces are spaced. */
  readonly bodyMs: number
  /** How long an answer waits for a guest that does not read. */
  readonly drainMs: number
  /** For the tool lists of all MCP servers. */
  readonly listMs: number
  /** Silence of an upstream after which a stream's guest gets a comment. */
  readonly keepAliveMs: number
}

const TIMES: SealedTimes = {
  callMs: limits.SEALED_CALL_MS,
  pollMs: limits.NEXT_POLL_MS,
  leaseMs: limits.ACK_LEASE_MS,
  headersMs: LISTENER_LIMITS.headersMs,
  bodyMs: BODY_MS,
  drainMs: LISTENER_LIMITS.drainMs,
  listMs: 10_000,
  keepAliveMs: STREAM_LIMITS.keepAliveMs,
}

/**
 * Opens a broker for one sealed worker and one turn. Until `bind`, only worker routes answer.
 * @throws BrokerError `options_invalid`
 */
export function openSealedBroker(options: BrokerOptions): SealedBroker {
  return new OpenBroker(resolveOptions(options), { ...TIMES })
}

/** {@link openSealedBroker} with other times, and with or without a worker. For tests and the facade. */
export function openBroker(
  options: BrokerOptions,
  { worker = true, times = {} }: { readonly worker?: boolean; readonly times?: Partial<SealedTimes> },
): SealedBroker {
  return new OpenBroker(resolveOptions(options), { ...TIMES, ...times }, worker)
}

class OpenBroker implements SealedBroker {
  readonly desk: OpenDesk<DeskTurn, SealedOutcome>
  readonly toolSpecs: readonly ToolSpec[]
  readonly #turns: TurnBinding
  readonly #listener: UnixListener
  readonly #handler: BrokerHandler
  readonly #options: ResolvedOptions
  readonly #listMs: number
  readonly #links = new McpLinks()
  #turn: Turn | undefined

  constructor(options: ResolvedOptions, times: SealedTimes, worker = true) {
    this.#options = options
    this.#listMs = times.listMs
    this.#turns = new TurnBinding({
      limits: {
        maxCalls: options.maxCalls,
        concurrent: 1,
        queued: options.maxQueuedCalls,
        parallel: options.maxParallelCalls,
      },
      once: true,
      needsNonce: worker,
      ownedIds: options.ownedIds,
    })
    this.toolSpecs = options.tools.map((tool) => tool.spec)
    this.desk = new OpenDesk({
      messages: sealedMessages,
      pollMs: times.pollMs,
      leaseMs: times.leaseMs,
      onDiscard: () => this.#turns.release(),
    })
    const engine: CallEngine = {
      routes: new Map([
        ...callRoutes(options, times, this.#links),
        ...(worker ? this.#workerRoutes(times) : []),
      ]),
      fallback: POLICY,
      turns: this.#turns,
      bodies: (options.bodyBudget ?? sharedBodyBudget()).share(),
      bodyMs: times.bodyMs,
      cheap: new TokenBucket(CHEAP_CALLS),
      ...(options.credit === undefined ? {} : { credit: options.credit }),
      ...(options.onReceipt === undefined ? {} : { onReceipt: options.onReceipt }),
      ...(options.onCall === undefined ? {} : { onCall: options.onCall }),
    }
    this.#handler = (request) => handleCall(engine, request)
    this.#listener = new UnixListener(this.#handler, {
      connections: LISTENER_LIMITS.connections,
      headersMs: times.headersMs,
      drainMs: times.drainMs,
    })
  }

  listen(socketPath: string, owner?: SocketOwner): Promise<void> {
    return this.#listener.listen(socketPath, owner)
  }

  handle(request: Request): Promise<Response> {
    return handleWebRequest(this.#handler, request)
  }

  bind(turn: TurnInput): BoundTurn {
    if (this.desk.failure !== undefined) throw this.desk.failure
    const bound = this.#turns.bind(turn)
    this.#turn = bound
    const { turnId, nonce, scope } = bound
    return {
      turnId,
      nonce,
      scope,
      release: (options) => bound.release(options),
      revoke: () => bound.revoke(),
    }
  }

  async mcpSpecs({ signal = NEVER }: { readonly signal?: AbortSignal } = {}): Promise<McpSpec[]> {
    const turn = this.#turn
    if (turn === undefined)
      throw new BrokerError('turn_invalid', 'Bind the turn before asking for its MCP tools.')
    const { mcp: servers, onCall, onReceipt } = this.#options
    return await listMcp({
      servers,
      links: this.#links,
      turn,
      signal,
      limitMs: this.#listMs,
      room: {
        bytes: this.toolSpecs.reduce((left, spec) => left - specBytes(spec), limits.TOOL_SPECS_BYTES),
        tools: limits.MODEL_TOOLS - OWN_TOOLS - this.toolSpecs.length,
      },
      ...(onReceipt === undefined ? {} : { onReceipt }),
      ...(onCall === undefined ? {} : { onCall }),
    })
  }

  async stop(force = true): Promise<void> {
    this.desk.close()
    if (force) this.#turns.release()
    await this.#listener.stop(force)
    this.#turns.release()
    await this.#links.closed()
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.stop()
  }

  #workerRoutes(times: SealedTimes) {
    return workerRoutes({
      desk: this.desk,
      placeholder: SEALED_PLACEHOLDER,
      callMs: times.callMs,
      pollMs: times.pollMs,
    })
  }
}

/** Tools that a worker brings itself. */
const OWN_TOOLS = 8

const NEVER = new AbortController().signal

const POLICY: HeadPolicy = {
  method: 'POST',
  headers: new Set([...SEALED_HEADERS, TURN_NONCE_HEADER]),
  placeholder: SEALED_PLACEHOLDER,
}

const MCP = { requestBytes: limits.SEALED_CALL_BODY_BYTES }

function callRoutes(
  options: ResolvedOptions,
  { callMs, keepAliveMs }: SealedTimes,
  links: McpLinks,
): RouteTable {
  const common = { policy: POLICY, callMs }
  return new Map([
    ['/model', modelRoute(options, common)],
    ...wireRoutes(options, keepAliveMs),
    ...options.mcp.map(
      (server) => [`/mcp/${server.name}`, mcpRoute({ ...common, ...MCP, server, links })] as const,
    ),
    ...options.tools.map((tool) => [`/tools/${tool.spec.name}`, toolRoute(tool, common)] as const),
  ])
}
