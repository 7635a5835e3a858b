import type { CallUsage } from '../call/call-event.ts'
import { CallRefusal } from '../call/refusal.ts'
import type { DeltaText } from './family.ts'

type JsonObject = Readonly<Record<string, unknown>>

/** `value[key]` when both are objects. */
export function objectAt(value: unknown, key: string): JsonObject | undefined {
  const found = isObject(value) && Object.hasOwn(value, key) ? value[key] : undefined
  return isObject(found) ? found : undefined
}

/** Whether a value is an object and no array. */
export function isObject(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** What no client strings together: kinds and places. */
const WHOLE: ReadonlySet<string> = new Set(['type', 'index'])
/** JSON text, in pieces. */
const JSON_TEXT: ReadonlySet<string> = new Set(['arguments', 'partial_json', 'input'])
const DEPTH = 8
/** Most values in one delta: real ones have a few. */
const MOST_VALUES = 16_384

/**
 * Every text in a delta, each with the name of its block: the path to it, with an `index` field in place of the
 * position where there is one. So a field that nobody has heard of yet is followed too.
 * @throws CallRefusal `upstream_invalid` for more values than any delta has.
 */
export function deltaTexts(delta: unknown, block: string): DeltaText[] {
  const found: Found = { texts: [], left: MOST_VALUES }
  collect(found, delta, { block, key: '', depth: 0 })
  return found.texts
}

interface Found {
  readonly texts: DeltaText[]
  /** How many values may still come. */
  left: number
}

function collect(
  found: Found,
  node: unknown,
  at: { readonly block: string; readonly key: string; readonly depth: number },
): void {
  found.left -= 1
  if (found.left < 0) throw new CallRefusal('upstream_invalid', { retry: false })
  if (typeof node === 'string') {
    if (node !== '') found.texts.push({ block: at.block, text: node, deeper: JSON_TEXT.has(at.key) })
    return
  }
  if (typeof node !== 'object' || node === null || at.depth === DEPTH) return
  const depth = at.depth + 1
  if (Array.isArray(node)) {
    for (const [index, item] of node.entries()) {
      collect(found, item, { block: `${at.block}[${indexOf(item, index)}]`, key: at.key, depth })
    }
    return
  }
  for (const [key, item] of Object.entries(node)) {
    if (!WHOLE.has(key)) collect(found, item, { block: `${at.block}.${key}`, key, depth })
  }
}

/** Where a client puts this item: its own `index`, odd as it may be, or else its position. */
export function indexOf(item: unknown, position: number): string {
  const own = isObject(item) ? item.index : undefined
  return typeof own === 'number' || typeof own === 'string' ? String(own).slice(0, 128) : String(position)
}

/** Token counts, from the fields that are counts. Absent when there are none. */
export function usageFrom(counts: Readonly<Record<keyof CallUsage, unknown>>): CallUsage | undefined {
  let usage: { -readonly [K in keyof CallUsage]: number } | undefined
  for (const name of Object.keys(counts) as (keyof CallUsage)[]) {
    const count = counts[name]
    if (!Number.isSafeInteger(count) || (count as number) < 0) continue
    usage ??= {}
    usage[name] = count as number
  }
  return usage
}

const encoder = new TextEncoder()

/** An event, ready to send. */
export function eventBytes(data: object, type?: string): Uint8Array {
  return encoder.encode(`${type === undefined ? '' : `event: ${type}\n`}data: ${JSON.stringify(data)}\n\n`)
}
