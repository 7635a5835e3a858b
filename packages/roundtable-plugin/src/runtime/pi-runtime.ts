import type { PiThinkingLevel } from '@sandbox/protocol'
import { SandboxPluginError } from '../errors.ts'
import type { ChannelKey } from '../host-contract.ts'
import { type RuntimeClock, realClock } from './clock.ts'
import { tellFailure } from './failure-words.ts'
import { PiChannel } from './pi-channel.ts'
import { eraseChannel, forgetSpeaker } from './pi-erasure.ts'
import { cleanupFailed, failedTurn, type PiTurnFailed, refusedTurn } from './pi-failure.ts'
import type { PiPolicy, ResolvedPiProfile } from './pi-policy.ts'
import type { PiRuntimePorts } from './pi-ports.ts'
import { type PiAnswer, PiTurnRun } from './pi-turn.ts'
import { type PiTurnInput, type PiTurnRequest, piImagesProblem, snapshotPiTurn } from './pi-turn-input.ts'
import { Revocations, type SpendingScope } from './revocations.ts'
import { ReplyBound, TurnEnding } from './turn-ending.ts'
import { describe, type TurnFailure } from './turn-failure.ts'
import { checkChannel } from './turn-snapshot.ts'
import { TurnProgress } from './turn-state.ts'
import { WorkspaceGuard } from './workspace-guard.ts'

/** What a Pi turn came to. */
export type PiTurnReply = ({ readonly ok: true } & PiAnswer) | PiTurnFailed

/** What a channel's worker is doing. */
export interface PiStatus {
  /**
   * `stopped`: there is none. `starting`, `ready`, `working`: as it says. `silent`: it gave no sign of life for a
   * minute and will be replaced. `paused`: workers ended one after the other, and none is started for a while.
   */
  readonly state: 'stopped' | 'starting' | 'ready' | 'working' | 'silent' | 'paused'
  readonly profile?: string
  readonly workerId?: string
  /** The level that the last turn was held to. */
  readonly thinking?: PiThinkingLevel
  /** True while a message is being answered. */
  readonly busy: boolean
}

/** Workers that are silent, and containers and directories that nobody uses, are looked for this often. */
const LOOK_MS = 30_000

/** A reply without an answer waits for what is being removed no longer than this: an engine may hang. */
const REPLY_MS = 5_000

/** Keeps one Pi worker per channel, and runs one turn at a time on it. */
export class PiRuntime implements AsyncDisposable {
  readonly #ports: PiRuntimePorts
  readonly #policy: PiPolicy
  readonly #clock: RuntimeClock
  readonly #channels = new Map<ChannelKey, PiChannel>()
  readonly #live = new Set<string>()
  readonly #revocations = new Revocations()
  readonly #workspaces: WorkspaceGuard
  readonly #lifetime = new AbortController()
  #ready: Promise<void> | undefined
  #looking: Promise<void> | undefined
  #cancelLook: (() => void) | undefined
  #closed = false
  #disposed: Promise<void> | undefined

  constructor(ports: PiRuntimePorts, policy: PiPolicy) {
    this.#ports = ports
    this.#policy = policy
    this.#clock = ports.clock ?? realClock
    this.#workspaces = new WorkspaceGuard({
      layout: ports.layout,
      limitBytes: policy.workspaceBytes,
      onFull: (channel, problem) =>
        ports.logger?.warn({ channel, cause: problem.message }, 'a workspace is full'),
    })
  }

  /**
   * Checks that workers can be started, and removes what an earlier host left. Idempotent; after a rejection it may be
   * tried again. The first start or turn does it too.
   */
  check(): Promise<void> {
    this.#ready ??= this.#begin().catch((cause) => {
      this.#ready = undefined
      throw cause
    })
    return this.#ready
  }

  /**
   * Starts the channel's worker unless it is there, and resolves when its agent is ready for a turn. A worker of another
   * profile or of an old image is replaced, after its turn. Calls for the same profile share one start.
   */
  async start(channel: ChannelKey, profile: string): Promise<void> {
    this.#stopIfClosed()
    const resolved = this.#policy.profile(profile)
    await this.#channel(channel).start(resolved)
  }

  /** Answers one message. Never rejects. */
  async runTurn(request: PiTurnRequest): Promise<PiTurnReply> {
    let input: PiTurnInput
    let profile: ResolvedPiProfile
    let channel: PiChannel
    try {
      input = snapshotPiTurn(request)
      profile = this.#policy.profile(input.profile)
      this.#stopIfClosed()
      channel = this.#channel(input.channel)
    } catch (problem) {
      return this.#refuse(problem)
    }
    if (channel.turn !== undefined) return this.#refuse(busy(input.channel))
    const ending = new TurnEnding(this.#policy.turnTimeoutMs, this.#clock)
    channel.turn = { channel: input.channel, speakerId: input.speaker.id, ending }
    this.#revocations.admit(channel.turn)
    const { signal } = input
    const stop = () => ending.end('stopped')
    signal?.addEventListener('abort', stop, { once: true })
    if (signal?.aborted) stop()
    try {
      const problem = await piImagesProblem(input.images, ending.signal)
      if (problem !== undefined) return this.#refuse(problem)
      return await this.#run(input, profile, { channel, ending })
    } finally {
      signal?.removeEventListener('abort', stop)
      channel.turn = undefined
    }
  }

  /**
   * Ends the channel's turn and every start, waits until they have cleaned up, and removes the worker, its socket and
   * its directory. The conversation stays. True when there was a turn. Rejects with `cleanup_failed` when something
   * could not be removed; everything else is done all the same.
   */
  async stop(channel: ChannelKey): Promise<boolean> {
    const held = this.#closed ? this.#channels.get(channel) : this.#channel(channel)
    if (held === undefined) return false
    const { ended, problems } = await held.stop()
    if (problems.length > 0) throw cleanupFailed(problems)
    return ended
  }

  /** Takes the right to spend back; returns the channels whose turn that ended. @throws SandboxPluginError `input_invalid` */
  revoke(scope: SpendingScope): ChannelKey[] {
    const running = [...this.#channels.values()].flatMap(({ turn }) => turn ?? [])
    return this.#revocations.revoke(scope, running)
  }

  /** Gives it back; false when exactly this was not taken. @throws SandboxPluginError `input_invalid` */
  restore(scope: SpendingScope): boolean {
    return this.#revocations.restore(scope)
  }

  /** Who may not spend now. */
  revoked(): SpendingScope[] {
    return this.#revocations.list()
  }

  /**
   * Stops the channel and moves its conversation aside: the next turn begins a new one. What is remembered stays.
   * @throws SandboxPluginError `input_invalid`, `channel_alias`, `cleanup_failed`, `closed`
   */
  async startFresh(channel: ChannelKey): Promise<void> {
    this.#stopIfClosed()
    const held = this.#channel(channel)
    const release = await held.halt().take
    try {
      const problems = await held.clear()
      if (problems.length > 0) throw cleanupFailed(problems)
      await this.#ports.layout.archive(channel)
    } finally {
      release()
    }
  }

  /**
   * Ends the channel's turn, removes its worker, and erases everything that is kept of it: conversations, files, and what
   * `forgetMemory` takes away. A turn meanwhile waits and starts anew. Rejects when something could not be removed; it
   * may be tried again, also after a crash in the middle.
   * @throws SandboxPluginError `input_invalid`, `channel_alias`, `cleanup_failed`, `hook_failed`, `closed`
   */
  async deleteConversation(channel: ChannelKey): Promise<void> {
    this.#stopIfClosed()
    await eraseChannel(this.#ports, channel, this.#channel(channel))
  }

  /**
   * Takes away what `forgetMemory` knows of a speaker, in one channel or everywhere. Conversations stay.
   * @throws SandboxPluginError `input_invalid`, `hook_failed`, `closed`
   */
  async forgetSpeaker(speakerId: string, channel?: ChannelKey): Promise<void> {
    this.#stopIfClosed()
    await forgetSpeaker(this.#ports, speakerId, channel)
  }

  /** What the channel's worker is doing. Answers at once, and starts and makes nothing. */
  status(channel: ChannelKey): PiStatus {
    checkChannel(channel)
    this.#ports.layout.check(channel)
    const held = this.#channels.get(channel)
    if (held === undefined) return { state: 'stopped', busy: false }
    const { seat, level } = held
    return {
      state: stateOf(held),
      busy: held.turn !== undefined,
      ...(seat === undefined ? {} : { profile: seat.profile.name, workerId: seat.workerId }),
      ...(level === undefined ? {} : { thinking: level }),
    }
  }

  /** The channels that have a turn. */
  busy(): ChannelKey[] {
    return [...this.#channels].filter(([, { turn }]) => turn !== undefined).map(([channel]) => channel)
  }

  /**
   * Ends every turn and every start, and removes every worker with its socket: a worker without its broker is of no use.
   * The runtime stays usable. Rejects with `cleanup_failed` when something could not be removed.
   */
  async stopBrokers(): Promise<void> {
    const stops = [...this.#channels.values()].map((channel) => channel.stop())
    const problems = (await Promise.all(stops)).flatMap((one) => one.problems)
    if (problems.length > 0) throw cleanupFailed(problems)
  }

  /**
   * Stops everything and gives the party directory back. Idempotent. Rejects when a worker could not be removed; the
   * directory is free then too, and another call tries again.
   */
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

  async #run(
    input: PiTurnInput,
    profile: ResolvedPiProfile,
    { channel, ending }: { readonly channel: PiChannel; readonly ending: TurnEnding },
  ): Promise<PiTurnReply> {
    const { driver, onTurn } = this.#ports
    const { turnId, speaker } = input
    const base = { turnId, channel: input.channel, speaker, driver: driver.kind }
    const progress = new TurnProgress(base, (event) => onTurn?.call(this.#ports, event))
    const shared = { ports: this.#ports, policy: this.#policy, workspaces: this.#workspaces }
    const run = new PiTurnRun({ ...shared, profile, channel, input, ending, progress })
    progress.enter('starting')
    const result = await run.answer()
    const flags = { timedOut: ending.cause === 'timeout', cancelled: ending.cause === 'stopped' }
    progress.enter('settling')
    using bound = new ReplyBound(REPLY_MS)
    bound.begin()
    const settling = run.settle()
    this.#workspaces.afterTurn(input.channel, settling, this.#lifetime.signal)
    const late = await Promise.race([bound.late, settling.then(() => false)])
    if (!('category' in result)) {
      progress.enter('settled', { ok: true })
      return { ok: true, ...result }
    }
    const cause = `${this.#ports.scrub(result.cause)}${late ? '; its worker is still being removed' : ''}`
    progress.enter('settled', { ok: false, category: result.category, cause })
    this.#report(input, result, { ...flags, cause })
    return failedTurn(result, cause, tellFailure(this.#policy, result, input))
  }

  #refuse(problem: unknown): PiTurnFailed {
    const cause = this.#ports.scrub(describe(problem))
    const refused = refusedTurn(problem, cause)
    const level = refused.category === 'container' ? 'error' : 'info'
    this.#ports.logger?.[level]({ category: refused.category, cause }, 'sandbox turn refused')
    return refused
  }

  /** Guest text goes into warnings only: error lines may be posted where people read. */
  #report(
    { channel, turnId }: PiTurnInput,
    failure: TurnFailure,
    told: { readonly cause: string; readonly timedOut: boolean; readonly cancelled: boolean },
  ): void {
    const { logger, scrub } = this.#ports
    const { category, detail } = failure
    const ours = category === 'container' || category === 'broker' || category === 'host'
    const level = told.cancelled ? 'info' : ours ? 'error' : 'warn'
    logger?.[level]({ channel, turnId, category, ...told }, 'sandbox turn failed')
    if (detail !== undefined) {
      logger?.warn({ channel, turnId, detail: scrub(detail) }, 'what the worker said of its failure')
    }
  }

  /** @throws SandboxPluginError `input_invalid`, `channel_alias`, `root_refused` */
  #channel(channel: ChannelKey): PiChannel {
    this.#ports.layout.claim(channel)
    const held = this.#channels.get(channel)
    if (held !== undefined) return held
    const made = new PiChannel({
      ports: this.#ports,
      channel,
      startTimeoutMs: this.#policy.startTimeoutMs,
      live: this.#live,
      workspaces: this.#workspaces,
      ready: () => this.check(),
    })
    this.#channels.set(channel, made)
    return made
  }

  async #begin(): Promise<void> {
    this.#stopIfClosed()
    await this.#ports.driver.check(this.#lifetime.signal)
    await this.#sweep()
    this.#lifetime.signal.throwIfAborted()
    this.#lookAgain()
  }

  async #sweep(): Promise<void> {
    const workers = await this.#ports.driver.sweep(this.#live)
    const directories = await this.#ports.layout.sweep()
    if (workers.length + directories.length === 0) return
    this.#ports.logger?.warn({ workers, directories }, 'removed what was left of earlier workers')
  }

  #lookAgain(): void {
    this.#cancelLook = this.#clock.after(LOOK_MS, () => this.#look(), { idle: true })
  }

  #look(): void {
    for (const channel of this.#channels.values()) channel.look()
    this.#looking ??= this.#sweep()
      .catch((cause) => {
        const said = this.#ports.scrub(describe(cause))
        this.#ports.logger?.warn({ cause: said }, 'looking for leftovers failed')
      })
      .finally(() => {
        this.#looking = undefined
      })
    this.#lookAgain()
  }

  async #end(): Promise<void> {
    this.#lifetime.abort(closed())
    this.#cancelLook?.()
    try {
      const stopped = await Promise.all([...this.#channels.values()].map((channel) => channel.stop()))
      await this.#ready?.catch(() => {})
      this.#cancelLook?.()
      await this.#looking
      await this.#workspaces.idle()
      await this.#ports.driver[Symbol.asyncDispose]()
      const problems = stopped.flatMap((one) => one.problems)
      if (problems.length > 0) throw cleanupFailed(problems)
    } finally {
      // What is left is found again by its label, by whoever takes the party directory next.
      this.#ports.layout.close()
    }
  }

  #stopIfClosed(): void {
    if (this.#closed) throw closed()
  }
}

function stateOf(channel: PiChannel): PiStatus['state'] {
  if (channel.opening) return 'starting'
  if (channel.paused) return 'paused'
  const state = channel.seat?.state ?? 'over'
  return state === 'over' ? 'stopped' : state
}

function busy(channel: ChannelKey): SandboxPluginError {
  return new SandboxPluginError('busy', `The channel ${channel} already has a turn.`)
}

function closed(): SandboxPluginError {
  return new SandboxPluginError('closed', 'The runtime is closed.')
}
