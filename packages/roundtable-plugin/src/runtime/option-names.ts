import type { WarmLimits, WorkerLimits } from '@sandbox/docker-worker'
import { SandboxPluginError } from '../errors.ts'
import type { SandboxOptions, SandboxRuntimeOptions } from '../options.ts'
import { checkOptionKinds, PLUGIN_KINDS, refuseEmpty, requireOption, SEALED_KINDS } from './option-kinds.ts'

const RUNTIME = names<keyof SandboxRuntimeOptions>({
  image: 1,
  runRoot: 1,
  workspaceRoot: 1,
  model: 1,
  modelUrl: 1,
  apiKey: 1,
  upstream: 1,
  tools: 1,
  mcp: 1,
  prompt: 1,
  timeZone: 1,
  turnTimeoutMs: 1,
  workspaceBytes: 1,
  uid: 1,
  gid: 1,
  driver: 1,
  engineSocket: 1,
  limits: 1,
  warm: 1,
  allowHttp: 1,
  maxCalls: 1,
  maxOutputTokens: 1,
  maxQueuedCalls: 1,
  authSlot: 1,
  tokenLimitField: 1,
  credit: 1,
  onReceipt: 1,
  keyContact: 1,
  words: 1,
  onCall: 1,
  onTurn: 1,
  logger: 1,
})

const PLUGIN = names<Exclude<keyof SandboxOptions, keyof SandboxRuntimeOptions>>({
  stateFile: 1,
  initialChannels: 1,
  provider: 1,
  admission: 1,
  explain: 1,
})

/** Names of what one worker may use. */
export const LIMITS = names<keyof WorkerLimits>({
  memoryBytes: 1,
  cpus: 1,
  pids: 1,
  openFiles: 1,
  fileBytes: 1,
  tmpBytes: 1,
})

/** What `stateFile` has to be. */
export const STATE_FILE = 'the absolute path of a file'

/** What a getter of keys has to be where it is named at all. */
export const PAYER = "a function (left out, the host's login pays)"

/** Names of how many messages are taken. */
export const ADMISSION = names<keyof Exclude<NonNullable<SandboxOptions['admission']>, false>>({
  perSpeakerMinute: 1,
  perChannelMinute: 1,
  waitingPerSpeaker: 1,
  waitingPerChannel: 1,
})

const WARM = names<keyof WarmLimits>({ workers: 1, memoryBytes: 1, idleMs: 1 })

/** Typed, so that an option that is added is added here too. */
export function names<Name extends string>(all: Record<Name, 1>): readonly string[] {
  return Object.keys(all)
}

/**
 * Refuses options that nobody reads: a limit with a slip in its name would silently be no limit.
 * @throws SandboxPluginError `options_invalid`, with the name that was probably meant
 */
export function checkOptionNames(options: SandboxRuntimeOptions): void {
  checkOptionKinds(options, SEALED_KINDS)
  checkNames('', options, RUNTIME)
  checkNames('limits.', options.limits, LIMITS)
  checkNames('warm.', options.warm, WARM)
}

/** The same for the options of the plugin. */
export function checkPluginOptionNames(options: SandboxOptions): void {
  checkOptionKinds(options, { ...PLUGIN_KINDS, apiKey: 'function' })
  requireOption(options, 'stateFile', STATE_FILE)
  refuseEmpty(options, 'apiKey', PAYER)
  const taken = ['timeZone', 'logger']
  checkNames('', options, [...RUNTIME.filter((name) => !taken.includes(name)), ...PLUGIN])
  checkNames('admission.', options.admission, ADMISSION)
}

/**
 * Refuses names that are not known.
 * @throws SandboxPluginError `options_invalid`
 */
export function checkNames(prefix: string, given: unknown, known: readonly string[]): void {
  if (typeof given !== 'object' || given === null) return
  const unknown = Object.keys(given).find((name) => !known.includes(name))
  if (unknown === undefined) return
  const meant = closest(unknown, known)
  const hint =
    meant === undefined ? `Known are: ${known.join(', ')}` : `The closest one is "${prefix}${meant}"`
  throw new SandboxPluginError('options_invalid', `${prefix}${unknown}: there is no such option. ${hint}.`)
}

/** The name with the fewest slips, where they are few; one that begins or ends alike counts as one slip. */
function closest(name: string, known: readonly string[]): string | undefined {
  const word = name.toLowerCase()
  const slips = (other: string) => {
    const whole = other.toLowerCase()
    const part = word.length > 2 && (whole.startsWith(word) || whole.endsWith(word) || word.startsWith(whole))
    return Math.min(part ? 1 : 99, distance(word, whole))
  }
  const [best] = known.map((other) => ({ other, slips: slips(other) })).toSorted((a, b) => a.slips - b.slips)
  return best !== undefined && best.slips <= Math.max(1, word.length / 3) ? best.other : undefined
}

/** Letters to add, drop or change, at most. */
function distance(a: string, b: string): number {
  let row = Array.from({ length: b.length + 1 }, (_, index) => index)
  for (let i = 1; i <= a.length; i += 1) {
    const next = [i]
    for (let j = 1; j <= b.length; j += 1) {
      const change = (row[j - 1] as number) + (a[i - 1] === b[j - 1] ? 0 : 1)
      next.push(Math.min(change, (row[j] as number) + 1, (next[j - 1] as number) + 1))
    }
    row = next
  }
  return row[b.length] as number
}
