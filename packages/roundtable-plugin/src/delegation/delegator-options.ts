import { SandboxPluginError } from '../errors.ts'
import type { ChannelKey, HostLogger, Tier } from '../host-contract.ts'

/** Somebody asks for a job. */
export interface DelegationRequest {
  readonly channel: ChannelKey
  /** Has to be the delegator's own. */
  readonly target: string
  /** A thread that the job should report to: not taken here. */
  readonly origin?: ChannelKey
  /** For whom. A sandbox knows no tiers, so a request with one is refused. */
  readonly author: { readonly id: string; readonly name: string; readonly tier?: Tier }
  readonly title: string
  readonly task: string
}

/** A job that runs. */
export interface DelegationJob {
  readonly id: string
  readonly channel: ChannelKey
  readonly target: string
  readonly author: { readonly id: string; readonly name: string }
  readonly title: string
  readonly task: string
  readonly startedAt: Date
}

/** What a job came to. `error` is in words for the chat, without anything that looks like a credential. */
export type DelegationOutcome =
  | { readonly ok: true; readonly report: string }
  | { readonly ok: false; readonly error: string }

/** What a job knows of the turn that asked for it. A copy of its own. */
export interface DelegationScope {
  readonly channel: ChannelKey
  readonly author: { readonly id: string; readonly name: string }
  /** Fires when the job is out of time, or the host stops. */
  readonly signal: AbortSignal
}

/** What a {@link ScopedSandboxDelegator} is made from. */
export interface DelegatorOptions {
  /** The one name that jobs may be given to. */
  readonly target: string
  /** Does the work and returns its report. It should end when the signal fires; it is not waited for much longer. */
  run(task: string, scope: DelegationScope): Promise<string>
  /** Takes the outcome to the chat. Called exactly once for every job; what it throws is logged. */
  deliver(job: DelegationJob, outcome: DelegationOutcome): void | Promise<void>
  /** Jobs of one channel at the same time, 1 to 10. Omitted = 2. */
  readonly maxRunning?: number
  /** Longest job, in milliseconds: 1,000 to 1,200,000. Omitted = 600,000. */
  readonly timeoutMs?: number
  /** Characters of a title; `Infinity` = any. Omitted = 200. */
  readonly maxTitleChars?: number
  /** Characters of a report; what is beyond is cut. Omitted = 80,000. */
  readonly maxReportChars?: number
  /** Characters of the reason of a failure. Omitted = 600. */
  readonly diagnosticChars?: number
  /** A throw is ignored. */
  readonly logger?: HostLogger
}

/** Options with every default filled in. */
export type ResolvedDelegatorOptions = Required<Omit<DelegatorOptions, 'logger' | 'run' | 'deliver'>>

/** Checks the numbers. Throws `options_invalid` naming the option. */
export function resolveDelegatorOptions(options: DelegatorOptions): ResolvedDelegatorOptions {
  if (typeof options.target !== 'string' || options.target.trim() === '')
    throw invalid('target', 'must be a name')
  return {
    target: options.target,
    maxRunning: within('maxRunning', options.maxRunning ?? 2, 1, 10),
    timeoutMs: within('timeoutMs', options.timeoutMs ?? 600_000, 1_000, 1_200_000),
    maxTitleChars: within('maxTitleChars', options.maxTitleChars ?? 200, 1, Number.POSITIVE_INFINITY),
    maxReportChars: within('maxReportChars', options.maxReportChars ?? 80_000, 1, Number.POSITIVE_INFINITY),
    diagnosticChars: within('diagnosticChars', options.diagnosticChars ?? 600, 1, 10_000),
  }
}

function within(option: string, value: number, least: number, most: number): number {
  const whole = Number.isInteger(value) || value === Number.POSITIVE_INFINITY
  if (whole && value >= least && value <= most) return value
  throw invalid(
    option,
    `must be a whole number, ${least} or more${Number.isFinite(most) ? `, ${most} at most` : ''}`,
  )
}

function invalid(option: string, problem: string): SandboxPluginError {
  return new SandboxPluginError('options_invalid', `${option}: ${problem}.`)
}
