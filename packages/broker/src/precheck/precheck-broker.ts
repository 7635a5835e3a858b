import { randomUUID } from 'node:crypto'
import type { CredentialReceipt } from '@sandbox/credential-scope'
import { limits, type PrecheckOutcome, SEALED_PLACEHOLDER } from '@sandbox/protocol'
import { sharedBodyBudget } from '../engine/call/body-budget.ts'
import type { CallEvent, ReceiptCall } from '../engine/call/call-event.ts'
import type { CallCredit } from '../engine/call/credit.ts'
import type { BrokerHandler } from '../engine/call/exchange.ts'
import { type CallEngine, handleCall } from '../engine/call/handle-call.ts'
import { type HeadPolicy, SEALED_HEADERS } from '../engine/call/request-head.ts'
import type { RouteTable } from '../engine/call/route.ts'
import { CHEAP_CALLS, TokenBucket } from '../engine/call/token-bucket.ts'
import { BrokerError } from '../engine/errors.ts'
import { type SocketOwner, UnixListener } from '../engine/listener/unix-listener.ts'
import { handleWebRequest } from '../engine/listener/web-adapter.ts'
import { McpLinks } from '../engine/mcp/mcp-links.ts'
import type { McpServer } from '../engine/mcp/mcp-port.ts'
import { type Turn, TurnBinding, type TurnInput } from '../engine/turn/turn-binding.ts'
import { OpenDesk, type WorkerDesk } from '../engine/turn/worker-desk.ts'
import { workerRoutes } from '../engine/turn/worker-routes.ts'
import { mcpRoute } from '../routes/mcp-route.ts'
import { grantedServers, type PrecheckGrant, type PrecheckTools } from './granted-servers.ts'
import { type PrecheckRun, precheckMessages } from './precheck-messages.ts'
import { RunGate } from './run-gate.ts'

/** Options of {@link precheckBroker}. */
export interface PrecheckOptions {
  /** Whose schedule it is; copied at once. */
  readonly context: TurnInput['context']
  /** Ends the run when it fires. */
  readonly signal: AbortSignal
  readonly grant: PrecheckGrant
  /** What was approved with the script. */
  readonly approved: readonly PrecheckTools[]
  /** Requests of the run, refused ones included, 1 to 100. Omitted = 16. */
  readonly maxCalls?: number
  /** As `BrokerOptions.credit`. Omitted = every call may be made. */
  readonly credit?: CallCredit
  /** As `BrokerOptions.onReceipt`. */
  onReceipt?(receipt: CredentialReceipt, call: ReceiptCall): void
  /** Called once per request when it has ended. A throw is swallowed. */
  onCall?(event: CallEvent): void
}

/** The host side of one run of a precheck script: MCP tools, and nothing else. */
export interface PrecheckBroker extends AsyncDisposable {
  /** Where the run's worker says hello, fetches its job and hands in what the script decided. */
  readonly desk: WorkerDesk<PrecheckRun, PrecheckOutcome>
  /** What the script may call. */
  readonly servers: readonly PrecheckTools[]
  /** Opens a socket, mode 0600. Rejects as the listener of a sealed broker does. */
  listen(socketPath: string, owner?: SocketOwner): Promise<void>
  /** Answers one request without a socket. Never rejects. */
  handle(request: Request): Promise<Response>
  /** Ends the run, its sessions and the socket. Idempotent. Without `force` (default true) calls may finish first. */
  stop(force?: boolean): Promise<void>
}

const POLICY: HeadPolicy = {
  method: 'POST',
  headers: new Set(SEALED_HEADERS),
  placeholder: SEALED_PLACEHOLDER,
}

/**
 * Opens a broker for one run of a script. It asks once what the scope is granted, and reaches only what was approved
 * with the script as well. Calls need no nonce: the socket is the worker's own, and so is the run.
 * @throws BrokerError `options_invalid`, `grant_failed`; CredentialError `scope_invalid`. Rejects with the signal's
 * reason when that fires.
 */
export async function precheckBroker(options: PrecheckOptions): Promise<PrecheckBroker> {
  const maxCalls = readMaxCalls(options.maxCalls ?? 16)
  const { context, signal, grant } = options
  if (typeof grant !== 'function') throw new BrokerError('options_invalid', 'grant: must be a function')
  const approved = readApproved(options.approved)
  const turns = new TurnBinding({
    limits: { maxCalls, concurrent: 1, queued: 0 },
    once: true,
    needsNonce: false,
  })
  const run = turns.bind({ turnId: randomUUID(), context, signal })
  try {
    const servers = await grantedServers({ grant, scope: run.scope, approved, signal })
    const { onCall, onReceipt } = options
    const told: Told = {
      ...(onCall && { onCall: (event) => onCall.call(options, event) }),
      ...(onReceipt && { onReceipt: (receipt, call) => onReceipt.call(options, receipt, call) }),
    }
    const { credit } = options
    return new RunBroker({ turns, run, servers, maxCalls, ...(credit && { credit }), told })
  } catch (error) {
    run.release()
    throw error
  }
}

/** Whom the host wants to hear. */
type Told = Pick<CallEngine, 'onCall' | 'onReceipt'>

class RunBroker implements PrecheckBroker {
  readonly desk: OpenDesk<PrecheckRun, PrecheckOutcome>
  readonly servers: readonly PrecheckTools[]
  readonly #run: Turn
  readonly #links = new McpLinks()
  readonly #handler: BrokerHandler
  readonly #listener: UnixListener

  constructor(parts: {
    readonly turns: TurnBinding
    readonly run: Turn
    readonly servers: readonly McpServer[]
    readonly maxCalls: number
    readonly credit?: CallCredit
    readonly told: Told
  }) {
    const { turns, run, servers, maxCalls, credit, told } = parts
    this.servers = servers.map(({ name, tools }) => ({ server: name, tools: [...tools] }))
    this.#run = run
    this.desk = new OpenDesk({
      messages: precheckMessages,
      pollMs: limits.NEXT_POLL_MS,
      leaseMs: limits.ACK_LEASE_MS,
      onDiscard: () => run.release(),
    })
    const worker = workerRoutes({
      desk: this.desk,
      placeholder: SEALED_PLACEHOLDER,
      callMs: limits.SEALED_CALL_MS,
      pollMs: limits.NEXT_POLL_MS,
    })
    const engine: CallEngine = {
      routes: new Map([...routesTo(servers, this.#links), ...worker]),
      fallback: POLICY,
      turns,
      bodies: sharedBodyBudget().share(),
      cheap: new TokenBucket(CHEAP_CALLS),
      ...(credit && { credit }),
      ...told,
    }
    const handler: BrokerHandler = (request) => handleCall(engine, request)
    const targets = new Set(worker.map(([path]) => path))
    this.#handler = new RunGate({ handler, run, maxCalls, worker: targets, ...told }).handle
    this.#listener = new UnixListener(this.#handler)
  }

  listen(socketPath: string, owner?: SocketOwner): Promise<void> {
    return this.#listener.listen(socketPath, owner)
  }

  handle(request: Request): Promise<Response> {
    return handleWebRequest(this.#handler, request)
  }

  async stop(force = true): Promise<void> {
    this.desk.close()
    if (force) this.#run.release()
    await this.#listener.stop(force)
    this.#run.release()
    await this.#links.closed()
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.stop()
  }
}

function routesTo(servers: readonly McpServer[], links: McpLinks): RouteTable {
  const common = {
    links,
    policy: POLICY,
    requestBytes: limits.PRECHECK_CALL_BODY_BYTES,
    callMs: limits.SEALED_CALL_MS,
    bareCalls: true,
  }
  return new Map(servers.map((server) => [`/mcp/${server.name}`, mcpRoute({ ...common, server })]))
}

function readMaxCalls(value: number): number {
  if (Number.isSafeInteger(value) && value >= 1 && value <= 100) return value
  throw new BrokerError('options_invalid', 'maxCalls: must be a whole number from 1 to 100')
}

function readApproved(approved: readonly PrecheckTools[]): readonly PrecheckTools[] {
  const good =
    Array.isArray(approved) &&
    approved.every((one) => typeof one?.server === 'string' && Array.isArray(one.tools))
  if (!good) throw new BrokerError('options_invalid', 'approved: must be an array of { server, tools }')
  return structuredClone(approved)
}
