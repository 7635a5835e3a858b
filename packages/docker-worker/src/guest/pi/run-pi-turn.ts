import { setTimeout as pause } from 'node:timers/promises'
import type { AgentSession, AgentSessionEvent } from '@earendil-works/pi-coding-agent'
import { type FailureCode, limits, type PiOutcome, type PiTurn } from '@sandbox/protocol'
import { softDeadlineMs } from '../shared/soft-deadline.ts'
import type { WaitingSession } from './agent.ts'
import { logEvent } from './log.ts'
import type { ProgressReporter } from './progress.ts'
import { userText } from './prompts.ts'
import type { TurnAtHand } from './turn-slot.ts'

/** What one turn runs on. */
export interface PiTurnRun {
  readonly waiting: WaitingSession
  readonly atHand: TurnAtHand
  readonly progress: ProgressReporter
  /** Aborts when the host no longer wants the turn. */
  readonly over: AbortSignal
}

/** How a turn ended. */
export interface PiTurnEnd {
  readonly outcome: PiOutcome
  /** False when work of this turn may still be running: the process must not take another turn. */
  readonly settled: boolean
}

/** How long a session that was called off may take to come to rest. */
const REST_MS = 5_000

/**
 * Runs one turn and says how it ended; a failure is an outcome, not an error. Ends by itself before the host's deadline,
 * so that its outcome still arrives. The session is spent afterwards.
 */
export async function runPiTurn({ waiting, atHand, progress, over }: PiTurnRun): Promise<PiTurnEnd> {
  const { session, slot, compactions } = waiting
  const { turn } = atHand
  const startedAt = performance.now()
  const watch = new TurnWatch(progress)
  const unsubscribe = session.subscribe((event) => {
    watch.take(event)
    // The agent goes by words such as "502" alone, and decides after this.
    if (event.type === 'message_end') session.setAutoRetryEnabled(!atHand.refusedForGood())
  })
  const deadline = new AbortController()
  const timer = setTimeout(() => deadline.abort(), softDeadlineMs(turn.remainingMs))
  slot.fill(atHand)
  const run = prompt(session, turn)
  try {
    const error = await Promise.race([run, aborted(deadline.signal), aborted(over)])
    const code = deadline.signal.aborted ? 'deadline' : over.aborted ? 'internal' : undefined
    const settled = code === undefined || (await comeToRest(session, run))
    const outcome = code === undefined ? watch.outcome(error) : failed(code, 'The turn was called off.')
    await compactions.reported()
    const durationMs = Math.round(performance.now() - startedAt)
    logEvent('turn finished', { turnId: turn.turnId, ok: outcome.ok, tools: watch.tools, durationMs })
    return { outcome, settled }
  } finally {
    clearTimeout(timer)
    progress.close()
    unsubscribe()
    slot.close()
    session.dispose()
  }
}

/** A failed turn, as it is told to the host. */
export function failed(code: FailureCode, error: string): PiOutcome {
  return { ok: false, code, error: error.slice(0, limits.PI_ERROR_CHARS) }
}

/** Resolves when the agent is done: with what went wrong outside of it, if anything. Never rejects. */
async function prompt(session: AgentSession, turn: PiTurn): Promise<unknown> {
  try {
    session.setThinkingLevel(turn.thinking)
    await session.prompt(userText(turn), {
      expandPromptTemplates: false,
      images: turn.images.map(({ mimeType, data }) => ({ type: 'image', mimeType, data })),
    })
    return undefined
  } catch (error) {
    return error
  }
}

async function comeToRest(session: AgentSession, run: Promise<unknown>): Promise<boolean> {
  const rested = Promise.all([session.abort(), run]).then(
    () => true,
    () => false,
  )
  return Promise.race([rested, pause(REST_MS, false, { ref: false })])
}

function aborted(signal: AbortSignal): Promise<undefined> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve(undefined)
    else signal.addEventListener('abort', () => resolve(undefined), { once: true })
  })
}

/** Follows a session through its turn. */
class TurnWatch {
  readonly tools: string[] = []
  readonly #progress: ProgressReporter
  #answer = ''
  #problem: string | undefined

  constructor(progress: ProgressReporter) {
    this.#progress = progress
  }

  take(event: AgentSessionEvent): void {
    switch (event.type) {
      case 'message_start':
        if (event.message.role === 'assistant') this.#progress.restart()
        break
      case 'message_update':
        if (event.assistantMessageEvent.type === 'text_delta') {
          this.#progress.add(event.assistantMessageEvent.delta)
        }
        break
      case 'message_end':
        if (event.message.role === 'assistant') this.#takeAnswer(event.message)
        break
      case 'tool_execution_start':
        if (this.tools.length < 100) this.tools.push(event.toolName)
        break
      case 'auto_retry_start':
        logEvent('model call retried', { attempt: event.attempt, delayMs: event.delayMs })
        break
    }
  }

  /** What the turn came to, when the agent is done with it. */
  outcome(error: unknown): PiOutcome {
    if (error !== undefined) return failed('internal', error instanceof Error ? error.message : String(error))
    if (this.#problem !== undefined) return failed(codeOf(this.#problem), this.#problem)
    const text = this.#answer.trim().slice(0, limits.REPLY_TEXT_CHARS)
    return text === '' ? failed('answer_empty', 'The model gave no text.') : { ok: true, text, files: [] }
  }

  #takeAnswer(message: AssistantMessage): void {
    const parts = message.content.flatMap((part) => (part.type === 'text' ? [part.text] : []))
    this.#answer = parts.join('')
    const failure = message.stopReason === 'error' || message.stopReason === 'aborted'
    this.#problem = failure ? (message.errorMessage ?? 'The model call failed.') : undefined
    if (failure) logEvent('model call failed', { code: codeOf(this.#problem ?? '') })
  }
}

type AnyMessage = Extract<AgentSessionEvent, { type: 'message_end' }>['message']
type AssistantMessage = Extract<AnyMessage, { role: 'assistant' }>

/** The agent puts the status of a refused call first. Refusals of the host and the service alike. */
function codeOf(problem: string): FailureCode {
  return /^4\d\d\b/.test(problem) ? 'model_refused' : 'model_failed'
}
