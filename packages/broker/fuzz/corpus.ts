import { readFileSync } from 'node:fs'
import type { Random } from './random.ts'

/** Starting points of a target: `corpus/<name>.json`, a list of JSON values. */
export function corpus(name: string): readonly unknown[] {
  return JSON.parse(readFileSync(new URL(`./corpus/${name}.json`, import.meta.url), 'utf8'))
}

/** Values that nobody ordered. */
export function anyValue(random: Random, depth = 3): unknown {
  if (depth > 0 && random.once(3)) return random.list(4, () => anyValue(random, depth - 1))
  if (depth > 0 && random.once(3)) return anyObject(random, depth)
  return random.pick<unknown>([
    null,
    true,
    false,
    0,
    -1,
    1e21,
    0.1,
    2 ** 53,
    '',
    'auto',
    'text',
    'user',
    'https://x.example/',
    'data:image/png;base64,AAAA',
    '#/$defs/a',
    random.text(12),
  ])
}

function anyObject(random: Random, depth: number): unknown {
  // Not by assignment: a key called __proto__ stays a plain key.
  const names = random.list(4, () => (random.once(2) ? random.pick(NAMES) : random.text(6)))
  return Object.fromEntries(names.map((name) => [name, anyValue(random, depth - 1)]))
}

/** Field names of all request families. */
const NAMES = [
  ...['model', 'messages', 'tools', 'tool_choice', 'stream', 'stream_options', 'max_tokens', 'n', 'store'],
  ...[
    'max_completion_tokens',
    'max_output_tokens',
    'service_tier',
    'metadata',
    'user',
    'input',
    'background',
  ],
  ...['previous_response_id', 'conversation', 'instructions', 'reasoning', 'text', 'include', 'prompt'],
  ...['role', 'content', 'tool_calls', 'tool_call_id', 'name', 'refusal', 'audio', 'type', 'function', 'id'],
  ...['arguments', 'parameters', 'description', 'strict', 'image_url', 'url', 'file', 'file_id', 'file_data'],
  ...[
    '$ref',
    '$id',
    '$schema',
    '$defs',
    'properties',
    'items',
    'anyOf',
    '__proto__',
    'constructor',
    'toString',
  ],
]

/** A copy of a value in which a few parts are something else, gone or there twice. */
export function shaken(random: Random, value: unknown, odds = 12): unknown {
  if (random.once(odds)) return anyValue(random)
  if (Array.isArray(value)) {
    return value.flatMap((item) =>
      random.once(odds) ? (random.once(2) ? [] : [item, item]) : [shaken(random, item, odds)],
    )
  }
  if (typeof value !== 'object' || value === null) return value
  const fields = Object.entries(value).flatMap(([name, item]) =>
    random.once(odds * 2)
      ? []
      : [[random.once(odds * 2) ? random.pick(NAMES) : name, shaken(random, item, odds)]],
  )
  if (random.once(odds / 2)) fields.push([random.pick(NAMES), anyValue(random)])
  return Object.fromEntries(fields)
}
