import type { PiOutcome } from '@sandbox/protocol'
import { AgentRunError, SandboxPluginError } from '../errors.ts'
import { failureWords } from './failure-words.ts'
import type { SeatStep } from './pi-seat.ts'
import type { TurnEnding } from './turn-ending.ts'
import {
  describe,
  type FailureEvidence,
  failureOfCalls,
  failureOfEnding,
  PostureRefused,
  type TurnFailure,
  WorkerEnded,
} from './turn-failure.ts'
import type { FailureCategory } from './turn-state.ts'
import { WorkspaceFull } from './workspace-guard.ts'

/** Why a Pi turn has no answer: as for a sealed one, or it was not admitted (`busy`, `input`). */
export type PiFailureCategory = FailureCategory | 'busy' | 'input'

/** The part of a Pi turn that was at work. */
export type PiStep = SeatStep | 'wait' | 'memory' | 'attachments' | 'bind' | 'deliver'

/** What a Pi turn knew when it failed. */
export interface PiEvidence extends Omit<FailureEvidence, 'step'> {
  readonly step: PiStep
  readonly ending: TurnEnding
}

/** A step rejected. */
export function piFailureOfError(error: unknown, { step, ending, trouble }: PiEvidence): TurnFailure {
  const ended = failureOfEnding(ending, step)
  if (ended !== undefined) return ended
  if (error instanceof WorkspaceFull) return { category: 'workspace', cause: error.message }
  const cause = `${step}: ${describe(error)}`
  if (codeOf(error) === 'stopped') return { category: 'stopped', cause }
  if (step === 'memory') return { category: 'host', cause }
  if (step === 'broker') return { category: 'broker', cause }
  const ours = step !== 'deliver' || (error instanceof WorkerEnded && error.reason !== 'exited')
  if (ours) return { category: 'container', cause, ...detailOf(error) }
  return failureOfCalls(trouble, cause) ?? { category: 'worker', cause }
}

/** The worker says that it has no answer. Of what it says only the code counts, and only where our clock agrees. */
export function piFailureOfOutcome(
  outcome: Extract<PiOutcome, { ok: false }>,
  { trouble }: PiEvidence,
  late: boolean,
): TurnFailure {
  const detail = { detail: outcome.error }
  const cause = `worker code ${outcome.code}`
  if (outcome.code === 'deadline' && late) return { category: 'timeout', cause, ...detail }
  return { ...(failureOfCalls(trouble, cause) ?? { category: 'worker', cause }), ...detail }
}

/** A turn without an answer, as the caller gets it: words for the chat, and the same as an error. */
export interface PiTurnFailed {
  readonly ok: false
  /** For the chat: the host's own words. */
  readonly text: string
  readonly category: PiFailureCategory
  /** Its message is `text`; its cause says what happened, scrubbed, for the operator. */
  readonly error: AgentRunError
}

/** The reply for a turn that failed. `cause` must be scrubbed; `text` is for the chat. */
export function failedTurn(failure: TurnFailure, cause: string, text: string): PiTurnFailed {
  return failed(failure.category, text, cause)
}

/**
 * The reply for a turn that was not admitted. What the caller did wrong is said; what the operator did wrong stays in
 * the cause, since it names paths and other channels. `cause` must be scrubbed.
 */
export function refusedTurn(problem: unknown, cause: string): PiTurnFailed {
  const code = codeOf(problem)
  if (code === 'busy') return failed('busy', 'Channel is busy. Please wait until I have answered.', cause)
  if (code === 'closed') return failed('stopped', failureWords({ category: 'stopped' }, ''), cause)
  if (code === 'input_invalid') {
    return failed('input', `I cannot take this message: ${(problem as Error).message}.`, cause)
  }
  if (code === 'channel_alias') return failed('input', ALIAS, cause)
  if (code === 'profile_unknown') return failed('input', NO_PROFILE, cause)
  return failed('container', failureWords({ category: 'container' }, ''), cause)
}

const ALIAS =
  'The name of this channel is an alias of another channel, so I cannot work here. Please tell the owner of this bot.'
const NO_PROFILE =
  'This channel is set up with a profile that does not exist. Please tell the owner of this bot.'

function failed(category: PiFailureCategory, text: string, cause: string): PiTurnFailed {
  const error = new AgentRunError(text, { cause: new SandboxPluginError('turn_failed', cause) })
  return { ok: false, text, category, error }
}

function codeOf(error: unknown): unknown {
  return (error as { code?: unknown } | null)?.code
}

function detailOf(error: unknown): { detail?: string } {
  return error instanceof PostureRefused ? { detail: error.differences.join(' ') } : {}
}

/** Something of a worker could not be removed. */
export function cleanupFailed(problems: readonly unknown[]): SandboxPluginError {
  const cause = new AggregateError(problems, 'cleaning up failed')
  return new SandboxPluginError(
    'cleanup_failed',
    'A worker, its socket or its directory could not be removed. Look at the engine; the channel waits until the worker is gone.',
    { cause },
  )
}
