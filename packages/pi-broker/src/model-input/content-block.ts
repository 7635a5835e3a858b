import {
  anyText,
  type ClosedObject,
  type FieldRule,
  hosts,
  listOf,
  MANY_PARTS,
  objectOf,
  orNull,
  text,
  type ValueRule,
} from '@sandbox/broker/engine'
import { IMAGE_TYPES, limits } from '@sandbox/protocol'
import { unexpectedTag } from './refusal-words.ts'

/** PM-10: `ephemeral`, for five minutes or an hour. What else it is called is dropped by {@link settleCache}. */
export const cacheControl: ValueRule = {
  ...objectOf({ type: 'keep', ttl: { string: { oneOf: ['5m', '1h'] }, otherwise: 'drop' } }),
  null: true,
  otherwise: 'drop',
}

/** Drops a `cache_control` that is not the one that is known. */
export function settleCache(object: ClosedObject): void {
  if (!object.has('cache_control')) return
  const value = object.value('cache_control') as { readonly type?: unknown } | null | undefined
  if (value?.type !== 'ephemeral' && value !== null) object.drop('cache_control')
}

/** Ids of tool calls. */
const toolId = text({ pattern: /^.{1,128}$/su })
/** Names of tools. */
export const toolName = text({ pattern: /^[a-zA-Z0-9_-]{1,128}$/ })

const INLINE = 'must be inline, as base64: a guest cannot make the provider fetch anything'
const BASE64_CHARS = Math.ceil(limits.IMAGE_BYTES / 3) * 4

/** PM-06. */
const imageSource = objectOf(
  {
    type: { string: { oneOf: ['base64'] }, problem: INLINE },
    media_type: text({ oneOf: IMAGE_TYPES }),
    data: { string: { start: /^[A-Za-z0-9+/]+={0,2}$/, maxBytes: BASE64_CHARS }, problem: INLINE },
  },
  { required: ['type', 'media_type', 'data'] },
)

/** A kind of block: its fields besides `type`, told apart as those that must be there and others. */
interface Kind {
  readonly required: readonly string[]
  readonly optional?: readonly string[]
}

const FIELDS: Readonly<Record<string, FieldRule>> = {
  type: text(64),
  text: anyText,
  source: imageSource,
  id: toolId,
  name: toolName,
  input: objectOf({}, { others: 'keep' }),
  tool_use_id: toolId,
  is_error: { boolean: true, null: true },
  thinking: anyText,
  signature: anyText,
  data: anyText,
  // As the API answers it and clients send it back.
  caller: { ...objectOf({ type: 'keep' }), null: true, otherwise: 'drop' },
  toolset_name: hosts,
  citations: hosts,
  cache_control: cacheControl,
}

const TEXT: Kind = { required: ['text'], optional: ['citations', 'cache_control'] }
const IMAGE: Kind = { required: ['source'], optional: ['cache_control'] }
const INNER: Readonly<Record<string, Kind>> = { text: TEXT, image: IMAGE }
const OUTER: Readonly<Record<string, Kind>> = {
  ...INNER,
  tool_use: { required: ['id', 'name', 'input'], optional: ['caller', 'toolset_name', 'cache_control'] },
  tool_result: {
    required: ['tool_use_id'],
    optional: ['content', 'is_error', 'toolset_name', 'cache_control'],
  },
  thinking: { required: ['thinking', 'signature'] },
  redacted_thinking: { required: ['data'] },
}

/**
 * A block of one of these kinds. Listed fields of another kind are dropped, so that nothing travels in a block that has
 * no meaning there; what makes up a thinking block passes as it is (PM-09, T44).
 */
function block(
  kinds: Readonly<Record<string, Kind>>,
  more: Readonly<Record<string, FieldRule>> = {},
  onKind?: (object: ClosedObject, kind: string) => void,
): ValueRule {
  const fields = { ...FIELDS, ...more }
  const names = Object.keys(fields).filter((name) => name !== 'type')
  return objectOf(fields, {
    close: (object) => {
      const type = object.scalar('type')
      const kind = typeof type === 'string' && Object.hasOwn(kinds, type) ? kinds[type] : undefined
      if (kind === undefined) return object.refuse(unexpectedTag(type, Object.keys(kinds)))
      for (const name of kind.required) if (!object.has(name)) object.refuse('is missing', name)
      for (const name of names) {
        if (!kind.required.includes(name) && kind.optional?.includes(name) !== true) object.drop(name)
      }
      settleCache(object)
      if (!isDirect(object)) object.drop('caller')
      onKind?.(object, String(type))
    },
  })
}

/** Whether the model itself called the tool, and not something that the provider runs. */
function isDirect(object: ClosedObject): boolean {
  if (!object.has('caller')) return true
  const value = object.value('caller') as { readonly type?: unknown } | null | undefined
  return value === null || value?.type === 'direct'
}

/** PM-11: text and images, as in the system prompt and in the result of a tool. */
export const innerBlocks = listOf(block(INNER), MANY_PARTS)

/** PM-05 and PM-08: the blocks of a message. `onKind` hears of each. */
export function messageBlocks(onKind: (object: ClosedObject, kind: string) => void): ValueRule {
  const content: ValueRule = orNull({ ...innerBlocks, ...anyText })
  return listOf(block(OUTER, { content }, onKind), MANY_PARTS)
}
