import {
  CallRefusal,
  carriesSecret,
  type HeadPolicy,
  linkCallSignal,
  raceSignal,
  readMessage,
  type Turn,
  type WorkerCall,
  type WorkerRoute,
} from '@sandbox/broker/engine'
import { redact, snapshotScope } from '@sandbox/credential-scope'
import {
  type CompactionAnswer,
  type CompactionRequest,
  type CompactionResult,
  limits,
  PI_CALL_ROUTES,
  PI_PLACEHOLDER,
  readCompactionReport,
  readCompactionRequest,
  readCompactionResult,
  TURN_NONCE_HEADER,
} from '@sandbox/protocol'
import type { PiTurns } from '../pi-turns.ts'
import type { CompactionFallback, PiCompactionEvent } from './compaction-event.ts'
import type { ResolvedCompaction } from './compaction-option.ts'

/** What a desk works with. */
export interface CompactionDeskOptions {
  readonly turns: PiTurns
  readonly compaction: ResolvedCompaction | undefined
  readonly bodies: Parameters<typeof readMessage>[1]['bodies']
  /** How long a compactor that ignores its signal keeps others from running, in milliseconds. */
  readonly graceMs: number
  onEvent?(event: PiCompactionEvent): void
}

const MOST_COMPACTIONS = 3
const MOST_REPORTS = 16
/** Below this there is no use in asking. */
const LEAST_MS = 1000
const READ_MS = 60_000
const DETAIL_CHARS = 600

const POLICY: HeadPolicy = { method: 'POST', headers: 'any', placeholder: PI_PLACEHOLDER }

/** Ends a compaction with a reason for Pi to make its own summary. */
class Fallback extends Error {
  override readonly name = 'Fallback'
  readonly reason: CompactionFallback

  constructor(reason: CompactionFallback, options?: ErrorOptions) {
    super(reason, options)
    this.reason = reason
  }
}

/**
 * Where a worker has its conversation compacted by the host, and says what became of it. Only within a turn; neither
 * spends the call budget. Whatever goes wrong is no error for the worker: Pi then makes its own summary.
 */
export class CompactionDesk {
  readonly #options: CompactionDeskOptions
  readonly #counts = new WeakMap<Turn, { compactions: number; reports: number }>()
  /** Which compactor holds the only slot; 0 = none. */
  #holder = 0
  #generation = 0
  /** Whether the last summary of the host still left too much: then the next one is Pi's. */
  #leftTooMuch = false

  constructor(options: CompactionDeskOptions) {
    this.#options = options
  }

  /** The routes of the desk, by path. */
  routes(): [path: string, route: WorkerRoute][] {
    const callMs = (this.#options.compaction?.timeoutMs ?? 0) + READ_MS
    const row = (name: string, path: string, run: WorkerRoute['run']): [string, WorkerRoute] => [
      path,
      { kind: 'worker', name, policy: POLICY, callMs, run },
    ]
    return [
      row('compact', PI_CALL_ROUTES.compact, (call) => this.#compact(call)),
      row('compaction-report', PI_CALL_ROUTES.compactionReport, (call) => this.#report(call)),
    ]
  }

  async #compact(call: WorkerCall): Promise<CompactionAnswer> {
    const turn = this.#admit(call)
    const startedMs = performance.now()
    try {
      const { request, result, engine } = await this.#ask(turn, call)
      const { tokensBefore } = request
      const { tokensAfter } = result
      this.#tell(turn, {
        kind: 'answered',
        engine,
        tokensBefore,
        ...(tokensAfter === undefined ? {} : { tokensAfter }),
        durationMs: performance.now() - startedMs,
      })
      return { ok: true, result }
    } catch (error) {
      if (!(error instanceof Fallback)) throw error
      const { reason, cause } = error
      this.#tell(turn, {
        kind: 'fallback',
        reason,
        durationMs: performance.now() - startedMs,
        ...(cause instanceof Error ? { detail: redact(cause.message).slice(0, DETAIL_CHARS) } : {}),
      })
      return { ok: false, fallback: reason }
    }
  }

  async #ask(turn: Turn, call: WorkerCall) {
    const { compaction } = this.#options
    if (compaction === undefined) throw new Fallback('no_compactor')
    if (this.#holder !== 0) throw new Fallback('already_running')
    const counts = this.#countsOf(turn)
    if (counts.compactions >= MOST_COMPACTIONS) throw new Fallback('turn_limit')
    counts.compactions += 1
    const timeoutMs = this.#timeLeft(turn, compaction)
    this.#generation += 1
    const mine = this.#generation
    this.#holder = mine
    const free = () => {
      if (this.#holder === mine) this.#holder = 0
    }
    const linked = linkCallSignal({ turn: turn.signal, guest: call.signal, limitMs: timeoutMs })
    let running: Promise<unknown> | undefined
    try {
      const request = await this.#read({ ...call, signal: linked.signal }, compaction)
      const context = Object.freeze({
        ...snapshotScope(turn.scope),
        deadline: performance.now() + timeoutMs,
        signal: linked.signal,
      })
      running = start(compaction, request, context)
      const answer = await raceSignal(running, linked.signal)
      const result = this.#checked(answer, { request, engine: compaction.engine, turn })
      return { request, result, engine: compaction.engine }
    } catch (error) {
      if (!linked.signal.aborted) throw error
      throw new Fallback(linked.refusal()?.reason === 'timeout' ? 'too_slow' : 'aborted')
    } finally {
      linked.detach()
      this.#freeOnce(running, free)
    }
  }

  /** CP-08: the slot is held until the compactor really settles; W-82: but not for ever. */
  #freeOnce(running: Promise<unknown> | undefined, free: () => void): void {
    if (running === undefined) {
      free()
      return
    }
    const timer = setTimeout(free, this.#options.graceMs).unref()
    void running
      .catch(() => {})
      .then(() => {
        clearTimeout(timer)
        free()
      })
  }

  /** CP-07: at most half of what the turn has left, so that Pi can still make its own. */
  #timeLeft(turn: Turn, { timeoutMs }: ResolvedCompaction): number {
    const left = this.#options.turns.contextOf(turn).deadline - performance.now()
    const wanted = Math.min(timeoutMs, left / 2)
    if (wanted < LEAST_MS) throw new Fallback('too_little_time')
    return wanted
  }

  async #read(call: WorkerCall, { maxRequestBytes }: ResolvedCompaction): Promise<CompactionRequest> {
    const { bodies } = this.#options
    const body = await readMessage(call, {
      limitBytes: maxRequestBytes,
      ...(bodies === undefined ? {} : { bodies }),
    }).catch((error: unknown) => {
      call.signal.throwIfAborted()
      const large = error instanceof CallRefusal && error.reason === 'body_too_large'
      throw new Fallback(large ? 'too_large' : 'request_invalid')
    })
    const request = readCompactionRequest(body)
    if (request === undefined) throw new Fallback('request_invalid')
    const over = request.tokensBefore > limits.COMPACTION_HARD_TOKENS
    if (over || this.#leftTooMuch) {
      this.#leftTooMuch = false
      throw new Fallback('too_many_tokens')
    }
    return request
  }

  /** CP-10, and W-22: no secret of the turn goes in with a summary. */
  #checked(
    answer: unknown,
    { request, engine, turn }: { request: CompactionRequest; engine: string; turn: Turn },
  ): CompactionResult {
    if (answer === undefined) throw new Fallback('declined')
    const result = readCompactionResult(answer)
    if (result === undefined || result.firstKeptEntryId !== request.firstKeptEntryId) {
      throw new Fallback('result_invalid')
    }
    if (carriesSecret(result, turn.matcher)) throw new Fallback('result_invalid')
    this.#leftTooMuch = (result.tokensAfter ?? 0) > limits.COMPACTION_HARD_TOKENS
    return { ...result, details: { ...result.details, engine } }
  }

  async #report(call: WorkerCall): Promise<object> {
    const turn = this.#admit(call)
    const counts = this.#countsOf(turn)
    if (counts.reports >= MOST_REPORTS) throw new CallRefusal('budget_spent')
    counts.reports += 1
    const report = readCompactionReport(await readMessage(call, { limitBytes: limits.WORKER_MESSAGE_BYTES }))
    if (report === undefined) throw new CallRefusal('body_invalid')
    this.#tell(turn, report)
    return {}
  }

  #admit({ head, record }: WorkerCall): Turn {
    const turn = this.#options.turns.binding.admit(head.headers.get(TURN_NONCE_HEADER))
    record.turn = turn
    return turn
  }

  #countsOf(turn: Turn) {
    const counts = this.#counts.get(turn) ?? { compactions: 0, reports: 0 }
    this.#counts.set(turn, counts)
    return counts
  }

  #tell(turn: Turn, event: DistributiveOmit<PiCompactionEvent, 'turnId' | 'scope'>): void {
    try {
      this.#options.onEvent?.({ turnId: turn.turnId, scope: turn.scope, ...event })
    } catch {}
  }
}

type DistributiveOmit<T, K extends PropertyKey> = T extends unknown ? Omit<T, K> : never

/** Also turns what the compactor throws at once into a rejection. */
async function start(
  { compact }: ResolvedCompaction,
  request: CompactionRequest,
  context: Parameters<ResolvedCompaction['compact']>[1],
): Promise<unknown> {
  try {
    return await compact(request, context)
  } catch (cause) {
    throw new Fallback('failed', { cause })
  }
}
