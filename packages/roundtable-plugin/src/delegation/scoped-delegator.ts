import { randomUUID } from 'node:crypto'
import { redact } from '@sandbox/credential-scope'
import { guardedLogger } from '../guarded-logger.ts'
import type { ChannelKey, HostLogger } from '../host-contract.ts'
import { inTime } from '../in-time.ts'
import { DelegationError } from './delegation-error.ts'
import {
  type DelegationJob,
  type DelegationOutcome,
  type DelegationRequest,
  type DelegatorOptions,
  type ResolvedDelegatorOptions,
  resolveDelegatorOptions,
} from './delegator-options.ts'

const TASK_CHARS = 4_000
/** A run that ignores its signal is not waited for any longer than this. */
const GRACE_MS = 5_000

/** Reasons of a job's signal. The words of an outcome come from these, not from what a run makes of them. */
class OutOfTime extends Error {}
class HostStopped extends Error {}

/**
 * Runs jobs that an agent hands on, for one target and in the name of one channel and speaker each. Jobs run in the
 * background; every one is delivered exactly once, whatever it came to.
 */
export class ScopedSandboxDelegator implements AsyncDisposable {
  readonly #options: DelegatorOptions
  readonly #logger: HostLogger | undefined
  readonly #limits: ResolvedDelegatorOptions
  readonly #jobs = new Map<DelegationJob, { stop: AbortController; settled: Promise<void> }>()
  #closed = false

  /** @throws SandboxPluginError `options_invalid` */
  constructor(options: DelegatorOptions) {
    const { logger } = options
    this.#options = options
    this.#logger = logger && guardedLogger(logger)
    this.#limits = resolveDelegatorOptions(options)
  }

  /**
   * Starts a job and returns at once.
   * @throws DelegationError saying what is wrong: another target, a scope that a sandbox does not have, a title or task
   * that is missing or too long, too many jobs, a host that stops
   */
  start(request: DelegationRequest): DelegationJob {
    this.#check(request)
    const { channel, author, title, task } = request
    const job: DelegationJob = Object.freeze({
      id: randomUUID(),
      channel,
      target: this.#limits.target,
      author: Object.freeze({ id: author.id, name: author.name }),
      title: title.trim(),
      task: task.trim(),
      startedAt: new Date(),
    })
    const stop = new AbortController()
    // The work begins after `start` has returned, so that no outcome is delivered before its job is known.
    const settled = Promise.resolve()
      .then(() => this.#outcome(job, stop))
      .then((outcome) => this.#deliver(job, outcome))
      .finally(() => this.#jobs.delete(job))
    this.#jobs.set(job, { stop, settled })
    return job
  }

  /** The channels that have a job. */
  runningChannels(): ChannelKey[] {
    return [...new Set([...this.#jobs.keys()].map(({ channel }) => channel))]
  }

  /** Resolves when no job is left. Never rejects. */
  async idle(): Promise<void> {
    while (this.#jobs.size > 0) await Promise.all([...this.#jobs.values()].map(({ settled }) => settled))
  }

  /** Takes no more jobs, ends those that run, and waits until all are delivered. Idempotent. */
  async dispose(): Promise<void> {
    this.#closed = true
    for (const { stop } of this.#jobs.values()) stop.abort(new HostStopped())
    await this.idle()
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.dispose()
  }

  #check({ target, origin, author, channel, title, task }: DelegationRequest): void {
    const { maxTitleChars, maxRunning } = this.#limits
    if (this.#closed) throw new DelegationError('The host is stopping; nothing is delegated any more.')
    if (target !== this.#limits.target) {
      throw new DelegationError(`Out of scope: only ${this.#limits.target} takes jobs here.`)
    }
    if (origin !== undefined)
      throw new DelegationError('Out of scope: a job reports to its own channel only.')
    if (author.tier !== undefined) throw new DelegationError('Out of scope: jobs of a sandbox have no tier.')
    checkText('title', title, maxTitleChars)
    checkText('task', task, TASK_CHARS)
    const running = [...this.#jobs.keys()].filter((job) => job.channel === channel).length
    if (running >= maxRunning) {
      throw new DelegationError(
        `This channel already has ${running} jobs, ${maxRunning} at most: wait for one to end.`,
      )
    }
  }

  async #outcome(job: DelegationJob, stop: AbortController): Promise<DelegationOutcome> {
    const { timeoutMs, maxReportChars } = this.#limits
    const timer = setTimeout(() => stop.abort(new OutOfTime()), timeoutMs)
    try {
      const { channel, author } = job
      const work = Promise.resolve().then(() =>
        this.#options.run(job.task, { channel, author: Object.freeze({ ...author }), signal: stop.signal }),
      )
      const report = await orGivenUp(work, stop.signal)
      if (typeof report !== 'string' || report.trim() === '') return this.#failed('There was no report.')
      return { ok: true, report: cut(report.trim(), maxReportChars) }
    } catch (error) {
      if (stop.signal.reason instanceof OutOfTime)
        return this.#failed(`Out of time after ${timeoutMs / 1_000} s.`)
      if (stop.signal.reason instanceof HostStopped)
        return this.#failed('The host was stopped before it was done.')
      return this.#failed(wordsOf(error))
    } finally {
      clearTimeout(timer)
    }
  }

  #failed(reason: string): DelegationOutcome {
    const error = redact(reason, [], { maxChars: this.#limits.diagnosticChars }).trim()
    return { ok: false, error: error === '' ? 'It failed.' : error }
  }

  async #deliver(job: DelegationJob, outcome: DelegationOutcome): Promise<void> {
    try {
      await inTime(() => this.#options.deliver(job, outcome))
    } catch (error) {
      const cause = redact(wordsOf(error))
      this.#logger?.error({ job: job.id, channel: job.channel, cause }, 'a report was not delivered')
    }
  }
}

/** Whatever was thrown: what has no words has none, and never fails. */
function wordsOf(error: unknown): string {
  try {
    return String(error instanceof Error ? error.message : error)
  } catch {
    return ''
  }
}

/** Waits for the work; once its signal has fired, only for a moment. */
async function orGivenUp<T>(work: Promise<T>, signal: AbortSignal): Promise<T> {
  let timer: NodeJS.Timeout | undefined
  const givenUp = Promise.withResolvers<never>()
  const soon = () => {
    timer = setTimeout(() => givenUp.reject(signal.reason), GRACE_MS)
  }
  signal.addEventListener('abort', soon, { once: true })
  if (signal.aborted) soon()
  // A run that ends too late has nobody who listens.
  work.catch(() => {})
  try {
    const result = await Promise.race([work, givenUp.promise])
    signal.throwIfAborted()
    return result
  } finally {
    clearTimeout(timer)
    signal.removeEventListener('abort', soon)
  }
}

function checkText(what: string, text: string, most: number): void {
  const size = typeof text === 'string' ? text.trim().length : 0
  if (size === 0) throw new DelegationError(`The ${what} is missing.`)
  if (size > most)
    throw new DelegationError(`The ${what} has ${size} characters, ${most} at most: make it shorter.`)
}

function cut(text: string, most: number): string {
  return text.length <= most ? text : `${text.slice(0, most - 1).toWellFormed()}…`
}
