import { checkBrokerOptions, type HostTool, type HostToolContext } from '@sandbox/broker'
import type { CredentialGetter } from '@sandbox/credential-scope'
import { SandboxPluginError } from '../errors.ts'
import type { DelegationScope } from './delegator-options.ts'
import type { ResearchSdk } from './research-sdk.ts'

/** A page as it was fetched. */
export interface FetchedPage {
  /** As it was asked for. */
  readonly url: string
  readonly status: number
  /** `content-type`, empty when there is none. */
  readonly contentType: string
  /** Decoded; 5 MiB at most. */
  readonly bytes: Uint8Array
}

/** What a {@link SandboxResearchWorker} is made from: `tools`, or `search` with `fetchContent` or `extractFetched`. */
export interface ResearchOptions {
  /** Loads the Pi SDK, once: `() => import('@earendil-works/pi-coding-agent')`. */
  readonly sdk: () => Promise<ResearchSdk>
  /** A model that the SDK knows. */
  readonly model: string
  /** Its provider in the SDK. Omitted = `anthropic`. */
  readonly provider?: string
  /** Asked before every model call, for the channel and the author of the job; no answer means that the call fails. */
  readonly apiKey: CredentialGetter
  /** Base URL of the model service. Omitted = the provider's own. */
  readonly modelUrl?: string
  /** `http:` for loopback hosts. */
  readonly allowHttp?: boolean
  /** Replaces the prompt. */
  readonly prompt?: string
  /** Answers a search with text for the model. */
  readonly search?: (query: string, context: HostToolContext) => Promise<string>
  /** Answers an address with text for the model, in place of {@link extractFetched} and the fetch before it. */
  readonly fetchContent?: (url: string, context: HostToolContext) => Promise<string>
  /** Makes text for the model of what `safeFetch` got. It must not fetch anything itself. */
  readonly extractFetched?: (page: FetchedPage, context: HostToolContext) => string | Promise<string>
  /** Tools of the host in place of both: the research has these and no others. */
  readonly tools?: readonly HostTool[]
  /** Wraps a whole research, for tools that need something around them, such as a browser. */
  readonly scope?: <T>(run: () => Promise<T>, job: DelegationScope) => Promise<T>
  /** Words a research that was ended by its signal. A `ScopedSandboxDelegator` has words of its own for that. */
  readonly aborted?: (reason: unknown) => string
}

const FUNCTIONS = ['search', 'fetchContent', 'extractFetched', 'scope', 'aborted'] as const
/** The agent's own tools: a host's tool of such a name could switch one of them on. */
const AGENT_TOOLS = ['read', 'bash', 'powershell', 'edit', 'write', 'grep', 'find', 'ls']

/**
 * Checks the options, but for what only the SDK knows.
 * @throws SandboxPluginError `options_invalid`, BrokerError `options_invalid`, each naming the option
 */
export function checkResearchOptions(options: ResearchOptions): void {
  if (typeof options.sdk !== 'function') throw invalid('sdk', 'must be a function that loads the Pi SDK')
  for (const name of FUNCTIONS) {
    if (options[name] !== undefined && typeof options[name] !== 'function') {
      throw invalid(name, 'must be a function')
    }
  }
  const { tools, model, apiKey, allowHttp = false, modelUrl = 'https://provider.invalid' } = options
  checkBrokerOptions({ model, apiKey, modelUrl, allowHttp, ...(tools && { tools }) })
  checkTools(options)
}

function checkTools({ tools = [], search, fetchContent, extractFetched }: ResearchOptions): void {
  const own = tools.find(({ name }) => AGENT_TOOLS.includes(name))
  if (own !== undefined) throw invalid('tools', `"${own.name}" is the name of a tool of the agent`)
  if (tools.length > 0 || (search && (fetchContent ?? extractFetched))) return
  throw invalid('tools', 'must be given, or "search" with "fetchContent" or "extractFetched"')
}

function invalid(option: string, problem: string): SandboxPluginError {
  return new SandboxPluginError('options_invalid', `${option}: ${problem}.`)
}
