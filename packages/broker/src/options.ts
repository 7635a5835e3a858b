import {
  type AuthSlot,
  type CredentialGetter,
  type CredentialReceipt,
  type SandboxSpeaker,
  snapshotScope,
} from '@sandbox/credential-scope'
import { limits, ROUTE_NAME, type ToolSpec } from '@sandbox/protocol'
import { BodyBudget } from './engine/call/body-budget.ts'
import type { CallEvent, ReceiptCall, ReceiptSink } from './engine/call/call-event.ts'
import type { CallCredit } from './engine/call/credit.ts'
import { OwnedIds } from './engine/call/owned-ids.ts'
import { BrokerError } from './engine/errors.ts'
import type { McpServer } from './engine/mcp/mcp-port.ts'
import type { InputCheck } from './engine/tool-input.ts'
import { plainCopy, readParameters } from './engine/tool-parameters.ts'
import { readMcp } from './mcp-option.ts'
import { readHome, type UpstreamOptions, type UpstreamPicker } from './upstream-choice.ts'

/** What a host tool learns about the call. Each call gets its own frozen copy. */
export interface HostToolContext {
  readonly channel: string
  /** `name` is chosen by the speaker: never key anything on it. `principalId` is there when the turn has one. */
  readonly speaker: SandboxSpeaker
  /** Fires when the turn ends, the guest leaves, or the call's 60 s are over. */
  readonly signal: AbortSignal
}

/** A tool that runs on the host. */
export interface HostTool {
  /** `[a-z][a-z0-9_]{0,47}`, unique. */
  name: string
  description: string
  /** A JSON Schema object, such as typebox makes, without remote references. Inputs that do not fit are refused. */
  parameters: object
  /**
   * Runs once per call, with an input that fits `parameters`. It is what the model wrote: untrusted all the same.
   * A throw fails the call, and its text never reaches the guest.
   */
  execute(input: Record<string, unknown>, context: HostToolContext): string | Promise<string>
}

/** Options of the sealed broker. */
export interface BrokerOptions {
  /** The full URL of a Chat Completions endpoint. `https:`, no user info, no fragment. */
  modelUrl: string
  /** The full URL of a Responses endpoint, checked as `modelUrl` is. Omitted = `/v1/responses` is no route. */
  responsesUrl?: string
  /** Sent as `model`, whatever the guest asked for. */
  model: string
  /** Picks another upstream for some channels or speakers. Omitted = the same for all. */
  upstream?: UpstreamPicker
  /**
   * Asked before every model call; see {@link CredentialGetter}. A credential that does not say which origin it is
   * for is for that of `modelUrl`, and goes nowhere else.
   */
  apiKey: CredentialGetter
  /** Admits `http:` for loopback hosts. Omitted = false. */
  allowHttp?: boolean
  /** Omitted = none. */
  tools?: readonly HostTool[]
  /** MCP servers, made by `mcpServer` of `@sandbox/broker/mcp`. Omitted = none. */
  mcp?: readonly McpServer[]
  /** Calls per turn, 1 to 1000. Omitted = 48. */
  maxCalls?: number
  /** Token limit of each model call, 1 to 32768. Omitted = 4096. */
  maxOutputTokens?: number
  /** Where the credential goes. Omitted = `authorization: Bearer`. */
  authSlot?: AuthSlot
  /** The field that carries `maxOutputTokens`. Omitted = `max_tokens`. */
  tokenLimitField?: 'max_tokens' | 'max_completion_tokens'
  /**
   * Moves a token limit that the guest put into the other field to `tokenLimitField`, for endpoints that know only
   * one. On `/v1/chat/completions`. Omitted = false: it stays where it is.
   */
  renameTokenLimit?: boolean
  /**
   * Whether every stream of Chat Completions is asked for token counts. Omitted = true; false for endpoints that do
   * not know `stream_options`, whose streams then tell the host no `usage` unless the guest asks for it.
   */
  streamUsage?: boolean
  /**
   * Whether answers of `/v1/responses` may be stored on the account, which is the provider's default, so that a
   * guest may go on from one by `previous_response_id`; see `ownedIds`. Omitted = false: `store` is always `false`.
   */
  allowStore?: boolean
  /** Calls that may wait while as many as may are in flight, 0 to 64. Omitted = 4. */
  maxQueuedCalls?: number
  /** Calls in flight at once on the `/v1` routes of a turn, 1 to 16. Omitted = 4. */
  maxParallelCalls?: number
  /**
   * Request fields that pass on the `/v1` routes although the broker would drop them, by the dotted names that
   * `droppedFields` reports. What is refused stays refused. Omitted = none.
   */
  allowFields?: readonly string[]
  /** Top-level request fields of the `/v1` routes that are set, whatever the guest sent. Omitted = none. */
  setFields?: Readonly<Record<string, unknown>>
  /**
   * Memory for request bodies: give brokers one `new BodyBudget({ bytes })` to share. A body that finds no room
   * waits for it. Omitted = the budget of the process, 256 MiB.
   */
  bodyBudget?: BodyBudget
  /**
   * What channels and speakers created on providers' accounts, such as stored responses: give brokers one
   * `new OwnedIds()` to share, and a later turn may go on from what its own channel and speaker created in an
   * earlier one. Omitted = known to this broker alone, and forgotten with it.
   */
  ownedIds?: OwnedIds
  /** The host's accounts: a call for which they have no credit is answered 402. Omitted = every call may be made. */
  credit?: CallCredit
  /**
   * Called once per credential that was asked for, given or not: an audit trail that tells the rule and the source.
   * A throw is swallowed.
   */
  onReceipt?(receipt: CredentialReceipt, call: ReceiptCall): void
  /** Called once per call when it has ended. A throw is swallowed. */
  onCall?(event: CallEvent): void
}

/** A host tool, checked and copied. */
export interface ResolvedTool {
  readonly spec: ToolSpec
  readonly check: InputCheck
  readonly execute: HostTool['execute']
}

/** {@link BrokerOptions}, checked, with every default filled in. */
export interface ResolvedOptions {
  readonly upstream: UpstreamOptions
  readonly tools: readonly ResolvedTool[]
  readonly mcp: readonly McpServer[]
  readonly maxCalls: number
  readonly maxOutputTokens: number
  readonly maxQueuedCalls: number
  readonly maxParallelCalls: number
  readonly allowStore: boolean
  readonly allowFields: ReadonlySet<string>
  readonly setFields: Readonly<Record<string, unknown>>
  readonly bodyBudget: BodyBudget | undefined
  readonly ownedIds: OwnedIds | undefined
  readonly credit: CallCredit | undefined
  readonly onReceipt: ReceiptSink | undefined
  readonly onCall: ((event: CallEvent) => void) | undefined
}

/**
 * Checks options without opening anything or asking for a credential, as `openSealedBroker` would.
 * @throws BrokerError `options_invalid`, naming the field.
 */
export function checkBrokerOptions(options: BrokerOptions): void {
  resolveOptions(options)
  snapshotScope({ channel: 'sandbox:preflight', speaker: { id: 'preflight', name: '' } })
}

/** Fields that have an option of their own, or that the guest decides within bounds. */
const OWN_FIELDS = [
  'model',
  'messages',
  'input',
  'stream',
  'max_tokens',
  'max_completion_tokens',
  'max_output_tokens',
]

/**
 * Checks options and fills in defaults.
 * @throws BrokerError `options_invalid`, naming the field.
 */
export function resolveOptions(options: BrokerOptions): ResolvedOptions {
  if (typeof options !== 'object' || options === null) throw invalid('options', 'must be an object')
  const {
    apiKey,
    onCall,
    onReceipt,
    bodyBudget,
    ownedIds,
    credit,
    upstream: picker,
    allowFields = [],
  } = options
  const allowHttp = options.allowHttp === true
  if (typeof apiKey !== 'function') throw invalid('apiKey', 'must be a function of the scope')
  if (onCall !== undefined && typeof onCall !== 'function') throw invalid('onCall', 'must be a function')
  if (onReceipt !== undefined && typeof onReceipt !== 'function') {
    throw invalid('onReceipt', 'must be a function')
  }
  if (bodyBudget !== undefined && !(bodyBudget instanceof BodyBudget)) {
    throw invalid('bodyBudget', 'must be made by new BodyBudget({ bytes })')
  }
  if (ownedIds !== undefined && !(ownedIds instanceof OwnedIds)) {
    throw invalid('ownedIds', 'must be made by new OwnedIds()')
  }
  if (credit !== undefined && typeof credit?.reserve !== 'function') {
    throw invalid('credit', 'must have a function `reserve`')
  }
  if (picker !== undefined && typeof picker !== 'function') {
    throw invalid('upstream', 'must be a function of the scope')
  }
  if (!Array.isArray(allowFields) || allowFields.some((name) => typeof name !== 'string')) {
    throw invalid('allowFields', 'must be an array of field names')
  }
  const setFields = plainCopy(options.setFields ?? {}, 'setFields')
  const decided = OWN_FIELDS.find((name) => Object.hasOwn(setFields, name))
  if (decided !== undefined) throw invalid('setFields', `"${decided}" is not for this option`)
  return {
    upstream: { home: readHome(options, { allowHttp, apiKey }), picker, allowHttp, apiKey },
    tools: readTools(options.tools ?? []),
    mcp: readMcp(options.mcp ?? []),
    maxCalls: readCount('maxCalls', options.maxCalls ?? 48, 1, 1000),
    maxOutputTokens: readCount('maxOutputTokens', options.maxOutputTokens ?? 4096, 1, 32_768),
    maxQueuedCalls: readCount('maxQueuedCalls', options.maxQueuedCalls ?? 4, 0, 64),
    maxParallelCalls: readCount('maxParallelCalls', options.maxParallelCalls ?? 4, 1, 16),
    allowStore: options.allowStore === true,
    allowFields: new Set(allowFields),
    setFields: Object.freeze(setFields),
    bodyBudget,
    ownedIds,
    credit,
    onReceipt:
      onReceipt === undefined ? undefined : (receipt, call) => onReceipt.call(options, receipt, call),
    onCall: onCall === undefined ? undefined : (event) => onCall.call(options, event),
  }
}

function readTools(tools: readonly HostTool[]): ResolvedTool[] {
  if (!Array.isArray(tools)) throw invalid('tools', 'must be an array')
  if (tools.length > limits.MODEL_TOOLS) throw invalid('tools', `has more than ${limits.MODEL_TOOLS} entries`)
  const names = new Set<string>()
  const resolved = tools.map((tool: HostTool, index) => {
    const found = readTool(tool, `tools[${index}]`)
    if (names.has(found.spec.name)) throw invalid(`tools[${index}].name`, `"${found.spec.name}" is taken`)
    names.add(found.spec.name)
    return found
  })
  const size = Buffer.byteLength(JSON.stringify(resolved.map((tool) => tool.spec)))
  if (size > limits.TOOL_SPECS_BYTES) {
    throw invalid('tools', `their descriptions are ${size} bytes as JSON, ${limits.TOOL_SPECS_BYTES} at most`)
  }
  return resolved
}

function readTool(tool: HostTool, where: string): ResolvedTool {
  if (typeof tool !== 'object' || tool === null) throw invalid(where, 'must be an object')
  const { name, description, parameters } = tool
  if (typeof name !== 'string' || !ROUTE_NAME.test(name)) {
    throw invalid(`${where}.name`, 'must match [a-z][a-z0-9_]{0,47}')
  }
  if (typeof description !== 'string' || description.length > 8192) {
    throw invalid(`${where}.description`, 'must be a string of at most 8192 characters')
  }
  if (typeof tool.execute !== 'function') throw invalid(`${where}.execute`, 'must be a function')
  const { schema, check } = readParameters(parameters, `${where}.parameters`)
  return {
    spec: { name, description, parameters: schema },
    check,
    execute: (input, context) => tool.execute(input, context),
  }
}

function readCount(name: string, value: number, least: number, most: number): number {
  if (Number.isSafeInteger(value) && value >= least && value <= most) return value
  throw invalid(name, `must be a whole number from ${least} to ${most}`)
}

function invalid(field: string, problem: string): BrokerError {
  return new BrokerError('options_invalid', `${field}: ${problem}`)
}
