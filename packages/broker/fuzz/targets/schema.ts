import { localSchema, schemaProblem } from '../../src/engine/tool-schema.ts'
import { anyValue, corpus, shaken } from '../corpus.ts'
import { type FuzzTarget, hold } from '../target.ts'

const seeds = corpus('schema')
const MAPS = ['properties', 'patternProperties', '$defs', 'definitions', 'dependentSchemas']
const ONES = [
  ...[
    'items',
    'contains',
    'additionalProperties',
    'unevaluatedProperties',
    'unevaluatedItems',
    'propertyNames',
  ],
  ...[
    'not',
    'if',
    'then',
    'else',
    'contentSchema',
    'additionalItems',
    'allOf',
    'anyOf',
    'oneOf',
    'prefixItems',
  ],
]

/** What is let through reaches nothing outside of itself. */
export const schema: FuzzTarget = {
  name: 'schema',
  about: 'the guard of tool schemas: nothing that it lets through points outside',
  run(random) {
    const value = random.once(10) ? anyValue(random, 6) : shaken(random, random.pick(seeds), 8)
    const before = JSON.stringify(value)
    const problem = schemaProblem(value)
    const local = localSchema(value)
    hold(JSON.stringify(value) === before, 'the schema was changed', value)
    if (problem !== undefined) {
      hold(problem !== '' && !/x\.example/.test(problem), 'a value is in the problem', problem)
      return
    }
    const found = remote(local.schema)
    hold(found === undefined, `let through: ${found}`, value)
    hold(schemaProblem(local.schema) === undefined, 'the local form has a problem', value)
    hold(localSchema(local.schema).schema === local.schema, 'done twice is not done once', value)
  },
}

/** A reference out of the schema, told by a plain walk; values of `enum`, `const` and the like are data. */
function remote(node: unknown): string | undefined {
  if (Array.isArray(node)) return node.map(remote).find((found) => found !== undefined)
  if (typeof node !== 'object' || node === null) return undefined
  const own = (name: string): unknown =>
    Object.hasOwn(node, name) ? node[name as keyof typeof node] : undefined
  for (const name of ['$ref', '$dynamicRef', '$recursiveRef', '$schema', '$id']) {
    const value = own(name)
    if (value !== undefined && !(typeof value === 'string' && value.startsWith('#'))) return name
  }
  // A list there names properties.
  const dependencies = Object.values(own('dependencies') ?? {}).filter((item) => !Array.isArray(item))
  const below = [...ONES.map(own), ...dependencies, ...MAPS.flatMap((name) => Object.values(own(name) ?? {}))]
  return below.map(remote).find((found) => found !== undefined)
}
