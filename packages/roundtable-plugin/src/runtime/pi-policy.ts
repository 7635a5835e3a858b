import { limits } from '@sandbox/protocol'
import { SandboxPluginError } from '../errors.ts'
import type { FailureWording, WordingPolicy } from './failure-words.ts'
import { resolveTurnPolicy } from './runtime-options.ts'

/** What an operator lets the workers of a kind of channel do. */
export interface PiProfile {
  /** Default: the runtime's. */
  readonly model?: string
  /** Replaces the prompt that the image brings. Default: the runtime's. At most 100,000 characters. */
  readonly prompt?: string
  /** Names of the MCP servers that it may use. Default: all that the runtime has. */
  readonly mcp?: readonly string[]
  /** Names of the host tools that it may use. Default: all that the runtime has. */
  readonly tools?: readonly string[]
}

/** A profile with every default filled in. */
export interface ResolvedPiProfile {
  readonly name: string
  readonly model: string
  /** Absent means the image's. */
  readonly prompt?: string
  readonly mcp: readonly string[]
  readonly tools: readonly string[]
}

/** What the operator decides about every Pi turn. */
export interface PiPolicyOptions {
  readonly model: string
  readonly profiles: Readonly<Record<string, PiProfile>>
  readonly prompt?: string
  readonly timeZone?: string
  readonly turnTimeoutMs?: number
  readonly startTimeoutMs?: number
  readonly workspaceBytes?: number
  readonly keyContact?: string
  readonly words?: FailureWording
}

/** The same with every default filled in. */
export interface PiPolicy extends WordingPolicy {
  readonly timeZone: string
  readonly turnTimeoutMs: number
  readonly startTimeoutMs: number
  /** Disk that a channel's workspace may take. */
  readonly workspaceBytes: number
  /** @throws SandboxPluginError `profile_unknown` */
  profile(name: string): ResolvedPiProfile
  readonly profiles: readonly ResolvedPiProfile[]
}

/** Names of what the runtime has to offer. */
export interface PiOffer {
  readonly mcp: readonly string[]
  readonly tools: readonly string[]
}

const TURN_MS = 600_000
const START_MS = 90_000
const WORKSPACE_BYTES = 1024 * 1024 * 1024
const SHORTEST_MS = 1_000
const LONGEST_MS = 600_000
const PROFILE_NAME = /^[a-zA-Z0-9_-]{1,100}$/

/**
 * Checks what the operator decided and fills in the defaults.
 * @throws SandboxPluginError `options_invalid`, naming the option
 */
export function resolvePiPolicy(options: PiPolicyOptions, offer: PiOffer): PiPolicy {
  const { model, profiles, prompt, startTimeoutMs = START_MS, turnTimeoutMs = TURN_MS } = options
  const { timeZone, keyContact, workspaceBytes, words } = resolveTurnPolicy({
    model,
    turnTimeoutMs,
    workspaceBytes: options.workspaceBytes ?? WORKSPACE_BYTES,
    ...(options.timeZone === undefined ? {} : { timeZone: options.timeZone }),
    ...(options.keyContact === undefined ? {} : { keyContact: options.keyContact }),
    ...(options.words === undefined ? {} : { words: options.words }),
  })
  checkMs('startTimeoutMs', startTimeoutMs)
  refuse(!isRecord(profiles), 'profiles', 'must be an object with a profile under each name')
  const runtime = { model, ...(prompt === undefined ? {} : { prompt }) }
  const all = new Map(
    Object.entries(profiles).map(([name, profile]) => [name, resolveProfile(name, profile, runtime, offer)]),
  )
  refuse(all.size === 0, 'profiles', 'must name at least one profile, such as { default: {} }')
  return {
    timeZone,
    turnTimeoutMs,
    startTimeoutMs,
    workspaceBytes,
    keyContact,
    ...(words && { words }),
    profiles: [...all.values()],
    profile(name) {
      const profile = all.get(name)
      if (profile !== undefined) return profile
      const known = [...all.keys()].join(', ')
      throw new SandboxPluginError(
        'profile_unknown',
        `There is no profile of that name. Known are: ${known}.`,
      )
    },
  }
}

/**
 * How long the host's compactor may take: a third of a turn, at most two minutes, unless the operator says otherwise;
 * never more than half a turn, so that the agent's own summary has time when the compactor fails.
 * @throws SandboxPluginError `options_invalid`
 */
export function compactionTimeoutMs(turnTimeoutMs: number, asked?: number): number {
  if (asked === undefined) return Math.max(1_000, Math.min(120_000, Math.floor(turnTimeoutMs / 3)))
  checkMs('compaction.timeoutMs', asked)
  refuse(
    asked > turnTimeoutMs / 2,
    'compaction.timeoutMs',
    `must be at most half of turnTimeoutMs (${turnTimeoutMs / 2})`,
  )
  return asked
}

function resolveProfile(
  name: string,
  given: PiProfile,
  runtime: { readonly model: string; readonly prompt?: string },
  offer: PiOffer,
): ResolvedPiProfile {
  const what = `profiles.${name}`
  refuse(!PROFILE_NAME.test(name), 'profiles', 'have names of 1 to 100 letters, digits, "_" and "-"')
  refuse(!isRecord(given), what, 'must be an object')
  const model = given.model ?? runtime.model
  refuse(typeof model !== 'string' || model.trim() === '' || model.length > 256, what, 'model: must name one')
  const prompt = given.prompt ?? runtime.prompt
  refuse(
    prompt !== undefined && !isPrompt(prompt),
    what,
    `prompt: has at most ${limits.PI_TEXT_CHARS} characters`,
  )
  return Object.freeze({
    name,
    model,
    ...(prompt === undefined ? {} : { prompt }),
    mcp: chosen(`${what}.mcp`, given.mcp, offer.mcp),
    tools: chosen(`${what}.tools`, given.tools, offer.tools),
  })
}

function chosen(
  what: string,
  names: readonly string[] | undefined,
  offer: readonly string[],
): readonly string[] {
  if (names === undefined) return Object.freeze([...offer])
  refuse(!Array.isArray(names), what, 'must be a list of names')
  const missing = names.find((name) => !offer.includes(name))
  refuse(
    missing !== undefined,
    what,
    `${JSON.stringify(missing)} is not among: ${offer.join(', ') || 'none'}`,
  )
  return Object.freeze([...new Set(names)])
}

function checkMs(option: string, value: number): void {
  refuse(
    !Number.isInteger(value) || value < SHORTEST_MS || value > LONGEST_MS,
    option,
    `must be a whole number from ${SHORTEST_MS} to ${LONGEST_MS}`,
  )
}

function isPrompt(value: unknown): boolean {
  return typeof value === 'string' && value.length <= limits.PI_TEXT_CHARS
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

function refuse(wrong: boolean, option: string, problem: string): void {
  if (wrong) throw new SandboxPluginError('options_invalid', `${option}: ${problem}.`)
}
