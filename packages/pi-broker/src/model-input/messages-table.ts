import {
  anyText,
  type ClosedObject,
  type FieldRule,
  flag,
  hosts,
  listOf,
  MANY_MESSAGES,
  objectOf,
  orNull,
  type RequestTable,
  schemaRule,
  text,
  type ValueRule,
  word,
} from '@sandbox/broker/engine'
import { limits, type PiThinkingLevel } from '@sandbox/protocol'
import type { FlaggedField } from './beta-flags.ts'
import { cacheControl, innerBlocks, messageBlocks, settleCache, toolName } from './content-block.ts'
import { unexpectedRole, unexpectedTag } from './refusal-words.ts'
import {
  CEILINGS,
  cappedBudget,
  cappedEffort,
  LEAST_BUDGET,
  outputLimit,
  type ThinkingCeiling,
} from './thinking-limits.ts'

/** Which table is wanted. */
export interface MessagesTableOptions {
  /** `count_tokens` takes no fields that concern an answer (PM-22). */
  readonly endpoint: 'messages' | 'count_tokens'
  /** What the host allows in this turn. */
  readonly level: PiThinkingLevel
  /** Fields whose beta flag travels with this request. */
  readonly flagged: ReadonlySet<FlaggedField>
}

/** What is learned about a request while it is read. */
interface Learned {
  /** Blocks of the message that is being read, and the first one that is no text. */
  blocks: number
  odd: { readonly index: number; readonly kind: string } | undefined
  /** The effort that it sets. */
  marker: ClosedObject | undefined
  /** The last effort that a message of the conversation sets: the one that counts for the answer. */
  lastMarker: ClosedObject | undefined
}

const learned = new WeakMap<object, Learned>()

function learnedOf({ facts }: ClosedObject): Learned {
  const known = learned.get(facts)
  if (known !== undefined) return known
  const fresh: Learned = { blocks: 0, odd: undefined, marker: undefined, lastMarker: undefined }
  learned.set(facts, fresh)
  return fresh
}

const ROLES = ['user', 'assistant', 'system']

const blocks = messageBlocks((object, kind) => {
  const known = learnedOf(object)
  if (kind !== 'text') known.odd ??= { index: known.blocks, kind }
  known.blocks += 1
})

/** PM-03: what a message in mid-conversation says about the answers from there on. */
const marker = objectOf(
  { effort: { ...text(64), otherwise: 'drop' } },
  {
    close: (object) => {
      if (cappedEffort(object.scalar('effort'), 'max') === undefined) object.drop('effort')
      else learnedOf(object).marker = object
    },
  },
)

function message(flagged: ReadonlySet<FlaggedField>): ValueRule {
  return objectOf(
    {
      role: text(64),
      content: { ...blocks, ...anyText },
      cache_control: cacheControl,
      clear_at: { string: { oneOf: ['next_user_message', 'never'] }, otherwise: 'drop' },
      output_config: flagged.has('midConversationEffort') ? { ...marker, otherwise: 'drop' } : 'drop',
    },
    { close: closeMessage },
  )
}

function closeMessage(object: ClosedObject): void {
  const role = object.scalar('role')
  const known = learnedOf(object)
  const { odd, marker: own } = known
  known.blocks = 0
  known.odd = undefined
  known.marker = undefined
  if (typeof role !== 'string' || !ROLES.includes(role)) object.refuse(unexpectedRole(role))
  if (!object.has('content')) object.refuse('is missing', 'content')
  if (role !== 'system') {
    for (const name of ['cache_control', 'clear_at', 'output_config']) object.drop(name)
    return
  }
  // PM-04: such as a change of tools in mid-conversation. A client sends its tools whole then.
  if (odd !== undefined) object.refuse(`content.${odd.index}: ${unexpectedTag(odd.kind, ['text'])}`)
  settleCache(object)
  known.lastMarker = own ?? known.lastMarker
}

/** PM-12: a tool that the guest runs. Those that the provider runs are not among them. */
function tool(flagged: ReadonlySet<FlaggedField>): ValueRule {
  return objectOf(
    {
      type: { string: { oneOf: ['custom'] }, null: true, problem: 'only custom tools are taken here' },
      name: toolName,
      description: orNull(anyText),
      input_schema: { object: schemaRule },
      cache_control: cacheControl,
      eager_input_streaming: flag,
      strict: flag,
      input_examples: orNull(listOf('keep', 64)),
      defer_loading: flagged.has('deferLoading') ? flag : 'drop',
    },
    { required: ['name', 'input_schema'], close: settleCache },
  )
}

/** PM-13. */
const toolChoice: ValueRule = orNull(
  objectOf(
    { type: text(32), name: toolName, disable_parallel_tool_use: { boolean: [true], otherwise: 'drop' } },
    {
      variants: {
        by: 'type',
        of: {
          auto: { required: [], optional: ['disable_parallel_tool_use'] },
          any: { required: [], optional: ['disable_parallel_tool_use'] },
          tool: { required: ['name'], optional: ['disable_parallel_tool_use'] },
          none: { required: [] },
        },
      },
    },
  ),
)

/** PM-14. */
function thinking(ceiling: ThinkingCeiling, flagged: ReadonlySet<FlaggedField>): ValueRule {
  const shown = ['display', 'block_binding']
  return {
    ...objectOf(
      {
        type: text(32),
        budget_tokens: { number: true },
        display: { string: { oneOf: ['summarized', 'omitted'] }, null: true, otherwise: 'drop' },
        block_binding: flagged.has('blockBinding') ? objectOf({ prefix_mismatch_behavior: word }) : 'drop',
      },
      {
        variants: {
          by: 'type',
          of: {
            enabled: { required: ['budget_tokens'], optional: shown },
            adaptive: { required: [], optional: shown },
            disabled: { required: [] },
          },
        },
        close: (object) => {
          if (object.scalar('type') !== 'enabled') return
          const budget = cappedBudget(object.scalar('budget_tokens'), {
            ceiling: ceiling.budgetTokens,
            maxOutputTokens: object.host.maxOutputTokens,
          })
          if (budget === undefined) {
            object.refuse(`must be a whole number of ${LEAST_BUDGET} or more`, 'budget_tokens')
          }
          object.set('budget_tokens', budget)
        },
      },
    ),
    otherwise: 'drop',
  }
}

/** PM-16, and the shape of an answer. */
function outputConfig(ceiling: ThinkingCeiling): ValueRule {
  return orNull(
    objectOf(
      {
        effort: { ...text(64), null: true, otherwise: 'drop' },
        format: orNull(
          objectOf(
            { type: text({ oneOf: ['json_schema'] }), schema: { object: schemaRule } },
            { required: ['type', 'schema'] },
          ),
        ),
      },
      {
        close: (object) => {
          const asked = object.scalar('effort')
          if (asked === undefined || asked === null) return
          const effort = cappedEffort(asked, ceiling.effort)
          if (effort === undefined) object.drop('effort')
          else object.set('effort', effort)
        },
      },
    ),
  )
}

const number: ValueRule = { number: true, null: true, otherwise: 'drop' }

/** What concerns an answer. */
const ANSWER_FIELDS: Readonly<Record<string, FieldRule>> = {
  max_tokens: 'keep',
  stream: { boolean: true, otherwise: 'drop' },
  temperature: number,
  top_p: number,
  top_k: number,
  stop_sequences: 'keep',
}

/** PM-23: what costs more, reaches outside or touches the account. `null` says nothing. */
const HOST_FIELDS = [
  'container',
  'diagnostics',
  'fallback_credit_token',
  'fallbacks',
  'inference_geo',
  'mcp_servers',
  'metadata',
  'output_format',
  'service_tier',
  'speed',
  'user_profile_id',
  'workspace_id',
]

/**
 * The table of Anthropic Messages as Pi and the official client speak it. Text, base64 images, custom tools and
 * thinking pass in their own bytes; `model`, the output limit and how hard the model may think are the host's;
 * documents, remote sources and tools that the provider runs refuse the request; what costs more is dropped.
 */
export function messagesTable({ endpoint, level, flagged }: MessagesTableOptions): RequestTable {
  const ceiling = CEILINGS[level]
  const answers = endpoint === 'messages'
  const body = objectOf(
    {
      model: { set: 'model' },
      messages: listOf(message(flagged), MANY_MESSAGES),
      system: orNull({ ...innerBlocks, ...anyText }),
      tools: orNull(listOf(tool(flagged), limits.MODEL_TOOLS)),
      tool_choice: toolChoice,
      thinking: thinking(ceiling, flagged),
      output_config: outputConfig(ceiling),
      cache_control: cacheControl,
      context_management: flagged.has('contextManagement') ? orNull(objectOf({}, { others: 'keep' })) : hosts,
      // The provider would keep the conversation, under an id that anybody on the account could name. Pi reads this
      // text, and sends all of it from then on.
      thread: { null: true, problem: 'Extra inputs are not permitted' },
      ...(answers ? ANSWER_FIELDS : {}),
      ...Object.fromEntries(HOST_FIELDS.map((name) => [name, hosts])),
    },
    { required: ['messages'], close: (object) => closeBody(object, ceiling, answers) },
  )
  return { family: 'anthropic', body: body.object }
}

function closeBody(object: ClosedObject, ceiling: ThinkingCeiling, answers: boolean): void {
  const { facts, host } = object
  const model = object.scalar('model')
  if (typeof model === 'string') facts.guestModel = model.slice(0, 128)
  if (!object.has('model')) object.set('model', host.model)
  settleCache(object)
  const { budget, adaptive } = thinkingOf(object)
  settleEffort(object, ceiling, adaptive)
  facts.usageAsked = true
  if (!answers) return
  facts.stream = object.scalar('stream') === true
  settleStops(object)
  const asked = object.scalar('max_tokens')
  const limit = outputLimit(asked, { budget, maxOutputTokens: host.maxOutputTokens })
  facts.outputTokens = limit
  if (asked !== limit) object.set('max_tokens', limit)
}

function thinkingOf(object: ClosedObject): { readonly budget: number; readonly adaptive: boolean } {
  const value = object.value('thinking') as { type?: unknown; budget_tokens?: number } | undefined
  if (value === undefined && object.has('thinking')) object.refuse('is too long', 'thinking')
  return {
    budget: value?.type === 'enabled' ? Number(value.budget_tokens) : 0,
    adaptive: value?.type === 'adaptive',
  }
}

/**
 * PM-17, and of the efforts that the conversation sets the one that counts. Earlier ones stay as they were sent: they
 * concern answers that are given already, and a changed beginning is neither found in the provider's cache nor fits
 * the thinking that was signed with it (T44, T45).
 */
function settleEffort(object: ClosedObject, ceiling: ThinkingCeiling, adaptive: boolean): void {
  const { lastMarker } = learnedOf(object)
  const asked = lastMarker?.scalar('effort')
  const effort = cappedEffort(asked, ceiling.effort)
  if (effort !== undefined && effort !== asked) lastMarker?.set('effort', effort)
  if (!adaptive || !ceiling.setsEffort) return
  const value = object.value('output_config')
  if (value === undefined && object.has('output_config')) {
    object.refuse('with adaptive thinking, its format must be smaller or its effort named', 'output_config')
  }
  const config = (value ?? {}) as Readonly<Record<string, unknown>>
  if (typeof config.effort !== 'string') object.set('output_config', { ...config, effort: ceiling.effort })
}

const STOPS = 16
const STOP_CHARS = 1000

/** PM-21: a list that is not as it should be is dropped whole. */
function settleStops(object: ClosedObject): void {
  if (!object.has('stop_sequences')) return
  const stops = object.value('stop_sequences')
  const good =
    Array.isArray(stops) &&
    stops.length <= STOPS &&
    stops.every((stop) => typeof stop === 'string' && stop.length <= STOP_CHARS)
  if (!good && stops !== null) object.drop('stop_sequences')
}
