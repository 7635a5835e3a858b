import type { FailureCode, SealedOutcome, SealedTurn } from '@sandbox/protocol'
import type { BrokerWire } from '../shared/broker-wire.ts'
import { softDeadlineMs } from '../shared/soft-deadline.ts'
import { type AgentEnd, runAgent } from './agent.ts'
import { BrokerCalls } from './broker-calls.ts'
import { HISTORY_FILE, type HistoryEntry, loadHistory, saveExchange } from './history.ts'
import { HISTORY_ENTRY_BYTES } from './limits.ts'
import { MEMORY_FILE, MemoryStore } from './memory.ts'
import { userMessage } from './prompt.ts'

/** What one turn runs on. */
export interface TurnRun {
  readonly turn: SealedTurn
  readonly wire: BrokerWire
  /** The workspace's directory. Not touched before. */
  readonly workspace: string
  /** One line for the worker's log; no guest text. */
  readonly log: (line: string) => void
}

/** What a failed turn says. The chat's own wording is the host's. */
const FAILURE_TEXTS: Readonly<Record<FailureCode, string>> = {
  turn_invalid: 'The turn could not be read by this worker.',
  model_call_limit: 'The limit of model calls was reached before an answer was ready.',
  model_refused: 'The model call was refused.',
  model_failed: 'The model gave no usable answer.',
  too_many_tool_calls: 'The model asked for too many tool calls at once.',
  request_too_large: 'The conversation is too large for a model call.',
  answer_empty: 'The model gave an empty answer.',
  deadline: 'The time for this turn ran out before an answer was ready.',
  internal: 'The worker failed.',
}

/** Work was done before these: the history says so, and the next turn can go on from it. */
const REMEMBERED_FAILURES: readonly FailureCode[] = ['model_call_limit', 'deadline']

/**
 * Runs one turn in the workspace and says how it ended; a failure is an outcome, not an error. Ends by itself
 * before the host's deadline, so that its outcome still arrives.
 */
export async function runTurn({ turn, wire, workspace, log }: TurnRun): Promise<SealedOutcome> {
  const deadline = new AbortController()
  const timer = setTimeout(() => deadline.abort(), softDeadlineMs(turn.remainingMs))
  try {
    const memory = new MemoryStore(workspace, turn.speaker.id)
    const history = turn.reset ? { entries: [], quarantined: false } : loadHistory(workspace)
    const quarantined: NonNullable<SealedOutcome['quarantined']> = []
    if (memory.quarantined) quarantined.push(MEMORY_FILE)
    if (history.quarantined) quarantined.push(HISTORY_FILE)
    for (const name of quarantined) log(`${name} could not be read and was set aside`)
    const calls = new BrokerCalls({ wire, nonce: turn.nonce, signal: deadline.signal })
    const end = await runAgent({
      turn,
      memory,
      history: history.entries,
      quarantined,
      calls,
      now: new Date(),
    })
    remember({ workspace, turn, earlier: history.entries, end, log })
    return { ...outcomeOf(end), ...(quarantined.length === 0 ? {} : { quarantined }) }
  } catch {
    return failedOutcome('internal')
  } finally {
    clearTimeout(timer)
  }
}

/** A failed turn's outcome with its fixed text. */
export function failedOutcome(code: FailureCode): SealedOutcome {
  return { ok: false, text: FAILURE_TEXTS[code], code }
}

function outcomeOf(end: AgentEnd): SealedOutcome {
  return end.ok ? { ok: true, text: end.text } : failedOutcome(end.code)
}

/** A history that cannot be written costs the next turn its context, not this one its answer. */
function remember(options: {
  readonly workspace: string
  readonly turn: SealedTurn
  readonly earlier: readonly HistoryEntry[]
  readonly end: AgentEnd
  readonly log: (line: string) => void
}): void {
  const { workspace, turn, earlier, end, log } = options
  if (!end.ok && !REMEMBERED_FAILURES.includes(end.code)) return
  const assistant = end.ok ? end.text : [end.interim, `(${FAILURE_TEXTS[end.code]})`].join('\n').trim()
  try {
    saveExchange(workspace, earlier, { user: userMessage(turn, HISTORY_ENTRY_BYTES), assistant })
  } catch {
    log(`${HISTORY_FILE} could not be written`)
  }
}
