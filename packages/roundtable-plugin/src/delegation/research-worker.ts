import { setTimeout as pause } from 'node:timers/promises'
import { createSecretMatcher, redact, type Secret } from '@sandbox/credential-scope'
import { untilAborted } from '../runtime/turn-ending.ts'
import { safeFetch } from '../safe-fetch/index.ts'
import type { DelegationScope } from './delegator-options.ts'
import { ResearchError } from './research-error.ts'
import { checkResearchOptions, type ResearchOptions } from './research-options.ts'
import type { ResearchSdk, SdkSession } from './research-sdk.ts'
import { openResearch } from './research-session.ts'
import { researchTools } from './research-tools.ts'

/** The longest reason that a delegator passes on; an answer of a service may be of any length. */
const REASON_CHARS = 10_000

/** How long an agent that was called off may take to come to rest. */
const REST_MS = 2_000

/**
 * Researches a task on the web with the Pi agent and reports: the `run` of a `ScopedSandboxDelegator`. The agent runs in
 * this process, not in a container: it has no tool that reaches the host, and what it reads is public.
 */
export class SandboxResearchWorker {
  readonly #options: ResearchOptions
  readonly #fetch: typeof safeFetch
  #sdk: Promise<ResearchSdk> | undefined

  /**
   * `fetch` is how addresses are fetched; a test may bring one in which a local server counts as public.
   * @throws SandboxPluginError `options_invalid`, BrokerError `options_invalid`, each naming the option
   */
  constructor(options: ResearchOptions, fetch: typeof safeFetch = safeFetch) {
    checkResearchOptions(options)
    this.#options = options
    this.#fetch = fetch
  }

  /**
   * Runs one research and returns its report, whole: whoever delivers it cuts it. Ends when the signal fires, also when
   * it did before. May be passed on as it is: `run: worker.run`.
   * @throws ResearchError in words for the chat; SandboxPluginError when the SDK does not know the model
   */
  readonly run = async (task: string, job: DelegationScope): Promise<string> => {
    const { scope = (run) => run() } = this.#options
    return await scope(() => this.#research(task, job), job)
  }

  async #research(task: string, { channel, author, signal }: DelegationScope): Promise<string> {
    let session: SdkSession | undefined
    let opening: Promise<SdkSession> | undefined
    const secrets = new Map<string, Secret>()
    let work = Promise.resolve()
    try {
      signal.throwIfAborted()
      const speaker = { id: author.id, name: author.name }
      const tools = researchTools(this.#options, this.#fetch, { channel, speaker }, signal)
      const payer = { scope: { channel, speaker }, secrets }
      opening = this.#load().then((sdk) => openResearch(sdk, this.#options, payer, tools))
      session = await untilAborted(opening, signal)
      // W-90: the signal may have fired while the agent was loaded.
      signal.throwIfAborted()
      work = session.prompt(task, { expandPromptTemplates: false })
      await untilAborted(work, signal)
      return reportOf(session.messages, [...secrets.values()])
    } catch (error) {
      if (!signal.aborted) throw error
      const rest = Promise.all([session?.abort(), work]).catch(() => {})
      await Promise.race([rest, pause(REST_MS, undefined, { ref: false })])
      const { aborted = () => 'The research was stopped before it was done.' } = this.#options
      throw new ResearchError(aborted(signal.reason), { cause: error })
    } finally {
      // One that opens after its research was called off, too.
      opening?.then((opened) => opened.dispose()).catch(() => {})
    }
  }

  #load(): Promise<ResearchSdk> {
    this.#sdk ??= this.#options.sdk().catch((error: unknown) => {
      this.#sdk = undefined
      throw error
    })
    return this.#sdk
  }
}

interface AssistantMessage {
  readonly role: 'assistant'
  readonly content: readonly { readonly type: string; readonly text?: string }[]
  readonly stopReason?: string
  readonly errorMessage?: string
}

/** RW-05: the text of the agent's last message. A service that says the credential again is not passed on. */
function reportOf(messages: readonly unknown[], secrets: readonly Secret[]): string {
  const last = messages.findLast(
    (one): one is AssistantMessage => (one as Partial<AssistantMessage> | null)?.role === 'assistant',
  )
  if (last === undefined || last.stopReason === 'error' || last.stopReason === 'aborted') {
    throw new ResearchError(
      redact(last?.errorMessage ?? 'The model gave no answer.', secrets, { maxChars: REASON_CHARS }),
    )
  }
  const report = last.content.flatMap(({ type, text }) => (type === 'text' && text ? [text] : [])).join('')
  if (report.trim() === '') throw new ResearchError('The model gave no report.')
  if (createSecretMatcher(secrets).matches(report)) throw new ResearchError('The report held a credential.')
  return report.trim()
}
