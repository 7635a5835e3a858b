import type { Edit } from '../json/json-edits.ts'
import { JsonReader, type Token, token } from '../json/json-reader.ts'
import { readNumber, scalarProblem, wanted } from './check-scalar.ts'
import { type Member, OpenObject, type WalkState } from './open-object.ts'
import type {
  ArrayRule,
  FieldRule,
  HostValue,
  RequestFacts,
  RequestHost,
  RequestTable,
  ValueRule,
} from './request-table.ts'
import { TableProblem } from './table-problem.ts'

/** Most spans that one request may need cut or written: sorting them is done in one piece. */
const MAX_EDITS = 65_536
const MAX_DROPPED = 32
const MAX_NAME_CHARS = 64
const MAX_DROPPED_CHARS = 128

/** An array that is held against its rule. */
interface OpenArray {
  readonly rule: ArrayRule
  items: number
}

/** Holds a body against a table, piece by piece, in one pass. */
export class TableWalk {
  readonly reader: JsonReader
  readonly edits: Edit[] = []
  readonly facts: { -readonly [K in keyof RequestFacts]?: RequestFacts[K] } = {}
  readonly dropped = new Set<string>()
  readonly #host: RequestHost
  readonly #body: ValueRule
  readonly #state: WalkState
  readonly #open: (OpenObject | OpenArray)[] = []
  /** Containers that are open below a value which is not looked into. */
  #skipped = 0

  constructor(bytes: Uint8Array, table: RequestTable, host: RequestHost) {
    this.reader = new JsonReader(bytes)
    this.#host = host
    this.#body = { object: table.body }
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
      else if (found === token.key) this.#name(reader.name)
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
        path += dotted(path, cleaned(open.members.at(-1)?.name ?? ''))
      }
    }
    return field === undefined || field === '' ? path : path + dotted(path, cleaned(field))
  }

  #skip(found: Token): void {
    if (found === token.objectStart || found === token.arrayStart) this.#skipped++
    else if ((found === token.objectEnd || found === token.arrayEnd) && --this.#skipped === 0) this.#ended()
  }

  #name(name: string): void {
    const open = this.#open.at(-1) as OpenObject
    const { fields, others = 'drop' } = open.rule
    const rule = fields.get(name) ?? others
    const kept = rule === 'drop' && this.#isAllowed(name)
    const { start } = this.reader
    const member: Member = {
      name,
      start,
      valueStart: start,
      end: start,
      kind: token.null,
      escaped: false,
      rule: kept ? 'keep' : rule,
      cut: false,
    }
    open.members.push(member)
    if (member.rule === 'drop') this.#drop(member)
  }

  #value(found: Token): void {
    const { reader } = this
    const open = this.#open.at(-1)
    const container = found === token.objectStart || found === token.arrayStart
    const rule = this.#rule(open, found)
    if (typeof rule === 'object' && rule.set === undefined && rule.cap === undefined) {
      const inner = container ? (found === token.objectStart ? rule.object : rule.array) : undefined
      if (inner !== undefined) {
        this.#open.push(
          'fields' in inner ? new OpenObject(inner, reader.start, this.#state) : { rule: inner, items: 0 },
        )
        return
      }
      const problem = container ? wanted(rule) : scalarProblem(reader, found, rule, this.#host)
      if (problem !== undefined) this.#unwanted(open, rule, problem)
    }
    if (container) this.#skipped = 1
    else this.#ended()
  }

  /** The rule of the value that begins. */
  #rule(open: OpenObject | OpenArray | undefined, found: Token): FieldRule {
    if (open === undefined) return this.#body
    if (open instanceof OpenObject) {
      const member = open.members.at(-1) as Member
      member.valueStart = this.reader.start
      member.kind = found
      return member.rule
    }
    open.items++
    if (open.items > open.rule.max)
      throw new TableProblem(`is beyond the ${open.rule.max} entries that are allowed`)
    return open.rule.items
  }

  #unwanted(open: OpenObject | OpenArray | undefined, rule: ValueRule, problem: string): void {
    if (rule.otherwise !== 'drop' || !(open instanceof OpenObject)) {
      throw new TableProblem(rule.problem ?? problem)
    }
    const member = open.members.at(-1) as Member
    if (!this.#isAllowed(member.name)) this.#drop(member)
  }

  /** Whether the operator lets a field pass that would be dropped. */
  #isAllowed(name: string): boolean {
    return this.#host.allowFields?.has(this.#dotted(name)) === true
  }

  #drop(member: Member): void {
    member.cut = true
    this.#report(member.name)
    this.#bound()
  }

  #close(): void {
    const open = this.#open.at(-1)
    if (open instanceof OpenObject) {
      if (this.#open.length === 1) this.#closeBody(open)
      else open.close(this.reader.end)
      this.#bound()
    }
    this.#open.pop()
    this.#ended()
  }

  /** What the operator sets goes over everything. */
  #closeBody(body: OpenObject): void {
    body.close(this.reader.end, this.#host.setFields)
  }

  /** A value has ended: what is written over it can be. */
  #ended(): void {
    const open = this.#open.at(-1)
    if (!(open instanceof OpenObject)) return
    const member = open.members.at(-1) as Member
    const { rule } = member
    member.end = this.reader.end
    member.escaped = this.reader.escaped
    if (typeof rule !== 'object') return
    if (rule.set !== undefined) open.write(member, this.#hostValue(rule.set))
    else if (rule.cap !== undefined && !this.#isWithin(member, this.#host[rule.cap]))
      open.write(member, this.#hostValue(rule.cap))
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
      else path += dotted(path, open === this.#open.at(-1) ? name : cleaned(open.members.at(-1)?.name ?? ''))
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
