import { type Edit, editedParts, orderEdits } from '../json/json-edits.ts'
import { type JsonReader, type Token, token } from '../json/json-reader.ts'
import { DECODED_BYTES } from './check-scalar.ts'
import type {
  CompiledField,
  CompiledObject,
  CompiledRule,
  CompiledVariants,
  Required,
} from './compiled-table.ts'
import type { ClosedObject, RequestFacts, RequestHost } from './request-table.ts'
import { TableProblem } from './table-problem.ts'

/** A field of an object that is being read. Offsets are of its name, of its value, and after it. */
export class Member {
  readonly name: string
  readonly start: number
  readonly field: CompiledField
  rule: CompiledRule
  valueStart: number
  end: number
  kind: Token = token.null
  /** Of a string: whether it has escapes. */
  escaped = false
  cut = false
  /** The field after it. */
  next: Member | undefined

  constructor(name: string, start: number, field: CompiledField) {
    this.name = name
    this.start = start
    this.field = field
    this.rule = field.rule
    this.valueStart = start
    this.end = start
  }

  /** Its value begins; answers what becomes of it. */
  begin(start: number, kind: Token): CompiledRule {
    this.valueStart = start
    this.kind = kind
    return this.rule
  }
}

/** Values beyond this are not built, in bytes of JSON. */
const VALUE_BYTES = 64 * 1024

/** What objects of one walk share. */
export interface WalkState {
  readonly reader: JsonReader
  readonly host: RequestHost
  readonly edits: Edit[]
  readonly facts: { -readonly [K in keyof RequestFacts]?: RequestFacts[K] }
  /** Notes a dropped field of the innermost open object. */
  report(name: string): void
}

/** An object that is held against its rule: its fields so far, and at its end what is cut and written. */
export class OpenObject implements ClosedObject {
  readonly rule: CompiledObject
  readonly #state: WalkState
  readonly #start: number
  readonly #firstEdit: number
  #added: Map<string, Uint8Array> | undefined
  #end = 0
  #isCut = false
  /** Its fields, linked: most objects have two or three. */
  #first: Member | undefined
  #last: Member | undefined

  constructor(rule: CompiledObject, start: number, state: WalkState) {
    this.rule = rule
    this.#state = state
    this.#start = start
    this.#firstEdit = state.edits.length
  }

  get host(): RequestHost {
    return this.#state.host
  }

  get size(): number {
    return this.#end - this.#start
  }

  get facts(): WalkState['facts'] {
    return this.#state.facts
  }

  /** The field that is being read, or was read last. */
  get last(): Member {
    return this.#last as Member
  }

  /** The name of that field; empty before the first. */
  get lastName(): string {
    return this.#last === undefined ? '' : this.#last.name
  }

  /** A field begins. */
  add(name: string, start: number): Member {
    const { names, others } = this.rule
    const member = new Member(name, start, names.get(name) ?? others)
    if (this.#last === undefined) this.#first = member
    else this.#last.next = member
    this.#last = member
    return member
  }

  /** Cuts a field out. */
  cut(member: Member): void {
    member.cut = true
    this.#isCut = true
  }

  /** Runs the checks of the whole object, then sets `fields`. `end` is the offset after its closing brace. */
  close(end: number, fields?: Readonly<Record<string, unknown>>): void {
    this.#end = end
    const { required, variants, close } = this.rule
    if (required.length > 0) this.#require(required)
    if (variants !== undefined) this.#choose(variants)
    close?.(this)
    if (fields !== undefined) for (const [name, value] of Object.entries(fields)) this.set(name, value)
    if (this.#isCut || this.#added !== undefined) this.#state.edits.push(...this.#ownEdits())
  }

  has(name: string): boolean {
    return this.#find(name) !== undefined
  }

  scalar(name: string): string | number | boolean | null | undefined {
    return this.#scalarOf(this.#find(name))
  }

  #scalarOf(member: Member | undefined): string | number | boolean | null | undefined {
    if (member === undefined || member.end - member.valueStart > DECODED_BYTES) return undefined
    const { kind, valueStart, end } = member
    const { reader } = this.#state
    if (kind === token.string) return reader.text(valueStart, end, member.escaped)
    return kind >= token.number ? JSON.parse(reader.bytes.toString('latin1', valueStart, end)) : undefined
  }

  value(name: string): unknown {
    const member = this.#find(name)
    if (member === undefined || member.end - member.valueStart > VALUE_BYTES) return undefined
    const span = { start: member.valueStart, end: member.end }
    const { reader, edits } = this.#state
    const own = edits
      .slice(this.#firstEdit)
      .filter(({ start, end }) => start >= span.start && end <= span.end)
    return JSON.parse(
      Buffer.concat([...editedParts(reader.bytes, orderEdits(own), span)]).toString(),
    ) as unknown
  }

  drop(name: string): void {
    const member = this.#find(name)
    if (member === undefined) return
    this.cut(member)
    this.#state.report(name)
  }

  set(name: string, value: unknown): void {
    const bytes = Buffer.from(JSON.stringify(value))
    const member = this.#find(name)
    if (member !== undefined) this.write(member, bytes)
    else {
      this.#added ??= new Map()
      this.#added.set(name, bytes)
    }
  }

  text(): string {
    const { reader, edits } = this.#state
    const span = { start: this.#start, end: this.#end }
    const own = orderEdits([...edits.slice(this.#firstEdit), ...this.#ownEdits()])
    return Buffer.concat([...editedParts(reader.bytes, own, span)]).toString()
  }

  refuse(problem: string, name = ''): never {
    throw new TableProblem(problem, name)
  }

  /** Writes over the value of a field that ended, unless it is the same. */
  write(member: Member, bytes: Uint8Array): void {
    const { valueStart, end, name } = member
    if (this.#state.reader.bytes.subarray(valueStart, end).equals(bytes)) return
    this.#state.edits.push({ start: valueStart, end, bytes })
    this.#state.report(name)
  }

  #find(name: string): Member | undefined {
    for (let member = this.#first; member !== undefined; member = member.next) {
      if (member.name === name && !member.cut) return member
    }
    return undefined
  }

  /** The field of an id, unless it was cut out. */
  #byId(id: number): Member | undefined {
    for (let member = this.#first; member !== undefined; member = member.next) {
      if (member.field.id === id && !member.cut) return member
    }
    return undefined
  }

  #require(fields: readonly Required[]): void {
    for (const { id, name } of fields) if (this.#byId(id) === undefined) this.refuse('is missing', name)
  }

  #choose({ by, byId, missing, of }: CompiledVariants): void {
    const member = this.#byId(byId)
    const kind = member === undefined ? missing : this.#scalarOf(member)
    const variant = typeof kind === 'string' ? of.get(kind) : undefined
    if (variant === undefined) {
      this.refuse(kind === undefined ? 'is missing' : `is none of ${[...of.keys()].join(', ')}`, by)
    }
    this.#require(variant.required)
    for (let one = this.#first; one !== undefined; one = one.next) {
      const { field, name, cut } = one
      if (!cut && field.listed && variant.allowed[field.id] !== 1) this.drop(name)
    }
  }

  /** What is cut and added among the direct fields. A comma goes with each cut field, and comes with each new one. */
  #ownEdits(): Edit[] {
    const edits: Edit[] = []
    let kept = false
    let from: number | undefined
    let last = this.#start + 1
    for (let member = this.#first; member !== undefined; member = member.next) {
      if (!member.cut) {
        if (from !== undefined) edits.push({ start: from, end: member.start })
        from = undefined
        kept = true
      } else if (kept) edits.push({ start: last, end: member.end })
      else from ??= member.start
      last = member.end
    }
    if (from !== undefined) edits.push({ start: from, end: last })
    if (this.#added !== undefined) {
      const fields = [...this.#added].map(([name, value]) => `${JSON.stringify(name)}:${Buffer.from(value)}`)
      edits.push({ start: last, end: last, bytes: Buffer.from((kept ? ',' : '') + fields.join(',')) })
    }
    return edits
  }
}
