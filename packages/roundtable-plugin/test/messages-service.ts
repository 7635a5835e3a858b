import { randomUUID } from 'node:crypto'
import { type ScriptedUpstream, type SeenRequest, scriptedUpstream } from '@sandbox/testing'

/** What the model does with one call. */
export type ModelAnswer =
  | { readonly text: string }
  | { readonly tool: string; readonly input: object }
  | { readonly status: number; readonly type: string }
  | 'hang'

/** One call of the agent, as the service understood it. */
export interface ModelCall {
  readonly authorization: string
  /** The text of the last message of a person. */
  readonly asked: string
  /** What a tool answered since; absent on the first call of a turn. */
  readonly toolResult?: string
  readonly body: {
    readonly model: string
    readonly stream?: boolean
    readonly system?: unknown
    readonly messages: readonly Message[]
  }
}

interface Message {
  readonly role: string
  readonly content:
    | string
    | readonly { readonly type: string; readonly text?: string; readonly content?: unknown }[]
}

/** A Messages service on loopback that answers as a script says, in events. */
export interface MessagesService extends ScriptedUpstream {
  readonly calls: ModelCall[]
  answer: (call: ModelCall) => ModelAnswer
  /** Waited for before a streamed text ends. */
  beforeEnd: Promise<void> | undefined
}

export async function messagesService(answer: MessagesService['answer']): Promise<MessagesService> {
  const calls: ModelCall[] = []
  const upstream = await scriptedUpstream(async (request, response) => {
    const call = readCall(request)
    calls.push(call)
    const said = service.answer(call)
    if (said === 'hang') return undefined
    if ('status' in said) {
      response.writeHead(said.status, { 'content-type': 'application/json' })
      response.end(JSON.stringify({ type: 'error', error: { type: said.type, message: said.type } }))
      return undefined
    }
    response.writeHead(200, { 'content-type': 'text/event-stream' })
    const all = events(said)
    for (const event of all.slice(0, -2)) response.write(event)
    if ('text' in said) await service.beforeEnd
    for (const event of all.slice(-2)) response.write(event)
    response.end()
    return undefined
  })
  const service = Object.assign(upstream, { calls, answer, beforeEnd: undefined })
  return service
}

function readCall({ headers, body }: SeenRequest): ModelCall {
  const parsed = JSON.parse(body) as ModelCall['body']
  const asked = parsed.messages.findLastIndex((one) => one.role === 'user' && textOf(one) !== '')
  const result = parsed.messages
    .slice(asked + 1)
    .flatMap(resultsOf)
    .at(-1)
  return {
    authorization: headers.authorization ?? '',
    asked: textOf(parsed.messages[asked]),
    body: parsed,
    ...(result === undefined ? {} : { toolResult: result }),
  }
}

function textOf(message: Message | undefined): string {
  if (message === undefined) return ''
  if (typeof message.content === 'string') return message.content
  return message.content.flatMap(({ type, text }) => (type === 'text' && text ? [text] : [])).join('')
}

function resultsOf({ content }: Message): string[] {
  if (typeof content === 'string') return []
  return content.flatMap((part) => (part.type === 'tool_result' ? [JSON.stringify(part.content)] : []))
}

/** An answer as the events of a stream. */
export function events(said: Exclude<ModelAnswer, 'hang' | { status: number }>): string[] {
  const tool = 'tool' in said
  const event = (data: { type: string } & Record<string, unknown>) =>
    `event: ${data.type}\ndata: ${JSON.stringify(data)}\n\n`
  const usage = { input_tokens: 7, output_tokens: 1 }
  const message = { id: 'msg_1', type: 'message', role: 'assistant', model: 'm', content: [], usage }
  const block = tool
    ? { type: 'tool_use', id: `toolu_${randomUUID()}`, name: said.tool, input: {} }
    : { type: 'text', text: '' }
  const whole = tool ? JSON.stringify(said.input) : said.text
  const deltas = (whole.match(/.{1,5}/gsu) ?? []).map((piece) =>
    tool ? { type: 'input_json_delta', partial_json: piece } : { type: 'text_delta', text: piece },
  )
  return [
    event({ type: 'message_start', message: { ...message, stop_reason: null, stop_sequence: null } }),
    event({ type: 'content_block_start', index: 0, content_block: block }),
    ...deltas.map((delta) => event({ type: 'content_block_delta', index: 0, delta })),
    event({ type: 'content_block_stop', index: 0 }),
    event({
      type: 'message_delta',
      delta: { stop_reason: tool ? 'tool_use' : 'end_turn', stop_sequence: null },
      usage: { output_tokens: 5 },
    }),
    event({ type: 'message_stop' }),
  ]
}
