import { isDeepStrictEqual } from 'node:util'
import { decodeString } from '../../src/engine/json/decode-string.ts'
import { JsonProblem } from '../../src/engine/json/json-problem.ts'
import { JsonReader, token } from '../../src/engine/json/json-reader.ts'
import { anyValue, corpus, shaken } from '../corpus.ts'
import { jsonText } from '../json-text.ts'
import type { Random } from '../random.ts'
import { type FuzzTarget, hold } from '../target.ts'

const seeds = [...corpus('chat'), ...corpus('responses'), ...corpus('json')]
const fatal = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })
const DEPTH = 64

/** Our reader against `JSON.parse`. */
export const json: FuzzTarget = {
  name: 'json',
  about: 'the JSON reader against JSON.parse: the same texts, the same values, in any pieces',
  run(random) {
    const bytes = random.mutated(Buffer.from(text(random)))
    const theirs = parse(bytes)
    const ours = read(bytes, random)
    if (ours === undefined) {
      hold(theirs === undefined || isStricter(bytes), 'JSON.parse takes what the reader refuses', bytes)
      return
    }
    hold(theirs !== undefined, 'the reader takes what JSON.parse refuses', bytes)
    const same = isDeepStrictEqual(ours.value, theirs.value)
    hold(same || isDeepStrictEqual(ours.value, plainly(bytes)), 'another value', bytes)
  },
}

/**
 * The value of a text whose strings are written plainly. V8 (seen in Node 24.21) now and then reads a name of one character
 * that is written as an escape, such as `"\\u0062"`, as a backslash; a string that stands alone it reads as it is.
 */
function plainly(bytes: Uint8Array): unknown {
  const strings = /"(?:[^"\\]|\\.)*"/gs
  return JSON.parse(fatal.decode(bytes).replace(strings, (one) => JSON.stringify(JSON.parse(one))))
}

function text(random: Random): string {
  if (random.once(30)) return deep(random)
  return jsonText(random, random.once(2) ? anyValue(random, 4) : shaken(random, random.pick(seeds)))
}

function deep(random: Random): string {
  const depth = 60 + random.below(8)
  return random.once(2)
    ? '['.repeat(depth) + ']'.repeat(depth)
    : `${'{"a":'.repeat(depth)}1${'}'.repeat(depth)}`
}

/** A name twice in one object, or nesting beyond the limit: what the reader refuses on purpose. */
function isStricter(bytes: Uint8Array): boolean {
  let twice = false
  const source = fatal.decode(bytes)
  const depthOf = (node: unknown): number =>
    typeof node === 'object' && node !== null ? 1 + Math.max(0, ...Object.values(node).map(depthOf)) : 0
  // Parsed names are there once; as many colons outside of strings as there are names means that none came twice.
  const colons = source.replace(/"(?:[^"\\]|\\.)*"/gs, '').split(':').length - 1
  const names = (node: unknown): number =>
    typeof node === 'object' && node !== null
      ? (Array.isArray(node) ? 0 : Object.keys(node).length) +
        Object.values(node).reduce<number>((sum, item) => sum + names(item), 0)
      : 0
  const value: unknown = JSON.parse(source)
  twice = colons !== names(value)
  return twice || depthOf(value) > DEPTH
}

function parse(bytes: Uint8Array): { value: unknown } | undefined {
  try {
    return { value: JSON.parse(fatal.decode(bytes)) }
  } catch {
    return undefined
  }
}

/** Builds the value from tokens, with allowances of any size. */
function read(bytes: Uint8Array, random: Random): { value: unknown } | undefined {
  const shift = random.below(4)
  const room = new Uint8Array(bytes.length + shift)
  room.set(bytes, shift)
  const reader = new JsonReader(room.subarray(shift))
  const most = random.pick([1, 3, 20, 100_000])
  const root: unknown[] = []
  const open: unknown[] = [root]
  const names: string[] = []
  const put = (value: unknown) => {
    const into = open.at(-1)
    if (Array.isArray(into)) into.push(value)
    else {
      const name = names.pop() as string
      Object.defineProperty(into, name, { value, enumerable: true, configurable: true, writable: true })
    }
  }
  try {
    for (;;) {
      const found = reader.next()
      if (found === token.done) return { value: root[0] }
      if (found === token.more) reader.allow(1 + random.below(most))
      else if (found === token.key) names.push(reader.name)
      else if (found === token.objectEnd || found === token.arrayEnd) open.pop()
      else if (found === token.objectStart || found === token.arrayStart) {
        const value = found === token.objectStart ? {} : []
        put(value)
        open.push(value)
      } else put(scalar(reader, found))
    }
  } catch (error) {
    hold(error instanceof JsonProblem, `the reader threw ${error}`, bytes)
    return undefined
  }
}

function scalar(reader: JsonReader, found: number): unknown {
  if (found === token.string)
    return decodeString(reader.bytes, reader.start + 1, reader.end - 1, reader.escaped)
  const source = reader.bytes.toString('latin1', reader.start, reader.end)
  return JSON.parse(source)
}
