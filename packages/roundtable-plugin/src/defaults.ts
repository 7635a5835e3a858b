import { type BrokerOptions, type CallEvent, openSealedBroker } from '@sandbox/broker'
import { redact } from '@sandbox/credential-scope'
import { createDockerDriver, createProcessDriver, createWarmPool, type Driver } from '@sandbox/docker-worker'
import { PiSandboxBroker } from '@sandbox/pi-broker'
import { SandboxPluginError } from './errors.ts'
import { guardedLogger } from './guarded-logger.ts'
import type { ChannelKey } from './host-contract.ts'
import type { DriverInstall, SandboxRuntimeOptions } from './options.ts'
import type { PiSandboxRuntimeOptions } from './pi-options.ts'
import { type EarlierContainers, mindEarlierContainers } from './runtime/earlier-containers.ts'
import { checkOptionNames } from './runtime/option-names.ts'
import { type PiBrokers, piBrokers } from './runtime/pi-brokers.ts'
import { openPiLayout, type PiLayout } from './runtime/pi-layout.ts'
import { checkPiOptionNames } from './runtime/pi-option-names.ts'
import { resolvePiPolicy } from './runtime/pi-policy.ts'
import type { PiRuntimePorts } from './runtime/pi-ports.ts'
import { PiRuntime, type PiStatus, type PiTurnReply } from './runtime/pi-runtime.ts'
import type { PiTurnRequest } from './runtime/pi-turn-input.ts'
import { checkLargestTurn, resolveTurnPolicy } from './runtime/runtime-options.ts'
import { SealedRuntime, type SealedRuntimePorts, type TurnReply } from './runtime/sealed-runtime.ts'
import { openWorkspaceLayout, type WorkspaceLayout } from './runtime/workspace-layout.ts'

/**
 * Answers messages from sealed workers: a fresh one for each turn, with no network and no key. Everything that can
 * be checked without an engine is checked by the constructor; the engine and the image by `start`.
 */
export class SandboxRuntime implements AsyncDisposable {
  readonly #runtime: SealedRuntime
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
      this.#runtime = new SealedRuntime(portsOf(options, { layout, driver, broker }), policy)
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
   * Answers one message. Resolves with an answer or with words that say why there is none. Rejects only with
   * {@link SandboxPluginError} `closed`, `busy`, `input_invalid`, and `cleanup_failed` when there was an answer
   * but its worker could not be removed.
   */
  runTurn(
    channel: ChannelKey,
    speaker: { readonly id: string; readonly name: string },
    text: string,
  ): Promise<TurnReply> {
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

  /** Ends the channel's running turn, and removes the waiting worker. True when there was a turn without an answer yet. */
  stop(channel: ChannelKey): boolean {
    return this.#runtime.stop(channel)
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

/**
 * Keeps a container per channel with the real Pi agent in it, and answers messages from there; each model call is paid
 * for by whoever speaks in its turn. Everything that can be checked without an engine is checked by the constructor;
 * the engine and the image by `check`.
 */
export class PiSandboxRuntime implements AsyncDisposable {
  readonly #runtime: PiRuntime
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
      driver = makePiDriver(options, layout)
      this.#runtime = new PiRuntime(piPorts(options, { layout, driver, brokers }), policy)
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

  /** What the channel's worker is doing. Answers at once. */
  status(channel: ChannelKey): PiStatus {
    return this.#runtime.status(channel)
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

function earlierOf(
  { engineSocket, logger }: SandboxRuntimeOptions,
  { runRoot, installId, user }: WorkspaceLayout,
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
  { layout, driver, broker }: { layout: WorkspaceLayout; driver: Driver; broker: BrokerOptions },
): SealedRuntimePorts {
  const { onTurn, logger, warm = {} } = options
  return {
    layout,
    driver,
    openBroker: (onCall) => openSealedBroker({ ...broker, onCall: tellBoth(onCall, options.onCall) }),
    openPool: (parts) => createWarmPool({ driver, ...parts, limits: warm === false ? { workers: 0 } : warm }),
    scrub: redact,
    ...(onTurn && { onTurn }),
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

function accountOf({ uid, gid }: { readonly uid?: number; readonly gid?: number }) {
  return { ...(uid !== undefined && { uid }), ...(gid !== undefined && { gid }) }
}

function piPorts(
  options: PiSandboxRuntimeOptions,
  { layout, driver, brokers }: { layout: PiLayout; driver: Driver; brokers: PiBrokers },
): PiRuntimePorts {
  const { judge, memory, onTurn, logger } = options
  return {
    layout,
    driver,
    openBroker: (profile, onCall) =>
      new PiSandboxBroker({ ...brokers(profile), onCall: tellBoth(onCall, options.onCall) }),
    scrub: redact,
    ...(judge && { judge }),
    ...(memory && { memory }),
    ...(onTurn && { onTurn }),
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

function checkDriverChoice(
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

function dockerDriver(
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

function tellBoth(
  first: (event: CallEvent) => void,
  second: ((event: CallEvent) => void) | undefined,
): (event: CallEvent) => void {
  return (event) => {
    first(event)
    second?.(event)
  }
}
