import { setImmediate as letOthersRun } from 'node:timers/promises'
import { CallRefusal } from '../call/refusal.ts'
import { JsonProblem } from '../json/json-problem.ts'
import { JsonReader, token } from '../json/json-reader.ts'

/** Read between two looks at the clock. */
const PIECE_BYTES = 64 * 1024
/** Work of one piece, about: others run in between. */
const PIECE_MS = 5
/** Longest value that is looked at. */
const VALUE_BYTES = 64 * 1024
/** Most ids of a list. */
const MOST_IDS = 1024

/** What was found in a JSON object. */
export interface FoundFields {
  readonly found: Readonly<Record<string, unknown>>
  readonly ids: readonly string[]
}

/**
 * Reads a JSON object of any size without building it, and answers these of its fields, and of the list `idsOf` the
 * `id` of each item. Lets other work run every few milliseconds.
 * @throws CallRefusal `upstream_invalid` for what is no JSON object, nests deeper than 64 or repeats a name. Rejects
 * with the signal's reason when that fires.
 */
export async function readFields(
  bytes: Uint8Array,
  {
    names,
    idsOf,
    signal,
  }: { readonly names: ReadonlySet<string>; readonly idsOf?: string; readonly signal: AbortSignal },
): Promise<FoundFields> {
  const walk = new FieldWalk(bytes, names, idsOf)
  try {
    for (let sinceMs = performance.now(); walk.run(); ) {
      if (performance.now() - sinceMs < PIECE_MS) continue
      await letOthersRun()
      signal.throwIfAborted()
      sinceMs = performance.now()
    }
  } catch (error) {
    if (error instanceof JsonProblem) throw new CallRefusal('upstream_invalid')
    throw error
  }
  return walk
}

class FieldWalk implements FoundFields {
  readonly found: Record<string, unknown> = {}
  readonly ids: string[] = []
  readonly #reader: JsonReader
  readonly #names: ReadonlySet<string>
  readonly #idsOf: string | undefined
  #depth = 0
  /** Within the list of `#idsOf`, and right after the name `id` of one of its items. */
  #listed = false
  #atId = false
  /** The field whose value is being read, and where that began. */
  #field: string | undefined
  #from = -1

  constructor(bytes: Uint8Array, names: ReadonlySet<string>, idsOf: string | undefined) {
    this.#reader = new JsonReader(bytes)
    this.#names = names
    this.#idsOf = idsOf
  }

  /** Reads a piece; false at the end. */
  run(): boolean {
    this.#reader.allow(PIECE_BYTES)
    for (;;) {
      const kind = this.#reader.next()
      if (kind === token.more) return true
      if (kind === token.done) return false
      if (this.#depth === 0 && kind !== token.objectStart) throw new CallRefusal('upstream_invalid')
      if (kind === token.key) this.#startField()
      else this.#value(kind)
    }
  }

  #startField(): void {
    const { name } = this.#reader
    this.#atId = this.#listed && this.#depth === 3 && name === 'id'
    if (this.#depth !== 1) return
    this.#listed = name === this.#idsOf
    this.#field = this.#names.has(name) ? name : undefined
    this.#from = -1
  }

  #value(kind: number): void {
    if (this.#atId) this.#noteId(kind)
    const closes = kind === token.objectEnd || kind === token.arrayEnd
    if (this.#from === -1 && !closes) this.#from = this.#reader.start
    if (kind === token.objectStart || kind === token.arrayStart) this.#depth += 1
    else if (closes) this.#depth -= 1
    if (this.#depth !== 1 || this.#field === undefined) return
    const { bytes, end } = this.#reader
    if (end - this.#from <= VALUE_BYTES) {
      this.found[this.#field] = JSON.parse(bytes.toString('utf8', this.#from, end)) as unknown
    }
    this.#field = undefined
  }

  #noteId(kind: number): void {
    this.#atId = false
    const { bytes, start, end } = this.#reader
    if (kind !== token.string || this.ids.length === MOST_IDS || end - start > VALUE_BYTES) return
    this.ids.push(JSON.parse(bytes.toString('utf8', start, end)) as string)
  }
}
