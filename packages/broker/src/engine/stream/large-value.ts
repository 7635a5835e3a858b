import { PIECE_BYTES, type Pieces } from '../call/in-pieces.ts'
import { CallRefusal } from '../call/refusal.ts'
import { JsonProblem } from '../json/json-problem.ts'
import { JsonReader, token } from '../json/json-reader.ts'

/** Most values that are built, lists and objects included: memory for more takes long to tidy up. */
const MOST_VALUES = 262_144
/** Long lists that no client puts together: one entry per token, and per token that it might have been. */
const LEFT_OUT: ReadonlySet<string> = new Set(['logprobs', 'top_logprobs'])
/** Longer ones are nothing that a family looks at, and take long to read. */
const NUMBER_BYTES = 64

const BACKSLASH = 0x5c
const U = 0x75

type Container = Record<string, unknown> | unknown[]

/**
 * What `JSON.parse` makes of a text, built piece by piece: the parser would hold up everybody else. Objects have no
 * prototype; a number of more than 64 characters, and what stands under `logprobs`, becomes `null`. Yields after
 * every piece.
 * @throws CallRefusal `upstream_invalid` for what is no JSON, nests deeper than 64, repeats a name or has more than
 * 262,144 values.
 */
export function* largeValue(bytes: Uint8Array): Pieces<unknown> {
  const reader = new JsonReader(bytes)
  const builder = new Builder()
  try {
    for (;;) {
      const kind = reader.next()
      if (kind === token.done) return builder.top
      if (kind === token.more) {
        yield
        reader.allow(PIECE_BYTES)
      } else if (kind === token.key) builder.name = reader.name
      else if (kind === token.objectStart) builder.open(Object.create(null))
      else if (kind === token.arrayStart) builder.open([])
      else if (kind === token.objectEnd || kind === token.arrayEnd) builder.close()
      else builder.put(kind === token.string ? yield* text(reader) : scalar(reader, kind))
    }
  } catch (error) {
    if (error instanceof JsonProblem) throw new CallRefusal('upstream_invalid', { retry: false })
    throw error
  }
}

class Builder {
  top: unknown
  /** Under which the next value goes, when that is into an object. */
  name = ''
  readonly #open: Container[] = []
  /** How many containers are open below one that is left out, itself included. */
  #leftOut = 0
  #left = MOST_VALUES

  open(container: Container): void {
    if (this.#leftOut > 0 || this.#isLeftOut()) {
      if (this.#leftOut === 0) this.put(null)
      this.#leftOut += 1
      return
    }
    this.put(container)
    this.#open.push(container)
  }

  close(): void {
    if (this.#leftOut > 0) this.#leftOut -= 1
    else this.#open.pop()
  }

  put(value: unknown): void {
    if (this.#leftOut > 0) return
    this.#left -= 1
    if (this.#left < 0) throw new CallRefusal('upstream_invalid', { retry: false })
    const container = this.#open.at(-1)
    if (container === undefined) this.top = value
    else if (Array.isArray(container)) container.push(value)
    else container[this.name] = value
  }

  #isLeftOut(): boolean {
    const container = this.#open.at(-1)
    return container !== undefined && !Array.isArray(container) && LEFT_OUT.has(this.name)
  }
}

function scalar({ bytes, start, end }: JsonReader, kind: number): unknown {
  if (kind === token.number) {
    return end - start > NUMBER_BYTES ? null : Number(bytes.toString('latin1', start, end))
  }
  if (kind === token.null) return null
  return kind === token.true
}

function* text(reader: JsonReader): Pieces<string> {
  const { bytes, start, end, escaped } = reader
  if (end - start <= PIECE_BYTES) return reader.text(start, end, escaped)
  let whole = ''
  for (let from = start + 1; from < end - 1; ) {
    const to = cutBefore(bytes, Math.min(from + PIECE_BYTES, end - 1))
    const piece = bytes.toString('utf8', from, to)
    whole += escaped ? (JSON.parse(`"${piece}"`) as string) : piece
    from = to
    yield
  }
  return whole
}

/** The last place up to `at` that is neither within a character nor within an escape of a checked JSON string. */
function cutBefore(bytes: Buffer, at: number): number {
  let cut = at
  while (((bytes[cut] as number) & 0xc0) === 0x80) cut -= 1
  for (let back = 1; back <= 5; back += 1) {
    if (bytes[cut - back] !== BACKSLASH) continue
    let first = cut - back
    while (bytes[first - 1] === BACKSLASH) first -= 1
    const begins = (cut - back - first) % 2 === 0
    const length = bytes[cut - back + 1] === U ? 6 : 2
    return begins && length > back ? cut - back : cut
  }
  return cut
}
