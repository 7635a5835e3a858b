import {
  BodyBudget,
  BrokerError,
  type CallCredit,
  type CallEvent,
  type FailureSink,
  type McpServer,
  type ReceiptCall,
  type ReceiptSink,
} from '@sandbox/broker/engine'
import {
  type AuthSlot,
  type CredentialGetter,
  type CredentialReceipt,
  snapshotScope,
} from '@sandbox/credential-scope'
import type { PiCompactionEvent } from './compaction/compaction-event.ts'
import { type PiCompaction, type ResolvedCompaction, readCompaction } from './compaction/compaction-option.ts'
import type { PiHostTool } from './host-tool.ts'
import { allowedFlags, isFlag } from './model-input/beta-flags.ts'
import { type ResolvedPiTool, readMcp, readTools } from './tool-options.ts'
import { type PiUpstreamOptions, type PiUpstreamPicker, readUpstream } from './upstream-choice.ts'

/** What a Pi broker is made from. */
export interface PiSandboxBrokerOptions {
  /** The model that every call is pinned to. */
  readonly model: string
  /**
   * Picks the credential of a channel and a speaker. Asked before every model call, never cached. One that does not
   * say which origin it is for is for that of `upstream`, and goes nowhere else.
   */
  readonly oauthToken: CredentialGetter
  /**
   * Where the Messages API is, `https:`, without user info, query or fragment; or a function of the scope that picks
   * it. Omitted = `https://api.anthropic.com`.
   */
  readonly upstream?: string | PiUpstreamPicker
  /** Admits `http:` for loopback hosts. Omitted = false. */
  readonly allowHttp?: boolean
  /** Where the credential goes: omitted = `authorization: Bearer`, as OAuth tokens do. API keys go into `x-api-key`. */
  readonly authSlot?: AuthSlot
  /** At most 128. Omitted = none. */
  readonly tools?: readonly PiHostTool[]
  /** MCP servers, made by `mcpServer` of `@sandbox/broker/mcp`. Omitted = none. */
  readonly mcp?: readonly McpServer[]
  /** Compacts conversations on the host. Omitted = Pi makes its own summaries. */
  readonly compaction?: PiCompaction
  /** Calls in one turn, 1 to 1000. Omitted = 128. */
  readonly maxCalls?: number
  /** Calls in flight at once, 1 to 16. Omitted = 4. */
  readonly maxParallelCalls?: number
  /** Calls that may wait while as many as may are in flight, 0 to 64. Omitted = 4. */
  readonly maxQueuedCalls?: number
  /** Output tokens of one model call, 1025 to 200,000. Omitted = 128,000. */
  readonly maxOutputTokens?: number
  /** Longest silence of a worker that does not read or write, 1000 to 3,600,000 ms. Omitted = 120,000. */
  readonly idleMs?: number
  /** Beta flags that pass besides the usual ones, such as `context-management-2025-06-27`. Omitted = none. */
  readonly betas?: readonly string[]
  /**
   * Request fields that pass although the broker would drop them, by the dotted names that `droppedFields` reports.
   * What is refused stays refused. Omitted = none.
   */
  readonly allowFields?: readonly string[]
  /** Top-level request fields that are set, whatever the guest sent. Omitted = none. */
  readonly setFields?: Readonly<Record<string, unknown>>
  /** Memory for bodies: give brokers one to share. Omitted = the budget of the process, 256 MiB. */
  readonly bodyBudget?: BodyBudget
  /** The host's accounts: a call for which they have no credit is answered 402. Omitted = every call may be made. */
  readonly credit?: CallCredit
  /** Called once per call when it has ended. A throw is swallowed. */
  onCall?(event: CallEvent): void
  /**
   * Called after `onCall` for a call that failed, with what the upstream, a tool or a hook said about it: at most
   * 2,000 characters, secrets masked. For a log, never for a chat: it may hold words of a guest. A throw is swallowed.
   */
  onFailure?(event: CallEvent, words: string): void
  /** Called once per credential that was asked for, given or not. A throw is swallowed. */
  onReceipt?(receipt: CredentialReceipt, call: ReceiptCall): void
  /** Called with what became of each compaction. A throw is swallowed. */
  onCompaction?(event: PiCompactionEvent): void
}

/** {@link PiSandboxBrokerOptions}, checked, with every default filled in. */
export interface ResolvedPiOptions {
  readonly oauthToken: CredentialGetter
  readonly upstream: PiUpstreamOptions
  readonly tools: readonly ResolvedPiTool[]
  readonly mcp: readonly McpServer[]
  readonly compaction: ResolvedCompaction | undefined
  readonly maxCalls: number
  readonly maxParallelCalls: number
  readonly maxQueuedCalls: number
  readonly maxOutputTokens: number
  readonly idleMs: number
  readonly flags: ReadonlySet<string>
  readonly allowFields: ReadonlySet<string>
  readonly setFields: Readonly<Record<string, unknown>>
  readonly bodyBudget: BodyBudget | undefined
  readonly credit: CallCredit | undefined
  readonly onCall: ((event: CallEvent) => void) | undefined
  readonly onFailure: FailureSink | undefined
  readonly onReceipt: ReceiptSink | undefined
  readonly onCompaction: ((event: PiCompactionEvent) => void) | undefined
}

/**
 * Checks options without opening anything or asking for a credential, as `new PiSandboxBroker` would (CS-17).
 * @throws BrokerError `options_invalid`, naming the field.
 */
export function checkPiBrokerOptions(options: PiSandboxBrokerOptions): void {
  resolvePiOptions(options)
  snapshotScope({ channel: 'sandbox:preflight', speaker: { id: 'preflight', name: '' } })
}

const CALLBACKS = ['onCall', 'onFailure', 'onReceipt', 'onCompaction'] as const

/** Fields that have an option of their own, or that are bounded by the host's level. */
const OWN_FIELDS = ['model', 'messages', 'stream', 'max_tokens', 'thinking', 'output_config', 'thread']

/**
 * Checks options and fills in defaults.
 * @throws BrokerError `options_invalid`, naming the field.
 */
export function resolvePiOptions(options: PiSandboxBrokerOptions): ResolvedPiOptions {
  if (typeof options !== 'object' || options === null) throw invalid('options', 'must be an object')
  const { oauthToken, bodyBudget, credit, allowFields = [], betas = [] } = options
  if (typeof oauthToken !== 'function') throw invalid('oauthToken', 'must be a function of the scope')
  for (const name of CALLBACKS) {
    const given = options[name]
    if (given !== undefined && typeof given !== 'function') throw invalid(name, 'must be a function')
  }
  if (credit !== undefined && typeof credit?.reserve !== 'function') {
    throw invalid('credit', 'must have a function `reserve`')
  }
  if (bodyBudget !== undefined && !(bodyBudget instanceof BodyBudget)) {
    throw invalid('bodyBudget', 'must be made by new BodyBudget({ bytes })')
  }
  if (!Array.isArray(allowFields) || allowFields.some((name) => typeof name !== 'string')) {
    throw invalid('allowFields', 'must be an array of field names')
  }
  if (!Array.isArray(betas) || !betas.every(isFlag)) throw invalid('betas', 'must be an array of beta flags')
  return {
    oauthToken,
    upstream: readUpstreamOptions(options),
    tools: readTools(options.tools ?? []),
    mcp: readMcp(options.mcp ?? []),
    compaction: options.compaction === undefined ? undefined : readCompaction(options.compaction),
    maxCalls: readCount('maxCalls', options.maxCalls ?? 128, 1, 1000),
    maxParallelCalls: readCount('maxParallelCalls', options.maxParallelCalls ?? 4, 1, 16),
    maxQueuedCalls: readCount('maxQueuedCalls', options.maxQueuedCalls ?? 4, 0, 64),
    maxOutputTokens: readCount('maxOutputTokens', options.maxOutputTokens ?? 128_000, 1025, 200_000),
    idleMs: readCount('idleMs', options.idleMs ?? 120_000, 1000, 3_600_000),
    flags: allowedFlags(betas),
    allowFields: new Set(allowFields),
    setFields: readSetFields(options.setFields ?? {}),
    bodyBudget,
    credit,
    onCall: options.onCall?.bind(options),
    onFailure: options.onFailure?.bind(options),
    onReceipt: options.onReceipt?.bind(options),
    onCompaction: options.onCompaction?.bind(options),
  }
}

function readUpstreamOptions(options: PiSandboxBrokerOptions): PiUpstreamOptions {
  const { upstream, model, authSlot } = options
  const allowHttp = options.allowHttp === true
  if (upstream !== undefined && typeof upstream !== 'string' && typeof upstream !== 'function') {
    throw invalid('upstream', 'must be a URL or a function of the scope')
  }
  const home = readUpstream(
    {
      model,
      ...(typeof upstream === 'string' ? { url: upstream } : {}),
      ...(authSlot === undefined ? {} : { authSlot }),
    },
    { allowHttp },
  )
  return { allowHttp, home, picker: typeof upstream === 'function' ? upstream : undefined }
}

function readSetFields(given: Readonly<Record<string, unknown>>): Readonly<Record<string, unknown>> {
  const fields = plainCopy(given)
  const decided = OWN_FIELDS.find((name) => Object.hasOwn(fields, name))
  if (decided !== undefined) throw invalid('setFields', `"${decided}" is not for this option`)
  return Object.freeze(fields)
}

function plainCopy(value: unknown): Record<string, unknown> {
  try {
    return JSON.parse(JSON.stringify(value)) as Record<string, unknown>
  } catch (cause) {
    throw new BrokerError('options_invalid', 'setFields: is no plain JSON', { cause })
  }
}

function readCount(name: string, value: number, least: number, most: number): number {
  if (Number.isSafeInteger(value) && value >= least && value <= most) return value
  throw invalid(name, `must be a whole number from ${least} to ${most}`)
}

function invalid(field: string, problem: string): BrokerError {
  return new BrokerError('options_invalid', `${field}: ${problem}`)
}
