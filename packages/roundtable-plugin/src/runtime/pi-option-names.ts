import type { PiSandboxBrokerOptions } from '@sandbox/pi-broker'
import type { PiSandboxRuntimeOptions } from '../pi-options.ts'
import { checkOptionKinds, PI_KINDS } from './option-kinds.ts'
import { checkNames, LIMITS, names } from './option-names.ts'
import type { PiProfile } from './pi-policy.ts'

/** Options of the broker that are handed on as they are. */
export const HANDED_ON = names<
  keyof Omit<PiSandboxBrokerOptions, 'model' | 'bodyBudget' | 'tools' | 'mcp' | 'compaction' | 'onCall'>
>({
  oauthToken: 1,
  upstream: 1,
  allowHttp: 1,
  authSlot: 1,
  maxCalls: 1,
  maxParallelCalls: 1,
  maxQueuedCalls: 1,
  maxOutputTokens: 1,
  idleMs: 1,
  betas: 1,
  allowFields: 1,
  setFields: 1,
  credit: 1,
  onFailure: 1,
  onReceipt: 1,
  onCompaction: 1,
})

const OWN = names<Exclude<keyof PiSandboxRuntimeOptions, keyof PiSandboxBrokerOptions>>({
  partyDir: 1,
  image: 1,
  content: 1,
  profiles: 1,
  prompt: 1,
  timeZone: 1,
  turnTimeoutMs: 1,
  startTimeoutMs: 1,
  workspaceBytes: 1,
  keyContact: 1,
  words: 1,
  judge: 1,
  memory: 1,
  forgetMemory: 1,
  uid: 1,
  gid: 1,
  driver: 1,
  engineSocket: 1,
  limits: 1,
  onTurn: 1,
  logger: 1,
})

/** Names of all options of the Pi runtime. */
export const PI_RUNTIME = [...OWN, ...HANDED_ON, 'model', 'tools', 'mcp', 'compaction', 'onCall']

const PROFILE = names<keyof PiProfile>({ model: 1, prompt: 1, mcp: 1, tools: 1 })

/**
 * Refuses options of the Pi runtime that nobody reads.
 * @throws SandboxPluginError `options_invalid`, with the name that was probably meant
 */
export function checkPiOptionNames(options: PiSandboxRuntimeOptions): void {
  checkOptionKinds(options, PI_KINDS)
  checkNames('', options, PI_RUNTIME)
  checkNames('limits.', options.limits, LIMITS)
  for (const [name, profile] of Object.entries(options.profiles ?? {})) {
    checkNames(`profiles.${name}.`, profile, PROFILE)
  }
}
