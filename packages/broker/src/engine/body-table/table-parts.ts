import type { FieldRule, ObjectRule, StringRule, ValueRule } from './request-table.ts'

/** An object rule whose fields are written as an object. */
export function objectOf(
  fields: Readonly<Record<string, FieldRule>>,
  rest: Omit<ObjectRule, 'fields'> = {},
): ValueRule & { readonly object: ObjectRule } {
  return { object: { fields: new Map(Object.entries(fields)), ...rest } }
}

/** An array rule. */
export function listOf(items: ValueRule | 'keep', max: number): ValueRule {
  return { array: { items, max } }
}

/** The same, or `null`: clients write it for what they leave out. */
export function orNull(rule: ValueRule): ValueRule {
  return { ...rule, null: true }
}

/** A string of at most so many bytes of JSON, or one that is told apart otherwise. */
export function text(rule: number | StringRule): ValueRule {
  return { string: typeof rule === 'number' ? { maxBytes: rule } : rule }
}

/** Any string. */
export const anyText: ValueRule = { string: true }
/** `true`, `false` or `null`. */
export const flag: ValueRule = { boolean: true, null: true }
/** A number or `null`. */
export const amount: ValueRule = { number: true, null: true }

/** What is the host's to decide: a guest's value is dropped. `null` says nothing and stays. */
export const hosts: ValueRule = { null: true, otherwise: 'drop' }

/** What names a thing on the provider's account: passes when the same scope created it. */
export const owned: ValueRule = {
  string: { maxBytes: 256, owned: true },
  null: true,
  problem: 'names something on the account that this conversation did not create',
}

/** Names of tools and formats. */
export const toolName: ValueRule = { string: { pattern: /^[A-Za-z0-9_-]{1,64}$/ } }
/** Ids of tool calls. Some gateways put signatures into them. */
export const callId: ValueRule = text(4096)
/** Words from a list that grows: `low`, `auto`, `in_progress`. */
export const word: ValueRule = { string: { pattern: /^[a-z0-9_.-]{1,64}$/ }, null: true }

const INLINE = 'must be inline: a guest cannot make the provider fetch anything'

/** A picture as a `data:` URL. An SVG may itself refer to others. */
export const inlineImage: ValueRule = { string: { start: /^data:image\/(?!svg)/i }, problem: INLINE }
/** A file as a `data:` URL. */
export const inlineFile: ValueRule = { string: { start: /^data:/i }, null: true, problem: INLINE }
/** Base64. */
export const inlineBytes: ValueRule = { string: { start: /^[A-Za-z0-9+/=_-]*$/ }, problem: INLINE }
/** The URL of something that the provider would fetch. */
export const noUrl: ValueRule = { null: true, problem: INLINE }

/** Most messages or items of one request: no client comes near, and the body's size is what bounds them. */
export const MANY_MESSAGES = 16_384
/** Most parts of one message, and calls in one. */
export const MANY_PARTS = 4096
/** Most tools. */
export const MANY_TOOLS = 1024
