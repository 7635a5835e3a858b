import { limits } from '@sandbox/protocol'

/** A schema that may be forwarded, and the keywords that were taken out of it. */
export interface LocalSchema {
  readonly schema: unknown
  /** Keyword names, without repeats: `$schema`, `$id`. */
  readonly dropped: readonly string[]
}

type Position = 'schema' | 'list' | 'map' | 'either' | 'dependencies'
type JsonObject = Record<string, unknown>

/** Where JSON Schema keeps schemas, 2020-12 and older drafts. Everything else is data and is not read. */
const POSITIONS: ReadonlyMap<string, Position> = new Map<string, Position>([
  ...(['properties', 'patternProperties', '$defs', 'definitions', 'dependentSchemas'] as const).map(
    (name) => [name, 'map'] as const,
  ),
  ...(
    ['items', 'contains', 'additionalProperties', 'unevaluatedProperties', 'unevaluatedItems'] as const
  ).map((name) => [name, 'either'] as const),
  ...(['propertyNames', 'not', 'if', 'then', 'else', 'contentSchema', 'additionalItems'] as const).map(
    (name) => [name, 'either'] as const,
  ),
  ...(['allOf', 'anyOf', 'oneOf', 'prefixItems'] as const).map((name) => [name, 'list'] as const),
  ['dependencies', 'dependencies'],
])

/** Most objects and lists in the schemas of one request: looking at them is done in one piece. Real ones have hundreds. */
const MOST_PARTS = 16_384

/** What several schemas may hold together. */
export interface SchemaRoom {
  /** Objects and lists. */
  parts: number
}

/** Room for the schemas of one request. */
export function schemaRoom(): SchemaRoom {
  return { parts: MOST_PARTS }
}

const REFERENCES = ['$ref', '$dynamicRef', '$recursiveRef'] as const
const DROPPABLE = ['$schema', '$id'] as const

/**
 * Says why a tool's parameters may not be forwarded, or `undefined` when they may. A provider must not be sent to
 * fetch a schema: `$ref`, `$dynamicRef` and `$recursiveRef` start with `#`, and so do the keys of `$vocabulary`.
 * Keywords count in schema positions only, so a property called `$ref` and `enum` data are no references; what a
 * local pointer names is read as a schema wherever it stands. A remote `$schema` or `$id` is no problem here:
 * forward what {@link localSchema} returns, never the original.
 *
 * The text names keywords only, never a value. Nesting deeper than 64 is a problem, and so is more than there is room
 * for; what the schema holds is taken from `room` (omitted = of its own). Nothing recurses.
 */
export function schemaProblem(schema: unknown, room: SchemaRoom = schemaRoom()): string | undefined {
  return sizeProblem(schema, room) ?? walk(schema, keywordProblem)
}

/**
 * A schema without `$schema` and `$id` that are not local (generated schemas carry a dialect URL, and providers
 * need none). The same object when there is nothing to take out, else a copy: the argument is not changed. For
 * schemas without a {@link schemaProblem}; what is wrong in others stays in.
 */
export function localSchema(schema: unknown): LocalSchema {
  const cuts = new Map<object, readonly string[]>()
  walk(schema, (node) => {
    const names = DROPPABLE.filter((name) => {
      const value = own(node, name)
      return typeof value === 'string' && !value.startsWith('#')
    })
    if (names.length > 0) cuts.set(node, names)
    return undefined
  })
  if (cuts.size === 0) return { schema, dropped: [] }
  const found = new Set([...cuts.values()].flat())
  return { schema: copyWithout(schema, cuts), dropped: DROPPABLE.filter((name) => found.has(name)) }
}

function keywordProblem(node: JsonObject): string | undefined {
  for (const name of REFERENCES) {
    const value = own(node, name)
    if (value === undefined) continue
    if (typeof value !== 'string' || !value.startsWith('#'))
      return `${name} is not local: it must start with #`
  }
  for (const name of DROPPABLE) {
    const value = own(node, name)
    if (value !== undefined && typeof value !== 'string') return `${name} is not a string`
  }
  const vocabulary = own(node, '$vocabulary')
  if (vocabulary === undefined) return undefined
  if (!isObject(vocabulary)) return '$vocabulary is not an object'
  return Object.keys(vocabulary).every((key) => key.startsWith('#')) ? undefined : '$vocabulary is not local'
}

/** Visits every schema once, without recursion; ends at the first problem. Empty ones say nothing. */
function walk(root: unknown, visit: (node: JsonObject) => string | undefined): string | undefined {
  const seen = new Set<object>()
  const open: unknown[] = [root]
  while (open.length > 0) {
    const node = open.pop()
    if (typeof node === 'boolean') continue
    if (!isObject(node)) return 'a schema is neither an object nor a boolean'
    const keys = Object.keys(node)
    if (keys.length === 0 || seen.has(node)) continue
    seen.add(node)
    const problem = visit(node) ?? pushChildren(node, keys, open)
    if (problem !== undefined) return problem
    for (const name of REFERENCES) {
      const target = keys.includes(name) ? pointedAt(root, node[name]) : undefined
      if (target !== undefined) open.push(target)
    }
  }
  return undefined
}

function pushChildren(node: JsonObject, keys: readonly string[], open: unknown[]): string | undefined {
  for (const key of keys) {
    const position = POSITIONS.get(key)
    if (position === undefined) continue
    const value = node[key]
    if (position === 'list' || (position === 'either' && Array.isArray(value))) {
      if (!Array.isArray(value)) return `${key} is not a list of schemas`
      for (const item of value) open.push(item)
    } else if (position === 'either') {
      open.push(value)
    } else {
      if (!isObject(value)) return `${key} is not a map of schemas`
      const names = position === 'dependencies'
      for (const item of Object.values(value)) if (!(names && Array.isArray(item))) open.push(item)
    }
  }
  return undefined
}

/** What a JSON pointer such as `#/$defs/a` names (RFC 6901 as a URI fragment), or `undefined`. */
function pointedAt(root: unknown, reference: unknown): unknown {
  if (typeof reference !== 'string' || !reference.startsWith('#/')) return undefined
  let pointer: string
  try {
    pointer = decodeURIComponent(reference.slice(2))
  } catch {
    return undefined
  }
  let value: unknown = root
  for (const part of pointer.split('/')) {
    if (typeof value !== 'object' || value === null) return undefined
    value = own(value, part.replaceAll('~1', '/').replaceAll('~0', '~'))
  }
  return value
}

function sizeProblem(value: unknown, room: SchemaRoom): string | undefined {
  const open: unknown[] = [value]
  const depths: number[] = [1]
  for (let depth = depths.pop(); depth !== undefined; depth = depths.pop()) {
    const node = open.pop()
    if (typeof node !== 'object' || node === null) continue
    if (depth > limits.JSON_DEPTH) return `the schema is nested deeper than ${limits.JSON_DEPTH} levels`
    room.parts -= 1
    if (room.parts < 0) return `the schemas have more than ${MOST_PARTS} objects and lists`
    for (const child of Object.values(node)) {
      if (typeof child !== 'object') continue
      open.push(child)
      depths.push(depth + 1)
    }
  }
  return undefined
}

/** A copy in which the named keys of the named objects are left out. Deeper than the cap, parts are shared. */
function copyWithout(root: unknown, cuts: ReadonlyMap<object, readonly string[]>): unknown {
  const top: { value?: unknown } = {}
  const open: [from: unknown, to: object, key: string, depth: number][] = [[root, top, 'value', 1]]
  for (let next = open.pop(); next !== undefined; next = open.pop()) {
    const [from, to, key, depth] = next
    const leaf = typeof from !== 'object' || from === null || depth > limits.JSON_DEPTH
    const copy: unknown = leaf ? from : Array.isArray(from) ? [] : {}
    // Not by assignment: a key called __proto__ stays a plain key.
    Object.defineProperty(to, key, { value: copy, enumerable: true, configurable: true, writable: true })
    if (leaf) continue
    const cut = cuts.get(from)
    const names = Object.keys(from).filter((name) => cut?.includes(name) !== true)
    for (const name of names.reverse()) open.push([own(from, name), copy as object, name, depth + 1])
  }
  return top.value
}

function isObject(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

function own(value: object, key: string): unknown {
  return Object.hasOwn(value, key) ? (value as JsonObject)[key] : undefined
}
