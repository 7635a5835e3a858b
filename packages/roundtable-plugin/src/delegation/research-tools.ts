import type { HostTool, HostToolContext } from '@sandbox/broker'
import { SafeFetchError, type safeFetch } from '../safe-fetch/index.ts'
import { ResearchError } from './research-error.ts'
import type { ResearchOptions } from './research-options.ts'
import type { SdkTool } from './research-sdk.ts'

const QUERY_CHARS = 4_000
const URL_CHARS = 8_000
/** What the model is told of one answer. */
const ANSWER_CHARS = 40_000

/** The tools of a research: the host's, or the two of our own (RW-02, RW-04). */
export function researchTools(
  options: ResearchOptions,
  fetch: typeof safeFetch,
  context: Omit<HostToolContext, 'signal'>,
  over: AbortSignal,
): readonly SdkTool[] {
  const { tools = [] } = options
  return (tools.length > 0 ? tools : ownTools(options, fetch)).map((tool) => ({
    name: tool.name,
    label: tool.name,
    description: tool.description,
    parameters: tool.parameters,
    async execute(_id, input, signal = over) {
      const { channel, speaker } = context
      const own = { channel, speaker: Object.freeze({ ...speaker }), signal }
      return { content: [{ type: 'text', text: cut(await answerOf(() => tool.execute(input, own))) }] }
    },
  }))
}

/** What the host's own code throws is never told to the model: it may hold paths, addresses and keys of the host. */
async function answerOf(execute: () => string | Promise<string>): Promise<string> {
  try {
    const text: unknown = await execute()
    if (typeof text === 'string') return text
  } catch (cause) {
    if (cause instanceof SafeFetchError || cause instanceof ResearchError) throw cause
    throw new ResearchError('The tool failed.', { cause })
  }
  throw new ResearchError('The tool failed.')
}

function ownTools(options: ResearchOptions, fetch: typeof safeFetch): readonly HostTool[] {
  return [
    {
      name: 'web_search',
      description: 'Searches the web. Answers with what was found and where.',
      parameters: textInput('query', QUERY_CHARS),
      execute: async (input, context) =>
        (await options.search?.(checked('query', input.query, QUERY_CHARS), context)) ?? '',
    },
    {
      name: 'fetch_content',
      description: 'Fetches a public address and answers with its text.',
      parameters: textInput('url', URL_CHARS),
      execute: (input, context) => fetched(options, fetch, checked('url', input.url, URL_CHARS), context),
    },
  ]
}

/** RW-03: what is extracted from is what `safeFetch` got; the address is not asked again. */
async function fetched(
  { fetchContent, extractFetched }: ResearchOptions,
  fetch: typeof safeFetch,
  url: string,
  context: HostToolContext,
): Promise<string> {
  if (fetchContent !== undefined) return await fetchContent(url, context)
  const answer = await fetch(url, { signal: context.signal })
  const page = {
    url,
    status: answer.status,
    contentType: answer.headers.get('content-type') ?? '',
    bytes: new Uint8Array(await answer.arrayBuffer()),
  }
  return (await extractFetched?.(page, context)) ?? ''
}

function textInput(name: string, maxLength: number): Record<string, unknown> {
  const properties = { [name]: { type: 'string', minLength: 1, maxLength } }
  return { type: 'object', properties, required: [name], additionalProperties: false }
}

/** The agent checks the schema too; its words for it are long. */
function checked(name: string, value: unknown, most: number): string {
  if (typeof value === 'string' && value.length >= 1 && value.length <= most) return value
  throw new ResearchError(`${name} has to be a text of 1 to ${most} characters.`)
}

function cut(text: string): string {
  return text.length <= ANSWER_CHARS ? text : `${text.slice(0, ANSWER_CHARS).toWellFormed()}\n[cut]`
}
