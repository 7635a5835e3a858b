import { limits, PROTOCOL_VERSION, type SealedTurn, type ToolSpec } from '@sandbox/protocol'
import { SandboxPluginError } from '../errors.ts'
import type { FailureWording, WordingPolicy } from './failure-words.ts'

/** What the operator decides about every turn. */
export interface TurnPolicyOptions {
  readonly model: string
  readonly prompt?: string
  readonly timeZone?: string
  readonly turnTimeoutMs?: number
  readonly workspaceBytes?: number
  readonly keyContact?: string
  readonly words?: FailureWording
}

/** The same with every default filled in. */
export interface TurnPolicy extends WordingPolicy {
  readonly model: string
  /** Absent means the worker's own. */
  readonly prompt?: string
  readonly timeZone: string
  readonly turnTimeoutMs: number
  /** Disk that a channel's workspace may take. */
  readonly workspaceBytes: number
}

const SHORTEST_TURN_MS = 1_000
const LONGEST_TURN_MS = 600_000
const TURN_MS = 120_000
const MIB = 2 ** 20
const WORKSPACE_BYTES = 256 * MIB

/**
 * Checks what the operator decided and fills in the defaults.
 * @throws SandboxPluginError `options_invalid`, naming the option
 */
export function resolveTurnPolicy(options: TurnPolicyOptions): TurnPolicy {
  const { model, prompt, timeZone = 'UTC', turnTimeoutMs = TURN_MS } = options
  const { keyContact = 'the owner of this bot', workspaceBytes = WORKSPACE_BYTES, words } = options
  refuse(typeof model !== 'string' || model.trim() === '', 'model', 'must name a model')
  refuse(model.length > 256, 'model', 'has at most 256 characters')
  refuse(!isTimeZone(timeZone), 'timeZone', `"${timeZone}" is not an IANA time zone such as "Europe/Paris"`)
  const fits = turnTimeoutMs >= SHORTEST_TURN_MS && turnTimeoutMs <= LONGEST_TURN_MS
  refuse(
    !Number.isInteger(turnTimeoutMs) || !fits,
    'turnTimeoutMs',
    `must be a whole number from ${SHORTEST_TURN_MS} to ${LONGEST_TURN_MS}`,
  )
  const holds = Number.isSafeInteger(workspaceBytes) && workspaceBytes >= MIB && workspaceBytes <= 2 ** 50
  refuse(!holds, 'workspaceBytes', `must be a whole number from ${MIB} to ${2 ** 50}`)
  refuse(keyContact.trim() === '' || keyContact.length > 200, 'keyContact', 'must have 1 to 200 characters')
  refuse(words !== undefined && typeof words !== 'function', 'words', 'must be a function')
  const policy = { model, timeZone, turnTimeoutMs, workspaceBytes, keyContact, ...(words && { words }) }
  if (prompt === undefined) return policy
  refuse(typeof prompt !== 'string', 'prompt', 'must be a string')
  const bytes = jsonBytes(prompt)
  refuse(
    bytes > limits.PROMPT_BYTES,
    'prompt',
    `has ${bytes} bytes as JSON; ${limits.PROMPT_BYTES} are allowed`,
  )
  return { ...policy, prompt }
}

/**
 * Builds the largest turn that this policy and these tools can give, and refuses when a worker would not take it:
 * otherwise every long message would fail, and nobody would know why.
 * @throws SandboxPluginError `turn_too_large`
 */
export function checkLargestTurn(policy: TurnPolicy, tools: readonly ToolSpec[]): void {
  const toolBytes = jsonBytes(tools)
  if (toolBytes > limits.TOOL_SPECS_BYTES) {
    throw tooLarge(`the tools are described in ${toolBytes} bytes; ${limits.TOOL_SPECS_BYTES} are allowed`)
  }
  // A control character is the widest that JSON makes of one UTF-16 unit: six bytes.
  const widest = (units: number) => '\u0001'.repeat(units)
  const turn: SealedTurn = {
    protocol: PROTOCOL_VERSION,
    turnId: widest(64),
    nonce: widest(128),
    remainingMs: policy.turnTimeoutMs,
    text: widest(limits.TURN_TEXT_CHARS),
    speaker: { id: widest(limits.SPEAKER_CHARS), name: widest(limits.SPEAKER_CHARS) },
    model: policy.model,
    ...(policy.prompt === undefined ? {} : { prompt: policy.prompt }),
    timeZone: policy.timeZone,
    reset: false,
    tools: [...tools],
    mcp: [],
  }
  const bytes = jsonBytes(turn)
  if (bytes <= limits.SEALED_TURN_BYTES) return
  throw tooLarge(`the largest turn has ${bytes} bytes; ${limits.SEALED_TURN_BYTES} are allowed`)
}

function tooLarge(what: string): SandboxPluginError {
  return new SandboxPluginError('turn_too_large', `Shorten the prompt or the tools: ${what}.`)
}

function jsonBytes(value: unknown): number {
  return Buffer.byteLength(JSON.stringify(value))
}

function isTimeZone(name: string): boolean {
  if (typeof name !== 'string' || name === '' || name.length > 64) return false
  try {
    new Intl.DateTimeFormat('en', { timeZone: name })
    return true
  } catch {
    return false
  }
}

function refuse(wrong: boolean, option: string, problem: string): void {
  if (wrong) throw new SandboxPluginError('options_invalid', `${option}: ${problem}.`)
}
