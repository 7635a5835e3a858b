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

/**
 * Reads a JSON object of any size without building it, and answers these of its fields. Lets other work run every
 * few milliseconds.
 * @throws CallRefusal `upstream_invalid` for what is no JSON object, nests deeper than 64 or repeats a name. Rejects
 * with the signal's reason when that fires.
 */
export async function readFields(
  bytes: Uint8Array,
  { names, signal }: { readonly names: ReadonlySet<string>; readonly signal: AbortSignal },
): Promise<Record<string, unknown>> {
  const walk = new FieldWalk(bytes, names)
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
  return walk.found
}

class FieldWalk {
  readonly found: Record<string, unknown> = {}
  readonly #reader: JsonReader
  readonly #names: ReadonlySet<string>
  #depth = 0
  /** The field whose value is being read, and where that began. */
  #field: string | undefined
  #from = -1

  constructor(bytes: Uint8Array, names: ReadonlySet<string>) {
    this.#reader = new JsonReader(bytes)
    this.#names = names
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
    if (this.#depth !== 1) return
    this.#field = this.#names.has(name) ? name : undefined
    this.#from = -1
  }

  #value(kind: number): void {
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
}
