import { randomUUID } from 'node:crypto'
import { isPrecheckJob, limits, PROTOCOL_VERSION, type PrecheckOutcome } from '@sandbox/protocol'
import type { ChannelKey, HostLogger } from '../host-contract.ts'
import { ReplyBound, TurnEnding, untilAborted } from '../runtime/turn-ending.ts'
import { describe } from '../runtime/turn-failure.ts'
import { describePrechecks } from './describe-prechecks.ts'
import { precheckFailure } from './failure-words.ts'
import {
  PrecheckError,
  type PrecheckResult,
  type PrecheckScope,
  type PrecheckScriptContext,
  type PrecheckScriptRunner,
} from './precheck-contract.ts'
import { PrecheckAttempt, type PrecheckOrder, type PrecheckParts } from './precheck-run.ts'
import type { PrecheckPolicy } from './runner-options.ts'

/** What the runner works with. */
export interface ScriptRunnerPorts extends PrecheckParts {
  /** Takes secrets out of a text. */
  scrub(text: string): string
  readonly logger?: HostLogger
}

const GRANT_MS = 10_000
/** A run waits for the removal of its worker no longer than this: an engine may hang. */
const REPLY_MS = 5_000

/** Runs precheck scripts, each in a worker of its own. */
export class SandboxPrecheckRunner implements PrecheckScriptRunner, AsyncDisposable {
  readonly timeoutMs: number
  readonly #ports: ScriptRunnerPorts
  readonly #policy: PrecheckPolicy
  /** Ids of workers that are not to be swept away. */
  readonly #live = new Set<string>()
  readonly #running = new Map<TurnEnding, Promise<unknown>>()
  #ready: Promise<void> | undefined
  #closed = false
  #disposed: Promise<void> | undefined

  constructor(ports: ScriptRunnerPorts, policy: PrecheckPolicy) {
    this.#ports = ports
    this.#policy = policy
    this.timeoutMs = policy.timeoutMs
  }

  toolName(server: string, tool: string): string {
    return this.#policy.toolName(server, tool)
  }

  /** Rejects with a {@link PrecheckError} when the host's grant fails, or does not answer within 10 s. */
  async describe(scope: PrecheckScope): Promise<string> {
    const signal = AbortSignal.timeout(GRANT_MS)
    try {
      const servers = await untilAborted(ask(this.#policy, scope, signal), signal)
      const tools = servers.flatMap(({ name, tools }) => tools.map((tool) => ({ server: name, tool })))
      return describePrechecks(this.#policy, tools)
    } catch (cause) {
      this.#log('error', scope.channel, 'the tools of a schedule could not be granted', cause)
      throw new PrecheckError('The tools of this schedule could not be granted.', { cause })
    }
  }

  /**
   * Runs one script and says what it decided. Rejects with a {@link PrecheckError}, whose message the turn is woken
   * with: the script's own words, or the host's. When it settles the worker and its directories are gone, unless the
   * engine hangs.
   */
  async run(script: string, context: PrecheckScriptContext): Promise<PrecheckResult> {
    if (this.#closed) throw new PrecheckError('The host is stopping.')
    const order = this.#order(script, context)
    const ending = new TurnEnding(this.#policy.timeoutMs)
    const stop = () => ending.end('stopped')
    context.signal.addEventListener('abort', stop, { once: true })
    if (context.signal.aborted) stop()
    const running = this.#run(order, ending)
    try {
      return resultOf(await running, this.#ports.scrub)
    } finally {
      context.signal.removeEventListener('abort', stop)
    }
  }

  /** Ends every run, waits until all are cleaned up, and gives the run root back. Idempotent. */
  dispose(): Promise<void> {
    this.#closed = true
    this.#disposed ??= this.#end().catch((cause) => {
      this.#disposed = undefined
      throw cause
    })
    return this.#disposed
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.dispose()
  }

  /** What a run is made of. Nothing is started for a script that cannot be handed over (W-93). */
  #order(
    script: string,
    { schedule, firedAt, timeZone, today, tools }: PrecheckScriptContext,
  ): PrecheckOrder {
    const { channel, target, createdTier: tier } = schedule
    const scope: PrecheckScope = { channel, target, ...(tier && { tier }) }
    const id = String(schedule.id)
    const about = { id, title: String(schedule.title).slice(0, 1_024) }
    const fired = Number.isFinite(firedAt.getTime()) ? firedAt.toISOString() : ''
    const job = { turnId: randomUUID(), script, firedAt: fired, timeZone, today, schedule: about }
    checkJob(job)
    const names = [...new Set(tools.map(({ server }) => server))]
    return {
      job,
      context: { channel, speaker: this.#speaker(scope, id) },
      grant: (_, { signal }) => ask(this.#policy, scope, signal),
      approved: names.map((server) => ({
        server,
        tools: tools.filter((one) => one.server === server).map(({ tool }) => tool),
      })),
    }
  }

  #speaker(scope: PrecheckScope, id: string): { readonly id: string; readonly name: string } {
    try {
      return this.#policy.speaker(scope, { id })
    } catch (cause) {
      this.#log('error', scope.channel, 'the speaker of a schedule could not be told', cause)
      throw new PrecheckError('Nobody could be found in whose name the script runs.', { cause })
    }
  }

  /** Waits for the removal of everything, too, but only for a while, and `dispose` waits for the rest. */
  async #run(order: PrecheckOrder, ending: TurnEnding): Promise<PrecheckOutcome> {
    const attempt = new PrecheckAttempt(this.#ports, ending)
    using bound = new ReplyBound(REPLY_MS)
    ending.signal.addEventListener('abort', () => bound.begin(), { once: true })
    if (ending.signal.aborted) bound.begin()
    const known = this.#attempt(order, attempt, ending)
    const late = bound.late.then(() =>
      Promise.race([known, this.#failed(order, attempt, ending, ending.signal.reason)]),
    )
    const work = this.#settled(known, order, attempt).finally(() => this.#running.delete(ending))
    this.#running.set(ending, work)
    return await Promise.race([work, late])
  }

  async #attempt(
    order: PrecheckOrder,
    attempt: PrecheckAttempt,
    ending: TurnEnding,
  ): Promise<PrecheckOutcome> {
    this.#live.add(attempt.workerId)
    return await untilAborted(this.#begin(), ending.signal)
      .then(() => attempt.outcome(order))
      .catch((error) => this.#failed(order, attempt, ending, error))
  }

  async #settled(
    known: Promise<PrecheckOutcome>,
    order: PrecheckOrder,
    attempt: PrecheckAttempt,
  ): Promise<PrecheckOutcome> {
    const outcome = await known
    const problems = await attempt.settle()
    this.#live.delete(attempt.workerId)
    for (const problem of problems) {
      this.#log('error', order.context.channel, 'what a precheck used could not be removed', problem)
    }
    // What is left is looked for before the next run.
    if (problems.length > 0) this.#ready = undefined
    return outcome
  }

  async #failed(
    { context: { channel } }: PrecheckOrder,
    attempt: PrecheckAttempt,
    { cause }: TurnEnding,
    error: unknown,
  ): Promise<PrecheckOutcome> {
    const { step, worker } = attempt
    if (cause === 'timeout' && step === 'wait') {
      return failed(`Other scripts left no place for this one within ${this.timeoutMs / 1_000} s.`)
    }
    if (cause === 'timeout') return failed(`The script was not done within ${this.timeoutMs / 1_000} s.`)
    if (cause !== undefined) return failed('The script was stopped.')
    const { words, ours } = await precheckFailure(error, step, worker)
    this.#log(ours ? 'error' : 'warn', channel, `a precheck failed in step ${step}`, error)
    const output = this.#ports.scrub(worker?.output() ?? '')
    if (output !== '') this.#ports.logger?.warn({ channel, output }, 'what the worker of a precheck said')
    return failed(words)
  }

  /** Checks that workers can be started, and removes what an earlier host left. Once, and again after a failure. */
  #begin(): Promise<void> {
    this.#ready ??= this.#prepare().catch((cause) => {
      this.#ready = undefined
      throw cause
    })
    return this.#ready
  }

  async #prepare(): Promise<void> {
    const { driver, places, logger } = this.#ports
    await driver.check()
    const workers = await driver.sweep(this.#live)
    const directories = await places.sweep()
    if (workers.length + directories.length > 0) {
      logger?.warn({ workers, directories }, 'removed what was left of earlier prechecks')
    }
  }

  #log(level: 'warn' | 'error', channel: ChannelKey | string, message: string, problem: unknown): void {
    const { logger, scrub } = this.#ports
    logger?.[level]({ channel, cause: scrub(describe(problem)) }, message)
  }

  async #end(): Promise<void> {
    for (const ending of this.#running.keys()) ending.end('stopped')
    await Promise.allSettled(this.#running.values())
    await this.#ready?.catch(() => {})
    try {
      await this.#ports.driver[Symbol.asyncDispose]()
    } finally {
      // What is left is found again by its label, by whoever takes the run root next.
      this.#ports.places.close()
    }
  }
}

/** Also turns what the hook throws at once into a rejection. */
async function ask({ grant }: PrecheckPolicy, scope: PrecheckScope, signal: AbortSignal) {
  return await grant(Object.freeze({ ...scope }), { signal })
}

function checkJob(job: PrecheckOrder['job']): void {
  const { script } = job
  if (typeof script === 'string' && script.length > limits.PRECHECK_SCRIPT_CHARS) {
    throw new PrecheckError(
      `The script has ${script.length} characters, ${limits.PRECHECK_SCRIPT_CHARS} at most.`,
    )
  }
  if (isPrecheckJob({ ...job, servers: [], protocol: PROTOCOL_VERSION, remainingMs: 0 })) return
  throw new PrecheckError('The script is empty, or its schedule has a field that no script can be told.')
}

function failed(error: string): PrecheckOutcome {
  return { ok: false, error }
}

function resultOf(outcome: PrecheckOutcome, scrub: (text: string) => string): PrecheckResult {
  if (!outcome.ok) throw new PrecheckError(scrub(outcome.error))
  if (outcome.wake) return { wake: true, context: outcome.context }
  return { wake: false, ...(outcome.note === undefined ? {} : { note: outcome.note }) }
}
