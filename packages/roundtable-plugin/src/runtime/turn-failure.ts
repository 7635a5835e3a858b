import { limits, type SealedOutcome } from '@sandbox/protocol'
import { SandboxPluginError } from '../errors.ts'
import type { CallTrouble, CredentialTrouble } from './failure-words.ts'
import type { TurnEnding } from './turn-ending.ts'
import type { FailureCategory } from './turn-state.ts'
import { WorkspaceFull } from './workspace-guard.ts'

/** The part of a turn that was at work. */
export type TurnStep = 'prepare' | 'broker' | 'start' | 'hello' | 'verify' | 'deliver'

/** Why a turn has no answer, for the host. */
export interface TurnFailure {
  readonly category: FailureCategory
  /** For the operator. Made of the host's own words; not scrubbed yet. */
  readonly cause: string
  readonly trouble?: CredentialTrouble
  /** The model service has too much to do. */
  readonly busy?: boolean
  /** With `busy` and with the trouble `spent`: how long to wait. */
  readonly waitMs?: number
  /** Things a guest had a part in: for a warning, never for an error line. */
  readonly detail?: string
}

/** What a turn knew when it failed. */
export interface FailureEvidence {
  readonly step: TurnStep
  readonly ending: TurnEnding
  readonly trouble: CallTrouble
}

/** A step rejected. */
export function failureOfError(error: unknown, { step, ending, trouble }: FailureEvidence): TurnFailure {
  const ended = failureOfEnding(ending, step)
  if (ended !== undefined) return ended
  if (error instanceof WorkspaceFull) return { category: 'workspace', cause: error.message }
  const cause = `${step}: ${describe(error)}`
  if (step === 'broker') return { category: 'broker', cause }
  if (step !== 'hello' && step !== 'deliver') return { category: 'container', cause, ...detailOf(error) }
  if (codeOf(error) === 'protocol_mismatch') return { category: 'container', cause }
  if (error instanceof WorkerEnded && error.reason !== 'exited') return { category: 'container', cause }
  return failureOfCalls(trouble, cause) ?? { category: 'worker', cause }
}

/** What ended a turn from outside says more than what then went wrong in it. */
export function failureOfEnding({ cause }: TurnEnding, step: string): TurnFailure | undefined {
  if (cause === 'timeout') return { category: 'timeout', cause: `deadline passed in step ${step}` }
  if (cause === 'unready')
    return { category: 'container', cause: `no worker was ready in time: step ${step}` }
  if (cause === 'stopped') return { category: 'stopped', cause: `stopped in step ${step}` }
  if (cause !== 'revoked') return undefined
  return { category: 'credential', trouble: 'revoked', cause: `revoked in step ${step}` }
}

/** The worker says that it has no answer. Only its code is read, and only where the host's clock agrees. */
export function failureOfOutcome(
  outcome: SealedOutcome,
  { ending, trouble, step }: FailureEvidence,
): TurnFailure {
  const ended = failureOfEnding(ending, step)
  if (ended !== undefined) return ended
  const cause = outcome.ok ? 'the worker gave an empty answer' : `worker code ${outcome.code ?? 'none'}`
  const late = performance.now() >= ending.deadline - limits.SOFT_DEADLINE_MS
  if (outcome.code === 'deadline' && late) return { category: 'timeout', cause }
  return failureOfCalls(trouble, cause) ?? { category: 'worker', cause }
}

/** What the model calls of a turn say about its failure; `undefined` when they have no part in it. */
export function failureOfCalls(
  { credential, waitMs, host, upstream, busy }: CallTrouble,
  cause: string,
): TurnFailure | undefined {
  if (credential !== undefined) {
    const failure = { trouble: credential, cause: `credential ${credential}; ${cause}` }
    return { category: 'credential', ...failure, ...(waitMs !== undefined && { waitMs }) }
  }
  if (host !== undefined) return { category: 'host', cause: `${host}; ${cause}` }
  if (upstream === undefined) return undefined
  const failure = { category: 'broker', cause: `${upstream}; ${cause}` } as const
  return busy === undefined ? failure : { ...failure, busy: true, ...busy }
}

/** A worker ended before its turn did. */
export class WorkerEnded extends SandboxPluginError {
  readonly reason: string

  constructor(exit: { readonly reason: string; readonly code?: number; readonly signal?: string }) {
    const how = exit.signal ?? (exit.code === undefined ? '' : `exit code ${exit.code}`)
    super('worker_ended', `The worker ended before its turn did (${exit.reason}${how && `, ${how}`}).`)
    this.reason = exit.reason
  }
}

/** Message and code of an error and of what caused it, at most four deep. */
export function describe(error: unknown, depth = 0): string {
  if (!(error instanceof Error)) return typeof error
  const code = codeOf(error)
  const own = code === undefined ? error.message : `${error.message} (${code})`
  if (error.cause === undefined || depth === 3) return own
  return `${own}; cause: ${describe(error.cause, depth + 1)}`
}

function codeOf(error: unknown): string | undefined {
  const code = (error as { code?: unknown } | null)?.code
  return typeof code === 'string' ? code : undefined
}

/** Differences of a posture were written by a guest, so they travel apart from the message. */
function detailOf(error: unknown): { detail?: string } {
  return error instanceof PostureRefused ? { detail: error.differences.join(' ') } : {}
}

/** A worker is not what its driver promises. */
export class PostureRefused extends SandboxPluginError {
  readonly differences: readonly string[]

  constructor(differences: readonly string[]) {
    super(
      'posture_refused',
      `The worker differs from the profile in ${differences.length} points; it got no turn. Rebuild the image with "sandbox-worker build" and look at the engine's configuration.`,
    )
    this.differences = differences
  }
}

/** A turn was answered, but what it used could not be removed: its channel waits until it is gone. */
export class CleanupFailed extends SandboxPluginError {
  /** The answer, which was paid for. */
  readonly answer: string

  constructor(answer: string, problems: readonly unknown[]) {
    super(
      'cleanup_failed',
      'The turn was answered, but its worker or its directory could not be removed. Look at the engine; the channel waits until it is gone.',
      { cause: new AggregateError(problems, 'cleaning up failed') },
    )
    this.answer = answer
  }
}
