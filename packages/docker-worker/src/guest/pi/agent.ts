import {
  type AgentSession,
  createAgentSession,
  DefaultResourceLoader,
  type ExtensionFactory,
  ModelRuntime,
  SettingsManager,
  type ToolDefinition,
} from '@earendil-works/pi-coding-agent'
import { PI_PLACEHOLDER, type PiMcpSpec, type PiToolSpec } from '@sandbox/protocol'
import { Compactions } from './compaction.ts'
import type { LoadedContent } from './content.ts'
import { logEvent } from './log.ts'
import { systemPrompt } from './prompts.ts'
import { openConversation } from './session-file.ts'
import { unreadClaim } from './skills.ts'
import { workerTools } from './tools.ts'
import { TurnSlot } from './turn-slot.ts'

/** What a session is made for. Two equal plans make equal sessions. */
export interface SessionPlan {
  /** The model that the host pins every call to. */
  readonly model: string
  readonly profile: string
  readonly mcp: readonly PiMcpSpec[]
}

/** A session of the agent that waits for its one turn. */
export interface WaitingSession {
  readonly session: AgentSession
  readonly slot: TurnSlot
  readonly compactions: Compactions
}

/** A directory that is not there and cannot be made: the agent's home, and where it looks for what it might find. */
const NO_HOME = '/dev/null/pi'
/** Leads nowhere. A call that goes past the turn's own address is refused by the kernel. */
const NO_ADDRESS = 'http://127.0.0.1:9'
const PROVIDER = 'anthropic'
/** Tools of the agent that reach files: with one of them, the model is told where reply files go. */
const FILE_TOOLS = ['bash', 'write', 'edit']

/** What the agent is made from. */
export interface PiAgentOptions {
  readonly workspace: string
  readonly hostTools: readonly PiToolSpec[]
  /** Name of the host's compactor; absent when it has none. */
  readonly compactor?: string
  content(profile: string): Promise<LoadedContent>
}

/**
 * Makes sessions of the real Pi agent. Nothing is discovered: no settings, extensions, skills, prompts, themes or
 * context files from the workspace or a home; what there is comes from the operator's content and the host. The
 * conversation is in the workspace as JSONL, and is continued by each session.
 */
export class PiAgent {
  readonly #options: PiAgentOptions
  readonly #skillsRead = new Set<string>()
  #runtime: Promise<ModelRuntime> | undefined

  constructor(options: PiAgentOptions) {
    this.#options = options
    // Read by the agent when it is made. None of them is anybody's secret.
    Object.assign(process.env, { PI_OFFLINE: '1', PI_TELEMETRY: '0', PI_SKIP_VERSION_CHECK: '1' })
  }

  /** Loads what every session needs. Called early, it saves the first turn that time. */
  async warm(): Promise<void> {
    this.#runtime ??= makeRuntime()
    await this.#runtime
  }

  /** Makes a session for one turn that continues the conversation. */
  async open(plan: SessionPlan): Promise<WaitingSession> {
    this.#runtime ??= makeRuntime()
    const [modelRuntime, content] = await Promise.all([this.#runtime, this.#options.content(plan.profile)])
    const { workspace, hostTools } = this.#options
    const slot = new TurnSlot()
    const customTools = workerTools({
      workspace,
      content,
      hostTools,
      mcp: plan.mcp,
      slot,
      skillsRead: this.#skillsRead,
    })
    const model = modelLike(modelRuntime, plan.model, content.modelLike)
    const conversation = openConversation(workspace)
    const { contextWindow } = model
    const compactions = new Compactions({
      slot,
      conversation,
      contextWindow,
      engine: this.#options.compactor,
    })
    const settingsManager = quietSettings(compactions.reserveTokens())
    const resourceLoader = new DefaultResourceLoader({
      cwd: NO_HOME,
      agentDir: NO_HOME,
      settingsManager,
      noExtensions: true,
      noSkills: true,
      noPromptTemplates: true,
      noThemes: true,
      noContextFiles: true,
      extensionFactories: [
        this.#worker(content, slot),
        compactions.extension,
        ...content.extensions.map((one) => one as ExtensionFactory),
      ],
    })
    await resourceLoader.reload()
    const { session } = await createAgentSession({
      cwd: workspace,
      agentDir: NO_HOME,
      model,
      modelRuntime,
      settingsManager,
      resourceLoader,
      sessionManager: conversation,
      customTools: [...customTools] as ToolDefinition[],
      tools: [...customTools.map(({ name }) => name), ...content.toolNames],
    })
    await session.bindExtensions({
      onError: ({ event, error }) =>
        logEvent('extension failed', { on: event, error: String(error).slice(0, 500) }),
    })
    callThroughSlot(session, slot)
    compactions.watch(session)
    return { session, slot, compactions }
  }

  /** The worker's own part in a session: the prompt of the turn, and tools that wait for their skill. */
  #worker(content: LoadedContent, slot: TurnSlot): ExtensionFactory {
    const files = content.toolNames.some((name) => FILE_TOOLS.includes(name))
    return (pi) => {
      pi.on('before_agent_start', () => {
        const { turn, outbox } = slot.get()
        return { systemPrompt: systemPrompt(turn, content, { outbox: outbox.path, files }) }
      })
      pi.on('tool_call', ({ toolName }) => {
        const skill = unreadClaim(content.skills, toolName, this.#skillsRead)
        if (skill === undefined) return undefined
        return { block: true, reason: `First read the skill ${skill} with read_skill.` }
      })
    }
  }
}

type Credentials = NonNullable<NonNullable<Parameters<typeof ModelRuntime.create>[0]>['credentials']>

/** Keeps nothing: there is no credential in a worker, and no file that one could be read from. */
const NO_CREDENTIALS: Credentials = {
  read: async () => undefined,
  list: async () => [],
  modify: async (_provider, change) => change(undefined),
  delete: async () => {},
}

async function makeRuntime(): Promise<ModelRuntime> {
  const runtime = await ModelRuntime.create({
    credentials: NO_CREDENTIALS,
    modelsPath: null,
    refreshOnCreate: false,
  })
  await runtime.setRuntimeApiKey(PROVIDER, PI_PLACEHOLDER)
  return runtime
}

/** Nothing is kept warm between turns, resized, or written anywhere. */
function quietSettings(reserveTokens: number): SettingsManager {
  return SettingsManager.inMemory({
    compaction: { reserveTokens },
    cacheWarming: 'off',
    images: { autoResize: false },
    enableInstallTelemetry: false,
    enableAnalytics: false,
    quietStartup: true,
    // The turn's deadline is the limit: a model may think for a long time in silence.
    httpIdleTimeoutMs: 0,
  })
}

type ChatModel = NonNullable<ReturnType<ModelRuntime['getModel']>>

/** The facts of a model that the agent knows; for others those of the one whose name is most like it. */
function modelLike(runtime: ModelRuntime, id: string, like: string | undefined): ChatModel {
  const known =
    runtime.getModel(PROVIDER, id) ?? (like === undefined ? undefined : runtime.getModel(PROVIDER, like))
  const all = [...runtime.getModels(PROVIDER)]
  const nearest = known ?? all.sort((a, b) => commonLength(b.id, id) - commonLength(a.id, id))[0]
  if (nearest === undefined) throw new TypeError('the agent knows no model')
  // The broker refuses tools that change in the middle of a conversation: each request lists them all.
  const compat = { ...nearest.compat, supportsMidConvoToolChanges: false }
  return { ...nearest, id, name: id, baseUrl: NO_ADDRESS, compat }
}

function commonLength(a: string, b: string): number {
  let length = 0
  while (length < a.length && a[length] === b[length]) length += 1
  return length
}

/** Every model call of the session, its compactions included, goes to the address of the turn at hand. */
function callThroughSlot(session: AgentSession, slot: TurnSlot): void {
  const { agent } = session
  const call = agent.streamFunction
  agent.streamFunction = (model, context, options) =>
    call({ ...model, baseUrl: slot.get().modelUrl }, context, options)
}
