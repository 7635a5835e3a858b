import { redact } from '@sandbox/credential-scope'
import { createProcessDriver, type Driver } from '@sandbox/docker-worker'
import { PiSandboxBroker } from '@sandbox/pi-broker'
import {
  accountOf,
  checkDriverChoice,
  dockerDriver,
  earlierOf,
  type SandboxStatus,
  tellAll,
} from './defaults.ts'
import { guardedLogger } from './guarded-logger.ts'
import type { ChannelKey } from './host-contract.ts'
import type { PiSandboxRuntimeOptions } from './pi-options.ts'
import { mindEarlierContainers } from './runtime/earlier-containers.ts'
import { LastTurns } from './runtime/last-turns.ts'
import { type PiBrokers, piBrokers } from './runtime/pi-brokers.ts'
import { openPiLayout, type PiLayout } from './runtime/pi-layout.ts'
import { checkPiOptionNames } from './runtime/pi-option-names.ts'
import { resolvePiPolicy } from './runtime/pi-policy.ts'
import type { PiRuntimePorts } from './runtime/pi-ports.ts'
import { PiRuntime, type PiStatus, type PiTurnReply } from './runtime/pi-runtime.ts'
import type { PiTurnRequest } from './runtime/pi-turn-input.ts'
import { isRevoked, type SpendingScope } from './runtime/revocations.ts'

/** What a channel is doing. */
export interface PiSandboxStatus extends PiStatus, Pick<SandboxStatus, 'revoked' | 'last'> {}

/**
 * Keeps a container per channel with the real Pi agent in it, and answers messages from there; each model call is paid
 * for by whoever speaks in its turn. Everything that can be checked without an engine is checked by the constructor;
 * the engine and the image by `check`.
 */
export class PiSandboxRuntime implements AsyncDisposable {
  readonly #runtime: PiRuntime
  readonly #turns = new LastTurns()
  readonly #layout: PiLayout
  /** What the workers run on. `isolation: 'none'` is no sandbox: say so wherever a person can see it. */
  readonly driver: Pick<Driver, 'kind' | 'isolation'>
  /** Real path. */
  readonly partyDir: string

  /** @throws SandboxPluginError, BrokerError or DriverError, each naming the option and how to mend it */
  constructor(options: PiSandboxRuntimeOptions) {
    checkPiOptionNames(options)
    const { tools = [], mcp = [] } = options
    const offer = { mcp: namesOf(mcp), tools: namesOf(tools) }
    const policy = resolvePiPolicy(options, offer)
    const brokers = piBrokers(options, policy)
    // Opened and thrown away: each checks its whole policy, and none asks for a credential.
    for (const profile of policy.profiles) void new PiSandboxBroker(brokers(profile)).stop(true)
    checkDriverChoice(options, 'pi')
    const layout = openPiLayout({ partyDir: options.partyDir, user: accountOf(options) })
    let driver: Driver
    try {
      const { installId, user, partyDir: runRoot } = layout
      const earlier = earlierOf(options, { installId, user, runRoot })
      driver = mindEarlierContainers(makePiDriver(options, layout), earlier)
      this.#runtime = new PiRuntime(piPorts(options, { layout, driver, brokers, turns: this.#turns }), policy)
    } catch (cause) {
      layout.close()
      throw cause
    }
    this.#layout = layout
    this.driver = Object.freeze({ kind: driver.kind, isolation: driver.isolation })
    this.partyDir = layout.partyDir
  }

  /**
   * Checks that workers can be started, and removes what an earlier host left behind. Idempotent; after a rejection it
   * may be tried again. The first start or turn does it too.
   */
  check(): Promise<void> {
    return this.#runtime.check()
  }

  /**
   * Starts the channel's worker unless it is there, and resolves when its agent is ready for a turn. A worker of another
   * profile or of an old image is replaced, after its turn. Calls for the same profile share one start.
   */
  start(channel: ChannelKey, profile: string): Promise<void> {
    return this.#runtime.start(channel, profile)
  }

  /** Answers one message: with a text and files, or with words that say why there are none. Never rejects. */
  runTurn(request: PiTurnRequest): Promise<PiTurnReply> {
    return this.#runtime.runTurn(request)
  }

  /**
   * Ends the channel's turn and every start, waits until they have cleaned up, and removes the worker. The conversation
   * stays. True when there was a turn. Rejects with `cleanup_failed` when something could not be removed.
   */
  stop(channel: ChannelKey): Promise<boolean> {
    return this.#runtime.stop(channel)
  }

  /** Stops the channel and moves its conversation aside: the next turn begins a new one. */
  startFresh(channel: ChannelKey): Promise<void> {
    return this.#runtime.startFresh(channel)
  }

  /**
   * Ends the channel's turn, removes its worker, and erases everything that is kept of it: conversations, files, and what
   * `forgetMemory` takes away. A turn meanwhile waits and starts anew. Rejects when something could not be removed; it
   * may be tried again, also after a crash in the middle.
   * @throws SandboxPluginError `input_invalid`, `channel_alias`, `cleanup_failed`, `hook_failed`, `closed`
   */
  deleteConversation(channel: ChannelKey): Promise<void> {
    return this.#runtime.deleteConversation(channel)
  }

  /**
   * Takes away what the host remembers of a speaker, in one channel or everywhere, through `forgetMemory`. Conversations
   * stay: those go with {@link deleteConversation}.
   * @throws SandboxPluginError `input_invalid`, `hook_failed`, `closed`
   */
  forgetSpeaker(speakerId: string, channel?: ChannelKey): Promise<void> {
    return this.#runtime.forgetSpeaker(speakerId, channel)
  }

  /**
   * What the channel's worker is doing, and how its last turn ended. Answers at once.
   * @throws SandboxPluginError `input_invalid`, `channel_alias`
   */
  status(channel: ChannelKey): PiSandboxStatus {
    const revoked = isRevoked(this.#runtime.revoked(), channel)
    return { ...this.#runtime.status(channel), revoked, last: this.#turns.of(channel) }
  }

  /**
   * Takes the right to spend back from a speaker in a channel, from a whole channel, or from a speaker everywhere, at
   * once: a turn that runs is ended, its calls in flight are aborted, and its chat is told. Later messages are answered
   * with words, without a worker. Holds until {@link restore} or the end of the process; what is to outlast that belongs
   * where the credentials come from. Returns the channels whose turn was ended.
   * @throws SandboxPluginError `input_invalid`
   */
  revoke(scope: SpendingScope): ChannelKey[] {
    return this.#runtime.revoke(scope)
  }

  /**
   * Gives back what {@link revoke} took for exactly this scope; the next message asks for its credential again. False
   * when that was not taken.
   * @throws SandboxPluginError `input_invalid`
   */
  restore(scope: SpendingScope): boolean {
    return this.#runtime.restore(scope)
  }

  /** Who may not spend now. */
  revoked(): SpendingScope[] {
    return this.#runtime.revoked()
  }

  /** The channels that have a turn. */
  busy(): ChannelKey[] {
    return this.#runtime.busy()
  }

  /** Where the channel's conversations lie, as JSONL. A guest may have planted links there: open nothing by its path. */
  sessionsDir(channel: ChannelKey): string {
    return this.#layout.sessionsDir(channel)
  }

  /** Where files for the channel's worker lie. Let `runTurn` write them: it follows no link that a guest planted. */
  attachmentDir(channel: ChannelKey): string {
    return this.#layout.attachmentDir(channel)
  }

  /** Ends every turn and every start, and removes every worker with its socket. The runtime stays usable. */
  stopBrokers(): Promise<void> {
    return this.#runtime.stopBrokers()
  }

  /**
   * Stops everything and gives the party directory back. Idempotent. Rejects when a worker could not be removed; the
   * directory is free then too, and another call tries again.
   */
  dispose(): Promise<void> {
    return this.#runtime.dispose()
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.dispose()
  }
}

function piPorts(
  options: PiSandboxRuntimeOptions,
  {
    layout,
    driver,
    brokers,
    turns,
  }: { layout: PiLayout; driver: Driver; brokers: PiBrokers; turns: LastTurns },
): PiRuntimePorts {
  const { judge, memory, forgetMemory, logger } = options
  return {
    layout,
    driver,
    openBroker: (profile, onCall) =>
      new PiSandboxBroker({
        ...brokers(profile),
        onCall: tellAll(onCall, (event) => turns.sawCall(event), options.onCall),
      }),
    scrub: redact,
    ...(judge && { judge }),
    ...(memory && { memory }),
    ...(forgetMemory && { forgetMemory }),
    onTurn: tellAll((event) => turns.sawTurn(event), options.onTurn),
    ...(logger && { logger: guardedLogger(logger) }),
  }
}

function makePiDriver(options: PiSandboxRuntimeOptions, layout: PiLayout): Driver {
  const { driver, content } = options
  const { installId, user, partyDir: runRoot } = layout
  if (typeof driver === 'function') return driver({ installId, user, runRoot })
  const own = content === undefined ? {} : { content }
  if (driver === 'process') return createProcessDriver({ runRoot, user, guest: 'pi', scrub: redact, ...own })
  return dockerDriver({ ...options, guest: 'pi' }, { installId, user })
}

function namesOf(all: readonly { readonly name: string }[]): string[] {
  return all.map(({ name }) => name)
}
