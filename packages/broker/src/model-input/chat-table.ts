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
  objectOf,
  orNull,
  owned,
  text,
  toolName,
  word,
} from '../engine/body-table/table-parts.ts'
import { declared, named, tool, toolChoice } from './chat-tools.ts'

/** How an operator's endpoint wants Chat Completions. */
export interface ChatTableOptions {
  /** The field that is added when the guest sends no limit. */
  readonly tokenLimitField: 'max_tokens' | 'max_completion_tokens'
  /** Moves a limit in the other field to `tokenLimitField`, for endpoints that know only one. Default: both stay. */
  readonly renameTokenLimit?: boolean
  /**
   * Whether every stream is asked for usage, which the host's accounts need. Default true; false for endpoints
   * that do not know `stream_options`.
   */
  readonly streamUsage?: boolean
}

const part = objectOf(
  {
    type: text(32),
    text: anyText,
    refusal: anyText,
    image_url: objectOf({ url: inlineImage, detail: word }, { required: ['url'] }),
    input_audio: objectOf({ data: inlineBytes, format: word }, { required: ['data'] }),
    file: objectOf({ file_data: inlineFile, filename: orNull(text(1024)), file_id: owned }),
  },
  {
    variants: {
      by: 'type',
      of: {
        text: { required: ['text'] },
        refusal: { required: ['refusal'] },
        image_url: { required: ['image_url'] },
        input_audio: { required: ['input_audio'] },
        file: { required: ['file'] },
      },
    },
  },
)

const functionCall = objectOf({ name: toolName, arguments: anyText }, { required: ['name', 'arguments'] })

const toolCall = objectOf(
  {
    id: callId,
    type: text(32),
    function: functionCall,
    custom: objectOf({ name: toolName, input: anyText }, { required: ['name', 'input'] }),
  },
  {
    required: ['id'],
    variants: {
      by: 'type',
      of: {
        function: { required: ['function'], optional: ['id'] },
        custom: { required: ['custom'], optional: ['id'] },
      },
    },
  },
)

const content: ValueRule = { ...listOf(part, MANY_PARTS), ...anyText, null: true }
const spoken = { required: ['content'], optional: ['name'] }

const message = objectOf(
  {
    role: text(32),
    content,
    name: orNull(text(256)),
    refusal: orNull(anyText),
    tool_calls: orNull(listOf(toolCall, MANY_PARTS)),
    tool_call_id: callId,
    function_call: orNull(functionCall),
    audio: orNull(objectOf({ id: owned }, { required: ['id'] })),
  },
  {
    variants: {
      by: 'role',
      of: {
        developer: spoken,
        system: spoken,
        user: spoken,
        assistant: {
          required: [],
          optional: ['content', 'name', 'refusal', 'tool_calls', 'function_call', 'audio'],
        },
        tool: { required: ['content', 'tool_call_id'], optional: ['name'] },
        function: { required: ['content', 'name'] },
      },
    },
  },
)

const responseFormat = objectOf(
  {
    type: text(32),
    json_schema: objectOf(
      {
        name: toolName,
        description: orNull(anyText),
        schema: { object: schemaRule, null: true },
        strict: flag,
      },
      { required: ['name'] },
    ),
  },
  {
    variants: {
      by: 'type',
      of: {
        text: { required: [] },
        json_object: { required: [] },
        json_schema: { required: ['json_schema'] },
      },
    },
  },
)

/**
 * The table of OpenAI Chat Completions as official clients speak it. What costs more, reaches outside or touches
 * the account is the host's: `model` and the token limit are set; `n`, `store`, `service_tier`, `metadata`, `user`,
 * audio, `prediction`, `web_search_options` and unknown fields are dropped; tools other than `function` and
 * `custom`, remote images and foreign ids refuse the request.
 */
export function chatTable(options: ChatTableOptions): RequestTable {
  const streamUsage = options.streamUsage ?? true
  const body = objectOf(
    {
      model: { set: 'model' },
      messages: listOf(message, MANY_MESSAGES),
      max_tokens: { cap: 'maxOutputTokens' },
      max_completion_tokens: { cap: 'maxOutputTokens' },
      stream: flag,
      stream_options: streamOptions(streamUsage),
      tools: orNull(listOf(tool, MANY_TOOLS)),
      tool_choice: toolChoice,
      parallel_tool_calls: flag,
      functions: orNull(listOf(declared, MANY_TOOLS)),
      function_call: { string: { oneOf: ['none', 'auto'] }, null: true, ...named },
      response_format: orNull(responseFormat),
      reasoning_effort: word,
      verbosity: word,
      temperature: amount,
      top_p: amount,
      frequency_penalty: amount,
      presence_penalty: amount,
      seed: amount,
      logit_bias: orNull(objectOf({}, { others: { number: true } })),
      logprobs: flag,
      top_logprobs: amount,
      stop: { string: true, null: true, ...listOf(anyText, 16) },
      prompt_cache_key: orNull(text(1024)),
      // One answer is what everybody gets; more of them cost more.
      n: { number: { min: 1, max: 1 }, ...hosts },
      store: { boolean: [false], ...hosts },
      audio: hosts,
      metadata: hosts,
      modalities: hosts,
      moderation: hosts,
      prediction: hosts,
      prompt_cache_options: hosts,
      prompt_cache_retention: hosts,
      safety_identifier: hosts,
      service_tier: hosts,
      user: hosts,
      web_search_options: hosts,
    },
    {
      required: ['messages'],
      close: (object) => {
        if (!object.has('model')) object.set('model', object.host.model)
        learnModel(object)
        settleLimit(object, options)
        settleStream(object, streamUsage)
      },
    },
  )
  return { family: 'openai-chat', body: body.object }
}

function learnModel(object: ClosedObject): void {
  const model = object.scalar('model')
  if (typeof model === 'string') object.facts.guestModel = model.slice(0, 128)
}

/** What is given has been capped; here the limit is moved or added. */
function settleLimit(object: ClosedObject, { tokenLimitField, renameTokenLimit }: ChatTableOptions): void {
  const cap = object.host.maxOutputTokens
  const given = (['max_tokens', 'max_completion_tokens'] as const).filter((name) => object.has(name))
  const moved = renameTokenLimit === true ? given.filter((name) => name !== tokenLimitField) : []
  const kept = given.filter((name) => !moved.includes(name))
  const counting = kept.length > 0 ? kept : moved
  const limit = Math.min(cap, ...counting.map((name) => withinCap(object.scalar(name), cap)))
  object.facts.outputTokens = limit
  for (const name of moved) object.drop(name)
  if (kept.length === 0) object.set(tokenLimitField, limit)
}

/** What the `cap` rule makes of a limit. */
function withinCap(value: unknown, cap: number): number {
  return Number.isSafeInteger(value) && Number(value) >= 1 ? Math.min(Number(value), cap) : cap
}

function streamOptions(streamUsage: boolean): ValueRule {
  return orNull(
    objectOf(
      { include_usage: flag, include_obfuscation: flag },
      {
        close: (object) => {
          object.facts.usageAsked = object.scalar('include_usage') === true
          if (streamUsage) object.set('include_usage', true)
        },
      },
    ),
  )
}

/** Providers refuse stream options without a stream. */
function settleStream(object: ClosedObject, streamUsage: boolean): void {
  const { facts } = object
  facts.stream = object.scalar('stream') === true
  if (!facts.stream) {
    facts.usageAsked = false
    object.drop('stream_options')
  } else if (streamUsage && facts.usageAsked === undefined)
    object.set('stream_options', { include_usage: true })
}
