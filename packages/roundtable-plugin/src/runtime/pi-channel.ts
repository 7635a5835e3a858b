import type { PiThinkingLevel } from '@sandbox/protocol'
import { SandboxPluginError } from '../errors.ts'
import type { ChannelKey } from '../host-contract.ts'
import { ChannelMutex } from './channel-mutex.ts'
import { type RuntimeClock, realClock } from './clock.ts'
import type { ResolvedPiProfile } from './pi-policy.ts'
import type { PiRuntimePorts } from './pi-ports.ts'
import { PiSeat, type SeatStep } from './pi-seat.ts'
import { RestartLimit } from './restart-limit.ts'
import type { RunningTurn } from './revocations.ts'
import { untilAborted } from './turn-ending.ts'
import { describe, WorkerEnded } from './turn-failure.ts'
import type { WorkspaceGuard } from './workspace-guard.ts'

/** Whether a worker's image is still the current one is asked no more often than this. */
const IDENTITY_MS = 10_000

/** Longest wait for the answer to that: a worker that runs is not given up because an engine is slow. */
const IDENTITY_WAIT_MS = 2_000

/** What a {@link PiChannel} is made of. */
export interface PiChannelOptions {
  readonly ports: PiRuntimePorts
  readonly channel: ChannelKey
  readonly startTimeoutMs: number
  /** Ids of the workers that are not to be swept away. */
  readonly live: Set<string>
  readonly workspaces: WorkspaceGuard
  /** The engine was checked, and what an earlier host left was removed. */
  ready(): Promise<void>
}

/**
 * What one channel has: at most one worker, at most one turn, and one lock, which whoever starts, uses or removes the
 * worker holds meanwhile.
 */
export class PiChannel {
  readonly #options: PiChannelOptions
  readonly #clock: RuntimeClock
  readonly #mutex = new ChannelMutex()
  readonly #restarts: RestartLimit
  /** What a stop calls off: starts that wait or are under way. */
  readonly #starts = new Set<AbortController>()
  /** Starts that were asked for, by profile. */
  readonly #asked = new Map<string, Promise<void>>()
  /** Seats whose worker, socket or directory could not be removed yet. */
  readonly #leftovers = new Set<PiSeat>()
  #seat: PiSeat | undefined
  #failedStep: SeatStep = 'prepare'
  #opening: { readonly profile: string; readonly seat: Promise<PiSeat> } | undefined
  #identityAt = Number.NEGATIVE_INFINITY
  /** A worker whose image is not the current one. */
  #outdated: PiSeat | undefined
  /** The turn that was admitted, until it has its reply. */
  turn: RunningTurn | undefined
  /** The level of the last turn. */
  level: PiThinkingLevel | undefined

  constructor(options: PiChannelOptions) {
    this.#options = options
    this.#clock = options.ports.clock ?? realClock
    this.#restarts = new RestartLimit(this.#clock)
  }

  /** The worker there is, ready or not. */
  get seat(): PiSeat | undefined {
    return this.#seat
  }

  /** What was at work last in the start of a worker, also of one that failed. */
  get step(): SeatStep {
    return this.#seat?.step ?? this.#failedStep
  }

  /** True while the worker is not started since it kept ending. */
  get paused(): boolean {
    return this.#restarts.paused
  }

  /** True while a worker is started. */
  get opening(): boolean {
    return this.#opening !== undefined
  }

  /** Waits for the channel and takes it; returns what gives it back. */
  take(signal?: AbortSignal): Promise<() => void> {
    return this.#mutex.take(signal)
  }

  /** Starts a worker for a profile unless one is there. Who asks for the same one meanwhile shares the start. */
  start(profile: ResolvedPiProfile): Promise<void> {
    const before = this.#asked.get(profile.name)
    if (before !== undefined) return before
    const asked = this.#operation((signal) => this.#start(profile, signal)).finally(() => {
      if (this.#asked.get(profile.name) === asked) this.#asked.delete(profile.name)
    })
    this.#asked.set(profile.name, asked)
    return asked
  }

  /** The ready worker of a profile: the one that is there, or a new one. Whoever calls holds the channel. */
  async ensure(profile: ResolvedPiProfile, signal: AbortSignal): Promise<PiSeat> {
    const seat = this.#ensure(profile, signal)
    const opening = { profile: profile.name, seat }
    this.#opening = opening
    try {
      return await seat
    } finally {
      this.#opening = undefined
    }
  }

  /** The turn that used the worker has its answer: the worker is well. */
  answered(): void {
    this.#restarts.forgive()
  }

  /** Removes a worker. What could not be removed is kept and tried again. Whoever calls holds the channel. */
  async retire(seat: PiSeat): Promise<readonly unknown[]> {
    if (this.#seat === seat) this.#seat = undefined
    this.#leftovers.add(seat)
    return await this.#settle(seat)
  }

  /** A worker ended though nobody asked it to. */
  failed(what: string, cause: unknown): void {
    const failures = this.#restarts.failed()
    this.#tell('warn', what, { failures, ...(cause === undefined ? {} : { cause: describe(cause) }) })
    if (!this.#restarts.paused) return
    this.#tell('error', 'the workers of a channel keep ending; none is started for a while', { failures })
  }

  /** Ends the turn and every start, waits for what they clean up, and removes the worker. True when a turn was ended. */
  async stop(): Promise<{ readonly ended: boolean; readonly problems: readonly unknown[] }> {
    const { ended, take } = this.halt()
    const release = await take
    try {
      return { ended, problems: await this.clear() }
    } finally {
      release()
    }
  }

  /** Ends the turn and every start that was asked for by now, and waits for the channel. */
  halt(): { readonly ended: boolean; readonly take: Promise<() => void> } {
    const ended = this.turn?.ending.end('stopped') ?? false
    for (const start of this.#starts) start.abort(stopped())
    // Who asks from now on asks anew.
    this.#asked.clear()
    return { ended, take: this.#mutex.take() }
  }

  /** Removes the worker and everything that was left. Whoever calls holds the channel. */
  async clear(): Promise<readonly unknown[]> {
    this.level = undefined
    this.#restarts.forgive()
    if (this.#seat !== undefined) this.#leftovers.add(this.#seat)
    this.#seat = undefined
    return await this.#clearLeftovers()
  }

  /** A worker that is silent or over is replaced, unless somebody is at it already. */
  look(): void {
    const seat = this.#seat
    if (seat === undefined || this.#mutex.taken || this.#opening) return
    if (!seat.usable) void this.#replace(seat, 'a worker gave no sign of life')
  }

  async #start(profile: ResolvedPiProfile, signal: AbortSignal): Promise<void> {
    this.#restarts.forgive()
    this.#identityAt = Number.NEGATIVE_INFINITY
    while (this.#opening?.profile === profile.name) {
      // A turn that was stopped takes its start along, but not the start of others.
      const seat = await untilAborted(this.#opening.seat, signal).catch((cause) => {
        if (!isStop(cause)) throw cause
        signal.throwIfAborted()
      })
      if (seat !== undefined) return
    }
    if (await this.#fits(profile, signal)) return
    const release = await this.#mutex.take(signal)
    try {
      await this.ensure(profile, signal)
    } finally {
      release()
    }
  }

  async #ensure(profile: ResolvedPiProfile, signal: AbortSignal): Promise<PiSeat> {
    await untilAborted(this.#options.ready(), signal)
    if (await this.#fits(profile, signal)) return this.#seat as PiSeat
    if (this.#seat !== undefined) await untilAborted(this.retire(this.#seat), signal)
    for (;;) {
      this.#restarts.check()
      await untilAborted(this.#clearLeftovers(), signal)
      // The worker before shares the workspace: as long as it may run, there is no other.
      if ([...this.#leftovers].some((seat) => !seat.dead)) throw cleanupFailed()
      try {
        return await this.#open(profile, signal)
      } catch (cause) {
        signal.throwIfAborted()
        if (!isLoopSign(cause)) throw cause
        this.failed('a worker ended before it was ready', cause)
        this.#restarts.check(cause)
        await this.#restarts.pause(signal)
      }
    }
  }

  async #open(profile: ResolvedPiProfile, signal: AbortSignal): Promise<PiSeat> {
    const { ports, channel, live, workspaces, startTimeoutMs } = this.#options
    const seat = new PiSeat(ports, { channel, profile, live, workspaces })
    this.#seat = seat
    this.#failedStep = 'prepare'
    const late = new AbortController()
    const cancel = this.#clock.after(startTimeoutMs, () => late.abort(tooLate(startTimeoutMs)))
    const giveUp = () => late.abort(signal.reason)
    signal.addEventListener('abort', giveUp, { once: true })
    try {
      await untilOpen(seat, late.signal)
      this.#identityAt = this.#clock.now()
      seat.gone.addEventListener('abort', () => void this.#replace(seat, 'the worker of a channel ended'))
      return seat
    } catch (cause) {
      if (seat.output !== '') this.#tell('warn', 'what the worker said', { output: lastLines(seat.output) })
      this.#failedStep = seat.step
      await this.retire(seat)
      throw cause
    } finally {
      cancel()
      signal.removeEventListener('abort', giveUp)
    }
  }

  /** True when the worker that is there can take a turn of the profile. */
  async #fits(profile: ResolvedPiProfile, signal: AbortSignal): Promise<boolean> {
    const seat = this.#seat
    if (seat?.usable !== true || seat.profile.name !== profile.name || seat === this.#outdated) return false
    if (seat.identity === undefined || this.#clock.now() - this.#identityAt < IDENTITY_MS) return true
    this.#identityAt = this.#clock.now()
    const current = await this.#currentIdentity(signal)
    if (current === undefined || current === seat.identity) return seat.usable
    this.#outdated = seat
    this.#tell('info', 'the image changed: the worker is replaced', {})
    return false
  }

  async #currentIdentity(signal: AbortSignal): Promise<string | undefined> {
    const { driver } = this.#options.ports
    const enough = new AbortController()
    const cancel = this.#clock.after(IDENTITY_WAIT_MS, () => enough.abort())
    try {
      return await untilAborted(Promise.resolve(driver.identity?.(signal)), enough.signal)
    } catch {
      signal.throwIfAborted()
      return undefined
    } finally {
      cancel()
    }
  }

  /** In the background: a worker that is of no use any more makes room for a new one. */
  async #replace(seat: PiSeat, what: string): Promise<void> {
    if (this.#seat !== seat) return
    await this.#operation(async (signal) => {
      const release = await this.#mutex.take(signal)
      try {
        // Whoever held the channel may have seen it too.
        if (this.#seat !== seat) return
        this.failed(what, seat.gone.reason)
        if (seat.output !== '') this.#tell('warn', 'what the worker said', { output: lastLines(seat.output) })
        await this.retire(seat)
        if (!this.#restarts.paused) await this.ensure(seat.profile, signal)
      } finally {
        release()
      }
    }).catch((cause) => {
      if (!isStop(cause)) this.#tell('warn', 'no new worker was started', { cause: describe(cause) })
    })
  }

  async #clearLeftovers(): Promise<readonly unknown[]> {
    const problems: unknown[] = []
    for (const seat of [...this.#leftovers]) problems.push(...(await this.#settle(seat)))
    return problems
  }

  /** Runs a start that a stop may call off. */
  async #operation<T>(work: (signal: AbortSignal) => Promise<T>): Promise<T> {
    const start = new AbortController()
    this.#starts.add(start)
    try {
      return await work(start.signal)
    } finally {
      this.#starts.delete(start)
    }
  }

  async #settle(seat: PiSeat): Promise<readonly unknown[]> {
    const problems = await seat.settle()
    if (problems.length === 0) this.#leftovers.delete(seat)
    else this.#tell('error', 'a worker or its directory could not be removed', { causes: problems.map(said) })
    return problems
  }

  #tell(level: 'info' | 'warn' | 'error', message: string, fields: Record<string, unknown>): void {
    const { logger, scrub } = this.#options.ports
    const scrubbed = Object.entries(fields).map(([name, value]) => [name, scrubbedValue(value, scrub)])
    logger?.[level]({ channel: this.#options.channel, ...Object.fromEntries(scrubbed) }, message)
  }
}

/** Opens a seat; a driver that does not hear the signal is not waited for. */
async function untilOpen(seat: PiSeat, signal: AbortSignal): Promise<void> {
  const open = seat.open(signal)
  await untilAborted(open, signal).catch(async (cause) => {
    // What a slow driver starts late is removed with the seat, which has to know of it.
    await open.catch(() => {})
    throw cause
  })
}

/** The last lines of a worker's output. */
export function lastLines(output: string, count = 200): string {
  return output.split('\n').slice(-count).join('\n')
}

function scrubbedValue(value: unknown, scrub: (text: string) => string): unknown {
  if (typeof value === 'string') return scrub(value)
  return Array.isArray(value) ? value.map((one) => scrubbedValue(one, scrub)) : value
}

/** Signs of a worker that would end again: it ended by itself, or it was never ready. */
function isLoopSign(error: unknown): boolean {
  return (
    error instanceof WorkerEnded || (SandboxPluginError.isInstance(error) && error.code === 'worker_late')
  )
}

/** A stop of the channel, or the end of the turn that had begun the start. */
function isStop(error: unknown): boolean {
  if (SandboxPluginError.isInstance(error)) return error.code === 'stopped'
  return error instanceof Error && error.name === 'AbortError'
}

function said(problem: unknown): string {
  return describe(problem)
}

function stopped(): SandboxPluginError {
  return new SandboxPluginError('stopped', 'Somebody stopped the channel.')
}

function tooLate(ms: number): SandboxPluginError {
  return new SandboxPluginError('worker_late', `The worker was not ready within ${ms} milliseconds.`)
}

function cleanupFailed(): SandboxPluginError {
  return new SandboxPluginError(
    'cleanup_failed',
    'The worker before could not be removed, and shares the workspace: none is started until it is gone. Look at the engine.',
  )
}
