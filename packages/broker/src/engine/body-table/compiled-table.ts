import { token } from '../json/json-reader.ts'
import type { ClosedObject, FieldRule, HostValue, ObjectRule, ValueRule, Variants } from './request-table.ts'

/**
 * A field's rule as the walk reads it: every rule has the same properties in the same order, so that reading one
 * takes no look-up.
 */
export interface CompiledRule {
  /** What the table says, for what is not decided here. */
  readonly source: FieldRule
  readonly drops: boolean
  /** Whether the value is looked at. */
  readonly checks: boolean
  /** The host's value that is written, or that is an upper limit. */
  readonly host: HostValue | undefined
  /** Bits of the kinds of scalars (1 << token) that pass whatever they are. */
  readonly passes: number
  /** Strings of at most so many bytes between their quotes pass whatever they are; -1 = none does. */
  readonly stringBytes: number
  readonly object: CompiledObject | undefined
  readonly array: CompiledArray | undefined
}

/** An array's rule. */
export interface CompiledArray {
  readonly items: CompiledRule
  readonly max: number
}

/** An object's rule. */
export interface CompiledObject {
  /** Every name that the rule mentions. */
  readonly names: Map<string, CompiledField>
  /** What becomes of other names. */
  readonly others: CompiledField
  readonly required: readonly Required[]
  readonly variants: CompiledVariants | undefined
  readonly close: ((object: ClosedObject) => void) | undefined
}

/** What becomes of a name. */
export interface CompiledField {
  /** Its number among the names of the rule; -1 for any other name. */
  readonly id: number
  readonly rule: CompiledRule
  /** Whether the table lists it, so that kinds of object may drop it. */
  readonly listed: boolean
}

/** A field that must be there. */
export interface Required {
  readonly id: number
  readonly name: string
}

/** Kinds of object. */
export interface CompiledVariants {
  readonly by: string
  readonly byId: number
  readonly missing: string | undefined
  readonly of: ReadonlyMap<string, CompiledVariant>
}

/** One kind. */
export interface CompiledVariant {
  readonly required: readonly Required[]
  /** By the ids of fields: 1 for one that this kind may have. */
  readonly allowed: Uint8Array
}

/** A rule on its own. */
export function compiledRule(rule: FieldRule): CompiledRule {
  return new Compiler().rule(rule)
}

const objects = new WeakMap<ObjectRule, CompiledRule>()

/** The rule of an object, compiled once for as long as the table is there. Rules may lead back to themselves. */
export function compiledObject(rule: ObjectRule): CompiledRule {
  const known = objects.get(rule)
  if (known !== undefined) return known
  const compiled = compiledRule({ object: rule })
  objects.set(rule, compiled)
  return compiled
}

class Compiler {
  readonly #rules = new Map<FieldRule, CompiledRule>()
  readonly #objects = new Map<ObjectRule, CompiledObject>()

  rule(source: FieldRule): CompiledRule {
    const known = this.#rules.get(source)
    if (known !== undefined) return known
    const value = typeof source === 'object' && source.set === undefined && source.cap === undefined
    const rule = {
      source,
      drops: source === 'drop',
      checks: value,
      host: typeof source === 'object' ? (source.set ?? source.cap) : undefined,
      passes: value ? passingKinds(source) : 0,
      stringBytes: value ? passingBytes(source) : -1,
      object: undefined as CompiledObject | undefined,
      array: undefined as CompiledArray | undefined,
    }
    this.#rules.set(source, rule)
    if (value && source.object !== undefined) rule.object = this.#object(source.object)
    if (value && source.array !== undefined) {
      rule.array = { items: this.rule(source.array.items), max: source.array.max }
    }
    return rule
  }

  #object(source: ObjectRule): CompiledObject {
    const known = this.#objects.get(source)
    if (known !== undefined) return known
    const names = new Map<string, CompiledField>()
    const object = {
      names,
      others: undefined as unknown as CompiledField,
      required: [] as readonly Required[],
      variants: undefined as CompiledVariants | undefined,
      close: source.close,
    }
    this.#objects.set(source, object)
    const others = this.rule(source.others ?? 'drop')
    object.others = { id: -1, rule: others, listed: false }
    for (const [name, field] of source.fields) {
      names.set(name, { id: names.size, rule: this.rule(field), listed: true })
    }
    const idOf = (name: string): number => {
      const field = names.get(name) ?? { id: names.size, rule: others, listed: false }
      names.set(name, field)
      return field.id
    }
    object.required = requiredOf(source.required ?? [], idOf)
    if (source.variants !== undefined) object.variants = compileVariants(source.variants, idOf)
    return object
  }
}

type IdOf = (name: string) => number

function requiredOf(names: readonly string[], idOf: IdOf): Required[] {
  return names.map((name) => ({ id: idOf(name), name }))
}

function compileVariants({ by, missing, of }: Variants, idOf: IdOf): CompiledVariants {
  const ids = (names: readonly string[]) => [idOf(by), ...names.map(idOf)]
  const kinds = Object.entries(of).map(([kind, { required, optional = [] }]) => {
    const allowed = ids([...required, ...optional])
    const flags = new Uint8Array(Math.max(...allowed) + 1)
    for (const id of allowed) flags[id] = 1
    return [kind, { required: requiredOf(required, idOf), allowed: flags }] as const
  })
  return { by, byId: idOf(by), missing, of: new Map(kinds) }
}

function passingKinds(rule: ValueRule): number {
  const truth = (1 << token.true) | (1 << token.false)
  return (
    (rule.null === true ? 1 << token.null : 0) |
    (rule.boolean === true ? truth : 0) |
    (rule.number === true ? 1 << token.number : 0)
  )
}

function passingBytes({ string }: ValueRule): number {
  if (string === undefined) return -1
  if (string === true) return Number.MAX_SAFE_INTEGER
  const { maxBytes = Number.MAX_SAFE_INTEGER, oneOf, pattern, start, owned } = string
  const more = oneOf !== undefined || pattern !== undefined || start !== undefined || owned !== undefined
  return more ? -1 : maxBytes
}
