import { type BrokerOptions, openSealedBroker } from '@sandbox/broker'
import { redact, type SandboxSpeaker } from '@sandbox/credential-scope'
import { createDockerDriver, createProcessDriver, createWarmPool, type Driver } from '@sandbox/docker-worker'
import { SandboxPluginError } from './errors.ts'
import { guardedLogger } from './guarded-logger.ts'
import type { ChannelKey } from './host-contract.ts'
import type { DriverInstall, SandboxRuntimeOptions } from './options.ts'
import { quietly } from './quietly.ts'
import { type EarlierContainers, mindEarlierContainers } from './runtime/earlier-containers.ts'
import { type LastTurn, LastTurns } from './runtime/last-turns.ts'
import { checkOptionNames } from './runtime/option-names.ts'
import { isRevoked, type SpendingScope } from './runtime/revocations.ts'
import { checkLargestTurn, resolveTurnPolicy } from './runtime/runtime-options.ts'
import { SealedRuntime, type SealedRuntimePorts, type TurnReply } from './runtime/sealed-runtime.ts'
import { checkChannel } from './runtime/turn-snapshot.ts'
import { openWorkspaceLayout, type WorkspaceLayout } from './runtime/workspace-layout.ts'

/** What a channel is doing. */
export interface SandboxStatus {
  readonly busy: boolean
  /** `working`: a turn runs. `waiting`: one waits for the next turn. `none`: the next turn starts its own. */
  readonly worker: 'working' | 'waiting' | 'none'
  /** True when nobody may spend in it. A speaker who may not is not counted. */
  readonly revoked: boolean
  /** `undefined` when there was none since the runtime was made. */
  readonly last: LastTurn | undefined
}

/**
 * Answers messages from sealed workers: a fresh one for each turn, with no network and no key. Everything that can
 * be checked without an engine is checked by the constructor; the engine and the image by `start`.
 */
export class SandboxRuntime implements AsyncDisposable {
  readonly #runtime: SealedRuntime
  readonly #turns = new LastTurns()
  /** What the workers run on. `isolation: 'none'` is no sandbox: say so wherever a person can see it. */
  readonly driver: Pick<Driver, 'kind' | 'isolation'>
  /** Real paths. */
  readonly runRoot: string
  readonly workspaceRoot: string

  /** @throws SandboxPluginError, BrokerError or DriverError, each naming the option and how to mend it */
  constructor(options: SandboxRuntimeOptions) {
    checkOptionNames(options)
    const policy = resolveTurnPolicy(options)
    const broker = brokerOptions(options)
    checkLargestTurn(policy, preflightTools(broker))
    checkDriverChoice(options)
    const layout = openWorkspaceLayout({
      runRoot: options.runRoot,
      workspaceRoot: options.workspaceRoot,
      user: accountOf(options),
    })
    let driver: Driver
    try {
      driver = mindEarlierContainers(makeDriver(options, layout), earlierOf(options, layout))
      this.#runtime = new SealedRuntime(
        portsOf(options, { layout, driver, broker, turns: this.#turns }),
        policy,
      )
    } catch (cause) {
      layout.close()
      throw cause
    }
    this.driver = Object.freeze({ kind: driver.kind, isolation: driver.isolation })
    this.runRoot = layout.runRoot
    this.workspaceRoot = layout.workspaceRoot
  }

  /**
   * Checks that workers can be started, and removes what an earlier host left behind. Idempotent; after a
   * rejection it may be tried again. The first turn does it too.
   */
  start(): Promise<void> {
    return this.#runtime.start()
  }

  /**
   * Answers one message. The speaker's `principalId`, where the host knows it, reaches `apiKey` and the tools, never the
   * worker. Resolves with an answer or with words that say why there is none. Rejects only with
   * {@link SandboxPluginError} `closed`, `busy`, `input_invalid`, and {@link CleanupFailed} when there was an answer
   * but its worker could not be removed.
   */
  runTurn(channel: ChannelKey, speaker: SandboxSpeaker, text: string): Promise<TurnReply> {
    return this.#runtime.runTurn(channel, speaker, text)
  }

  /**
   * Starts a worker for the channel's next turn in the background, so that the turn only has to be handed over. After
   * a channel's first turn that happens by itself. What goes wrong is logged.
   * @throws SandboxPluginError `input_invalid`
   */
  warm(channel: ChannelKey): void {
    this.#runtime.warm(channel)
  }

  /** Removes the worker that waits for the channel's next turn. Resolves when it is gone; never rejects. */
  cool(channel: ChannelKey): Promise<void> {
    return this.#runtime.cool(channel)
  }

  /** The channels for which a worker waits. */
  warmed(): ChannelKey[] {
    return this.#runtime.warmed()
  }

  /** The channel's next turn starts without history. Memory is kept. */
  startFresh(channel: ChannelKey): void {
    this.#runtime.startFresh(channel)
  }

  /**
   * Ends the channel's turn, removes its workers, and erases everything that is kept of it: history, memory, files. A
   * turn meanwhile waits and starts anew. Rejects when something could not be removed; it may be tried again, also after
   * a crash in the middle.
   * @throws SandboxPluginError `input_invalid`, `closed`
   */
  deleteConversation(channel: ChannelKey): Promise<void> {
    return this.#runtime.deleteConversation(channel)
  }

  /**
   * Forgets the facts that a speaker asked to remember, in one channel or in all of them, between turns. Notes of the
   * channel and its history stay: those go with {@link deleteConversation}. Returns in how many channels there were some.
   * @throws SandboxPluginError `input_invalid`, `closed`
   */
  forgetSpeaker(speakerId: string, channel?: ChannelKey): Promise<number> {
    return this.#runtime.forgetSpeaker(speakerId, channel)
  }

  /** Ends the channel's running turn, and removes the waiting worker. True when there was a turn without an answer yet. */
  stop(channel: ChannelKey): boolean {
    return this.#runtime.stop(channel)
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

  /** What the channel is doing, and how its last turn ended. Answers at once. @throws SandboxPluginError `input_invalid` */
  status(channel: ChannelKey): SandboxStatus {
    checkChannel(channel)
    const busy = this.#runtime.busy().includes(channel)
    const waiting = this.#runtime.warmed().includes(channel) ? 'waiting' : 'none'
    return {
      busy,
      worker: busy ? 'working' : waiting,
      revoked: isRevoked(this.#runtime.revoked(), channel),
      last: this.#turns.of(channel),
    }
  }

  /** The channels that have a turn. */
  busy(): ChannelKey[] {
    return this.#runtime.busy()
  }

  /**
   * Stops every turn, waits until all are settled, and gives everything back. Idempotent. Rejects when a worker could
   * not be removed; the roots are free then too, and another call tries again.
   */
  dispose(): Promise<void> {
    return this.#runtime.dispose()
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.dispose()
  }
}

/** What an earlier host of this install may have left, whichever driver it ran with. */
export function earlierOf(
  { engineSocket, logger }: Pick<SandboxRuntimeOptions, 'engineSocket' | 'logger'>,
  { runRoot, installId, user }: DriverInstall,
): EarlierContainers {
  return {
    runRoot,
    installId,
    openContainers: (noted) => createDockerDriver({ image: 'none', installId, user, engineSocket: noted }),
    openProcesses: () => createProcessDriver({ runRoot, user }),
    ...(engineSocket !== undefined && { engineSocket }),
    ...(logger && { logger: guardedLogger(logger) }),
  }
}

function portsOf(
  options: SandboxRuntimeOptions,
  {
    layout,
    driver,
    broker,
    turns,
  }: { layout: WorkspaceLayout; driver: Driver; broker: BrokerOptions; turns: LastTurns },
): SealedRuntimePorts {
  const { logger, warm = {} } = options
  return {
    layout,
    driver,
    openBroker: (onCall) =>
      openSealedBroker({
        ...broker,
        onCall: tellAll(onCall, (event) => turns.sawCall(event), options.onCall),
      }),
    openPool: (parts) => createWarmPool({ driver, ...parts, limits: warm === false ? { workers: 0 } : warm }),
    scrub: redact,
    onTurn: tellAll((event) => turns.sawTurn(event), options.onTurn),
    ...(logger && { logger: guardedLogger(logger) }),
  }
}

function brokerOptions(options: SandboxRuntimeOptions): BrokerOptions {
  const { tools, mcp, allowHttp, maxCalls, maxOutputTokens, maxQueuedCalls, authSlot, tokenLimitField } =
    options
  return {
    modelUrl: options.modelUrl,
    model: options.model,
    apiKey: options.apiKey,
    ...(tools !== undefined && { tools }),
    ...(mcp !== undefined && { mcp }),
    ...(allowHttp !== undefined && { allowHttp }),
    ...(maxCalls !== undefined && { maxCalls }),
    ...(maxOutputTokens !== undefined && { maxOutputTokens }),
    ...(maxQueuedCalls !== undefined && { maxQueuedCalls }),
    ...(authSlot !== undefined && { authSlot }),
    ...(tokenLimitField !== undefined && { tokenLimitField }),
    ...(options.upstream !== undefined && { upstream: options.upstream }),
    ...(options.credit !== undefined && { credit: options.credit }),
    ...(options.onReceipt !== undefined && { onReceipt: options.onReceipt }),
  }
}

/** A broker that is opened and thrown away: it checks the whole policy, and never asks for a credential. */
function preflightTools(options: BrokerOptions) {
  const broker = openSealedBroker(options)
  broker.stop(true).catch(() => {})
  return broker.toolSpecs
}

/** The account that an operator named for the workers. */
export function accountOf({ uid, gid }: { readonly uid?: number; readonly gid?: number }) {
  return { ...(uid !== undefined && { uid }), ...(gid !== undefined && { gid }) }
}

/**
 * Checks that the driver that was chosen can be made.
 * @throws SandboxPluginError `options_invalid`
 */
export function checkDriverChoice(
  { driver = 'docker', image }: Pick<SandboxRuntimeOptions, 'driver' | 'image'>,
  guest: 'sealed' | 'pi' = 'sealed',
): void {
  const [build, tag] =
    guest === 'pi'
      ? ['sandbox-worker build --pi', 'sandbox-pi-worker:latest']
      : ['sandbox-worker build', 'sandbox-worker:latest']
  if (typeof driver === 'function' || driver === 'process') return
  if (driver !== 'docker') {
    throw new SandboxPluginError('options_invalid', 'driver: must be "docker", "process" or a function.')
  }
  if (process.platform !== 'linux') {
    throw new SandboxPluginError(
      'options_invalid',
      'driver: the docker driver needs Linux. On other systems run the host in a Linux machine, or choose "process", which is no sandbox.',
    )
  }
  if (typeof image === 'string' && image.trim() !== '') return
  throw new SandboxPluginError(
    'options_invalid',
    `image: must name the worker image. Build it with "${build}" and give its tag, "${tag}".`,
  )
}

function makeDriver(options: SandboxRuntimeOptions, { installId, user, runRoot }: WorkspaceLayout): Driver {
  const { driver } = options
  if (typeof driver === 'function') return driver({ installId, user, runRoot })
  if (driver === 'process') return createProcessDriver({ runRoot, user, scrub: redact })
  return dockerDriver(options, { installId, user })
}

/** The docker driver, for either kind of guest. */
export function dockerDriver(
  options: Pick<SandboxRuntimeOptions, 'image' | 'engineSocket' | 'limits'> & { readonly guest?: 'pi' },
  { installId, user }: Pick<DriverInstall, 'installId' | 'user'>,
): Driver {
  const { image, engineSocket, limits, guest } = options
  return createDockerDriver({
    image: image as string,
    installId,
    user,
    ...(guest !== undefined && { guest }),
    ...(engineSocket !== undefined && { engineSocket }),
    ...(limits !== undefined && { limits }),
    scrub: redact,
  })
}

/** Tells several listeners of each event: the runtime's own first. The fault of one is not another's. */
export function tellAll<Event>(
  ...listeners: readonly (((event: Event) => void) | undefined)[]
): (event: Event) => void {
  return (event) => {
    for (const listener of listeners) quietly(() => listener?.(event))
  }
}
