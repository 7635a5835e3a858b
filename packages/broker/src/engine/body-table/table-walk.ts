import type { Edit } from '../json/json-edits.ts'
import { JsonReader, type Token, token } from '../json/json-reader.ts'
import { readNumber, scalarProblem, wanted } from './check-scalar.ts'
import { type CompiledArray, type CompiledRule, compiledObject, compiledRule } from './compiled-table.ts'
import { type Member, OpenObject, type WalkState } from './open-object.ts'
import type {
  HostRule,
  HostValue,
  RequestFacts,
  RequestHost,
  RequestTable,
  ValueRule,
} from './request-table.ts'
import { TableProblem } from './table-problem.ts'

/** Most spans that one request may need cut or written: sorting them is done in one piece. */
const MAX_EDITS = 65_536
const KEEP = compiledRule('keep')
const MAX_DROPPED = 32
const MAX_NAME_CHARS = 64
const MAX_DROPPED_CHARS = 128

/** An array that is held against its rule. */
class OpenArray {
  readonly rule: CompiledArray
  items = 0

  constructor(rule: CompiledArray) {
    this.rule = rule
  }
}

/** Holds a body against a table, piece by piece, in one pass. */
export class TableWalk {
  readonly reader: JsonReader
  readonly edits: Edit[] = []
  readonly facts: { -readonly [K in keyof RequestFacts]?: RequestFacts[K] } = {}
  readonly dropped = new Set<string>()
  readonly #host: RequestHost
  readonly #body: CompiledRule
  readonly #state: WalkState
  readonly #open: (OpenObject | OpenArray)[] = []
  /** The innermost of them, when it is an object or when it is an array. */
  #object: OpenObject | undefined
  #array: OpenArray | undefined
  /** Containers that are open below a value which is not looked into. */
  #skipped = 0

  constructor(bytes: Uint8Array, table: RequestTable, host: RequestHost) {
    this.reader = new JsonReader(bytes)
    this.#host = host
    this.#body = compiledObject(table.body)
    const { edits, facts } = this
    this.#state = { reader: this.reader, host, edits, facts, report: (name) => this.#report(name) }
  }

  /** Goes on for about so many bytes; false when the body has ended. Throws a problem of the JSON or the table. */
  run(bytes: number): boolean {
    const { reader } = this
    reader.allow(bytes)
    for (;;) {
      const found = reader.next()
      if (found === token.more) return true
      if (found === token.done) return false
      if (this.#skipped > 0) this.#skip(found)
      else if (found === token.key) this.#name()
      else if (found === token.objectEnd || found === token.arrayEnd) this.#close()
      else this.#value(found)
    }
  }

  /** Where the walk is, positions and names of fields: at the value that it reads, or at a field of what it closes. */
  path(field?: string): string {
    let path = ''
    for (const open of this.#open) {
      if (!(open instanceof OpenObject)) path += `[${Math.max(0, open.items - 1)}]`
      else if (open !== this.#open.at(-1) || field === undefined) {
        path += dotted(path, cleaned(open.lastName))
      }
    }
    return field === undefined || field === '' ? path : path + dotted(path, cleaned(field))
  }

  #skip(found: Token): void {
    if (found === token.objectStart || found === token.arrayStart) this.#skipped++
    else if ((found === token.objectEnd || found === token.arrayEnd) && --this.#skipped === 0) this.#ended()
  }

  #name(): void {
    const open = this.#object as OpenObject
    const { name, start } = this.reader
    const member = open.add(name, start)
    if (!member.rule.drops) return
    if (this.#isAllowed(name)) member.rule = KEEP
    else this.#drop(open, member)
  }

  #value(found: Token): void {
    const { reader } = this
    const object = this.#object
    const rule = object === undefined ? this.#itemRule() : object.last.begin(reader.start, found)
    if (found === token.objectStart || found === token.arrayStart) {
      if (rule.checks && this.#enter(rule, found)) return
      this.#skipped = 1
      return
    }
    if (rule.checks && ((rule.passes >> found) & 1) === 0) {
      // The offsets of a string are those of its quotes.
      const passes = found === token.string && reader.end - reader.start - 2 <= rule.stringBytes
      if (!passes) this.#checkScalar(found, rule.source as ValueRule)
    }
    this.#ended()
  }

  /** Opens an object or array that has a rule of its own. */
  #enter(rule: CompiledRule, found: Token): boolean {
    const { object, array } = rule
    if (found === token.objectStart && object !== undefined) {
      this.#push(new OpenObject(object, this.reader.start, this.#state), undefined)
      return true
    }
    if (found === token.arrayStart && array !== undefined) {
      this.#push(undefined, new OpenArray(array))
      return true
    }
    const source = rule.source as ValueRule
    this.#unwanted(source, wanted(source))
    return false
  }

  #push(object: OpenObject | undefined, array: OpenArray | undefined): void {
    this.#object = object
    this.#array = array
    this.#open.push((object ?? array) as OpenObject | OpenArray)
  }

  #itemRule(): CompiledRule {
    const array = this.#array
    if (array === undefined) return this.#body
    array.items++
    const { max, items } = array.rule
    if (array.items > max) throw new TableProblem(`is beyond the ${max} entries that are allowed`)
    return items
  }

  #checkScalar(found: Token, rule: ValueRule): void {
    const problem = scalarProblem(this.reader, found, rule, this.#host)
    if (problem !== undefined) this.#unwanted(rule, problem)
  }

  #unwanted(rule: ValueRule, problem: string): void {
    const open = this.#object
    if (rule.otherwise !== 'drop' || open === undefined) throw new TableProblem(rule.problem ?? problem)
    if (!this.#isAllowed(open.last.name)) this.#drop(open, open.last)
  }

  /** Whether the operator lets a field pass that would be dropped. */
  #isAllowed(name: string): boolean {
    return this.#host.allowFields?.has(this.#dotted(name)) === true
  }

  #drop(open: OpenObject, member: Member): void {
    open.cut(member)
    this.#report(member.name)
    this.#bound()
  }

  #close(): void {
    const object = this.#object
    if (object !== undefined) {
      // What the operator sets goes over everything.
      object.close(this.reader.end, this.#open.length === 1 ? this.#host.setFields : undefined)
      this.#bound()
    }
    this.#open.pop()
    const open = this.#open[this.#open.length - 1]
    this.#object = open instanceof OpenObject ? open : undefined
    this.#array = open instanceof OpenArray ? open : undefined
    this.#ended()
  }

  /** A value has ended: what is written over it can be. */
  #ended(): void {
    const open = this.#object
    if (open === undefined) return
    const member = open.last
    const { host, source } = member.rule
    member.end = this.reader.end
    member.escaped = this.reader.escaped
    if (host === undefined) return
    if ((source as HostRule).cap === undefined || !this.#isWithin(member, this.#host[host])) {
      open.write(member, this.#hostValue(host))
    }
  }

  #isWithin(member: Member, cap: unknown): boolean {
    if (member.kind !== token.number) return false
    const value = readNumber(this.reader)
    return Number.isSafeInteger(value) && value >= 1 && value <= Number(cap)
  }

  #hostValue(name: HostValue): Buffer {
    return Buffer.from(JSON.stringify(this.#host[name]))
  }

  #bound(): void {
    if (this.edits.length > MAX_EDITS) throw new TableProblem('has too many fields that are not allowed')
  }

  #report(name: string): void {
    if (this.dropped.size >= MAX_DROPPED) return
    this.dropped.add(this.#dotted(cleaned(name)).slice(0, MAX_DROPPED_CHARS))
  }

  /** `messages[].name` for a field of the innermost open object. */
  #dotted(name: string): string {
    let path = ''
    for (const open of this.#open) {
      if (!(open instanceof OpenObject)) path += '[]'
      else path += dotted(path, open === this.#open.at(-1) ? name : cleaned(open.lastName))
    }
    return path
  }
}

function dotted(path: string, name: string): string {
  return path === '' ? name : `.${name}`
}

/** Names come from the guest: short and printable. */
function cleaned(name: string): string {
  return name.slice(0, MAX_NAME_CHARS).replace(/[^\w$.-]/g, '?')
}
