import { localSchema, schemaProblem } from '../tool-schema.ts'
import type { ClosedObject, FieldRule, ObjectRule, ValueRule } from './request-table.ts'

/** Largest JSON Schema of one tool or answer format, as sent. */
const SCHEMA_BYTES = 1024 * 1024
/** Largest one with references: these are followed in one piece, which takes about 0.3 ms for each KiB. */
const REFERRING_BYTES = 64 * 1024
/** Where a reference may be, or something that an escape hides. */
const REFERENCE = /\\u|[rR]ef"|\$vocabulary"/
const MANY = 65_536

const fields = new Map<string, FieldRule>()
const schema: ValueRule = { boolean: true, object: { fields, others: 'keep' } }
const list: ValueRule = { array: { items: schema, max: MANY } }
const either: ValueRule = { ...schema, ...list }
const map: ValueRule = { object: { fields: new Map(), others: schema } }
/** Lists of names, or schemas. */
const dependencies: ValueRule = {
  object: { fields: new Map(), others: { ...schema, array: { items: { string: true }, max: MANY } } },
}
/** Generated schemas carry the URL of their dialect, which providers do not need. */
const local: ValueRule = { string: { start: /^#/ }, otherwise: 'drop' }

for (const name of ['$schema', '$id']) fields.set(name, local)
for (const name of ['properties', 'patternProperties', '$defs', 'definitions', 'dependentSchemas'])
  fields.set(name, map)
for (const name of ['items', 'contains', 'additionalProperties', 'unevaluatedProperties', 'unevaluatedItems'])
  fields.set(name, either)
for (const name of ['propertyNames', 'not', 'if', 'then', 'else', 'contentSchema', 'additionalItems'])
  fields.set(name, either)
for (const name of ['allOf', 'anyOf', 'oneOf', 'prefixItems']) fields.set(name, list)
fields.set('dependencies', dependencies)

/**
 * A JSON Schema (MI-08 to MI-12): `$schema` and `$id` that are not local are cut out where a schema keeps them,
 * and what could send the provider to fetch one is refused. At most 1 MiB, 64 KiB when it has references.
 */
export const schemaRule: ObjectRule = { fields, others: 'keep', close: checkSchema }

/** The table knows where schemas are; what a reference leads to may be elsewhere. */
function checkSchema(object: ClosedObject): void {
  if (object.size > SCHEMA_BYTES) object.refuse(`is a schema of more than ${SCHEMA_BYTES} bytes`)
  const text = object.text()
  if (!REFERENCE.test(text)) return
  if (object.size > REFERRING_BYTES)
    object.refuse(`is a schema with references of more than ${REFERRING_BYTES} bytes`)
  const value: unknown = JSON.parse(text)
  const problem = schemaProblem(value)
  if (problem !== undefined) object.refuse(problem)
  const [keyword] = localSchema(value).dropped
  if (keyword !== undefined) object.refuse(`${keyword} is not local, where only a reference leads`)
}
