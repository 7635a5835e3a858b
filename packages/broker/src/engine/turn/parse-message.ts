import { setImmediate as letOthersRun } from 'node:timers/promises'
import { parseObject } from '../call/read-body.ts'
import { CallRefusal } from '../call/refusal.ts'
import { JsonProblem } from '../json/json-problem.ts'
import { JsonReader, type Token, token } from '../json/json-reader.ts'

/** Up to this size a message is parsed in one piece, which takes no more than a few milliseconds. */
const ONE_PIECE_BYTES = 256 * 1024
/** Read between two looks at the clock. */
const PIECE_BYTES = 64 * 1024
/** Work of one piece, about: others run in between. */
const PIECE_MS = 5

/**
 * A JSON object from bytes, as `parseObject` reads it, of any size: large ones are read piece by piece, so that others
 * run in between. In those a name may stand once per object.
 * @throws CallRefusal `body_invalid`. Rejects with the signal's reason when that fires.
 */
export async function parseMessage(bytes: Uint8Array, signal: AbortSignal): Promise<Record<string, unknown>> {
  if (bytes.byteLength <= ONE_PIECE_BYTES) return parseObject(bytes)
  const builder = new ValueBuilder(bytes)
  try {
    for (let sinceMs = performance.now(); builder.run(); ) {
      if (performance.now() - sinceMs < PIECE_MS) continue
      await letOthersRun()
      signal.throwIfAborted()
      sinceMs = performance.now()
    }
  } catch (error) {
    if (error instanceof JsonProblem) throw new CallRefusal('body_invalid')
    throw error
  }
  const { value } = builder
  if (typeof value !== 'object' || value === null || Array.isArray(value))
    throw new CallRefusal('body_invalid')
  return value as Record<string, unknown>
}

type Container = unknown[] | Record<string, unknown>

class ValueBuilder {
  readonly #reader: JsonReader
  readonly #open: { readonly container: Container; name: string }[] = []
  value: unknown

  constructor(bytes: Uint8Array) {
    this.#reader = new JsonReader(bytes)
  }

  /** Reads a piece; false at the end. */
  run(): boolean {
    this.#reader.allow(PIECE_BYTES)
    for (;;) {
      const found = this.#reader.next()
      if (found === token.more) return true
      if (found === token.done) return false
      this.#take(found)
    }
  }

  #take(found: Token): void {
    switch (found) {
      case token.key:
        ;(this.#open.at(-1) as { name: string }).name = this.#reader.name
        return
      case token.objectEnd:
      case token.arrayEnd:
        this.#open.pop()
        return
      case token.objectStart:
      case token.arrayStart: {
        const container: Container = found === token.objectStart ? {} : []
        this.#put(container)
        this.#open.push({ container, name: '' })
        return
      }
      default:
        this.#put(this.#scalar(found))
    }
  }

  #scalar(found: Token): unknown {
    const { bytes, start, end, escaped } = this.#reader
    if (found === token.string) return this.#reader.text(start, end, escaped)
    return JSON.parse(bytes.toString('latin1', start, end))
  }

  #put(value: unknown): void {
    const open = this.#open.at(-1)
    if (open === undefined) this.value = value
    else if (Array.isArray(open.container)) open.container.push(value)
    else if (open.name !== '__proto__') open.container[open.name] = value
  }
}
