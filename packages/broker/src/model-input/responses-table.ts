import type { ClosedObject, RequestTable, ValueRule } from '../engine/body-table/request-table.ts'
import { schemaRule } from '../engine/body-table/schema-table.ts'
import {
  amount,
  anyText,
  callId,
  flag,
  hosts,
  inlineBytes,
  inlineFile,
  inlineImage,
  listOf,
  MANY_MESSAGES,
  MANY_PARTS,
  MANY_TOOLS,
  noUrl,
  objectOf,
  orNull,
  owned,
  text,
  toolName,
  word,
} from '../engine/body-table/table-parts.ts'

/** How an operator's endpoint wants Responses. */
export interface ResponsesTableOptions {
  /**
   * Whether guests may have their answers stored on the account, which is the provider's default. Default false:
   * `store` is always `false`.
   */
  readonly allowStore?: boolean
}

/** Ids of replayed items: the provider could look a foreign one up, and needs none. */
const itemId: ValueRule = { string: { maxBytes: 256, owned: true }, null: true, otherwise: 'drop' }

const citation = objectOf({ file_id: owned, container_id: owned }, { others: 'keep' })

const part = objectOf(
  {
    type: text(32),
    text: anyText,
    refusal: anyText,
    image_url: orNull(inlineImage),
    detail: word,
    file_id: owned,
    file_data: inlineFile,
    file_url: noUrl,
    filename: orNull(text(1024)),
    input_audio: objectOf({ data: inlineBytes, format: word }, { required: ['data'] }),
    annotations: orNull(listOf(citation, MANY_PARTS)),
    logprobs: orNull(listOf('keep', 1_000_000)),
  },
  {
    variants: {
      by: 'type',
      of: {
        input_text: { required: ['text'] },
        input_image: { required: [], optional: ['image_url', 'file_id', 'detail'] },
        input_file: {
          required: [],
          optional: ['file_id', 'file_data', 'file_url', 'filename', 'detail'],
        },
        input_audio: { required: ['input_audio'] },
        output_text: { required: ['text'], optional: ['annotations', 'logprobs'] },
        summary_text: { required: ['text'] },
        reasoning_text: { required: ['text'] },
        refusal: { required: ['refusal'] },
      },
    },
  },
)

const parts = listOf(part, MANY_PARTS)
const partsOrText: ValueRule = { ...parts, ...anyText }
const called = ['id', 'status']

const item = objectOf(
  {
    type: text(32),
    role: { string: { oneOf: ['user', 'assistant', 'system', 'developer'] } },
    content: orNull(partsOrText),
    id: itemId,
    status: word,
    phase: word,
    call_id: callId,
    name: toolName,
    arguments: anyText,
    input: anyText,
    output: partsOrText,
    summary: parts,
    encrypted_content: orNull(anyText),
  },
  {
    variants: {
      by: 'type',
      missing: 'message',
      of: {
        message: { required: ['role', 'content'], optional: ['phase', ...called] },
        function_call: { required: ['call_id', 'name', 'arguments'], optional: called },
        function_call_output: { required: ['call_id', 'output'], optional: called },
        custom_tool_call: { required: ['call_id', 'name', 'input'], optional: called },
        custom_tool_call_output: { required: ['call_id', 'output'], optional: called },
        reasoning: { required: ['summary'], optional: ['content', 'encrypted_content', ...called] },
        compaction: { required: ['encrypted_content'], optional: called },
        item_reference: { required: [], optional: ['id'] },
      },
    },
    close: checkReference,
  },
)

const schemaField: ValueRule = { object: schemaRule, null: true }

const toolFormat = objectOf(
  { type: text(32), definition: anyText, syntax: word },
  {
    variants: {
      by: 'type',
      of: { text: { required: [] }, grammar: { required: ['definition', 'syntax'] } },
    },
  },
)

const tool = objectOf(
  {
    type: text(64),
    name: toolName,
    description: orNull(anyText),
    parameters: schemaField,
    strict: flag,
    format: orNull(toolFormat),
  },
  {
    variants: {
      by: 'type',
      of: {
        function: { required: ['name'], optional: ['description', 'parameters', 'strict'] },
        custom: { required: ['name'], optional: ['description', 'format'] },
      },
    },
  },
)

const chosen = { function: { required: ['name'] }, custom: { required: ['name'] } }
const oneTool = objectOf({ type: text(32), name: toolName }, { variants: { by: 'type', of: chosen } })

const toolChoice: ValueRule = {
  string: { oneOf: ['none', 'auto', 'required'] },
  null: true,
  ...objectOf(
    { type: text(32), name: toolName, mode: word, tools: listOf(oneTool, MANY_TOOLS) },
    { variants: { by: 'type', of: { ...chosen, allowed_tools: { required: ['mode', 'tools'] } } } },
  ),
}

const textFormat = objectOf(
  { type: text(32), name: toolName, description: orNull(anyText), schema: schemaField, strict: flag },
  {
    variants: {
      by: 'type',
      of: {
        text: { required: [] },
        json_object: { required: [] },
        json_schema: { required: ['name', 'schema'], optional: ['description', 'strict'] },
      },
    },
  },
)

const conversation: ValueRule = { ...owned, ...objectOf({ id: owned }, { required: ['id'] }) }

/**
 * The table of OpenAI Responses. State on the account (`previous_response_id`, `conversation`, item references,
 * file ids) passes when the same scope created it, else the request is refused; `prompt` and `background` are
 * refused. `model`, `max_output_tokens` and `store` are the host's; what costs more and unknown fields are dropped;
 * tools other than `function` and `custom` and remote files refuse the request.
 */
export function responsesTable(options: ResponsesTableOptions = {}): RequestTable {
  const body = objectOf(
    {
      model: { set: 'model' },
      input: { ...anyText, ...listOf(item, MANY_MESSAGES) },
      instructions: orNull(anyText),
      max_output_tokens: { cap: 'maxOutputTokens' },
      stream: flag,
      stream_options: orNull(objectOf({ include_obfuscation: flag })),
      tools: orNull(listOf(tool, MANY_TOOLS)),
      tool_choice: toolChoice,
      parallel_tool_calls: flag,
      include: orNull(listOf({ string: { pattern: /^[a-z_.]{1,64}$/ } }, 16)),
      reasoning: orNull(objectOf({ effort: word, summary: word, generate_summary: word })),
      text: orNull(objectOf({ format: orNull(textFormat), verbosity: word })),
      temperature: amount,
      top_p: amount,
      top_logprobs: amount,
      truncation: word,
      prompt_cache_key: orNull(text(1024)),
      previous_response_id: owned,
      conversation,
      prompt: { null: true, problem: 'belongs to the account' },
      background: { boolean: [false], null: true, problem: 'would outlive the turn' },
      store: options.allowStore === true ? flag : 'keep',
      context_management: hosts,
      metadata: hosts,
      moderation: hosts,
      prompt_cache_options: hosts,
      prompt_cache_retention: hosts,
      safety_identifier: hosts,
      service_tier: hosts,
      user: hosts,
    },
    { required: ['input'], close: (object) => settleBody(object, options.allowStore === true) },
  )
  return { family: 'openai-responses', body: body.object }
}

function settleBody(object: ClosedObject, allowStore: boolean): void {
  const { facts, host } = object
  const model = object.scalar('model')
  if (typeof model === 'string') facts.guestModel = model.slice(0, 128)
  if (!object.has('model')) object.set('model', host.model)
  const limit = object.scalar('max_output_tokens')
  const isWithin = Number.isSafeInteger(limit) && Number(limit) >= 1
  facts.outputTokens = isWithin ? Math.min(Number(limit), host.maxOutputTokens) : host.maxOutputTokens
  if (!object.has('max_output_tokens')) object.set('max_output_tokens', host.maxOutputTokens)
  if (!allowStore) object.set('store', false)
  facts.stream = object.scalar('stream') === true
  // Usage is part of the last event of every stream.
  facts.usageAsked = true
  if (!facts.stream) object.drop('stream_options')
}

/** A reference whose id was dropped, since another scope's thing has it, must not travel. */
function checkReference(object: ClosedObject): void {
  if (object.scalar('type') === 'item_reference' && typeof object.scalar('id') !== 'string')
    object.refuse('names something on the account that this conversation did not create', 'id')
}
