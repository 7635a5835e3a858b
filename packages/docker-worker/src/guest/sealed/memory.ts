import { join } from 'node:path'
import { readSmallFile, setAside, writeFileAtomic } from '../shared/atomic-file.ts'
import { GuestError } from '../shared/errors.ts'
import { isObject, jsonBytes, parseJson } from '../shared/json.ts'
import {
  MEMORY_BYTES,
  MEMORY_ENTRIES,
  MEMORY_KEY_CHARS,
  MEMORY_PREVIEW_BYTES,
  MEMORY_TEXT_CHARS,
  SPEAKER_MEMORY_BYTES,
  SPEAKER_MEMORY_ENTRIES,
  TOOL_RESULT_BYTES,
} from './limits.ts'
import { truncate } from './truncate.ts'

/** Whose facts: those of the turn's speaker, or notes that the channel shares. */
export type MemoryScope = 'speaker' | 'channel'

interface MemoryEntry {
  readonly scope: MemoryScope
  /** The owner of a speaker's fact; the last writer of a channel note. */
  readonly speaker: string
  readonly key: string
  readonly text: string
}

/** The name of the memory's file in the workspace. */
export const MEMORY_FILE = 'memory.json'

/** The file may be larger than what fits: over it, removal still works. */
const FILE_BYTES = 2 * MEMORY_BYTES

/** Kept free in a page for the cursor of the next one: a key of the longest kind. */
const CURSOR_BYTES = 1024

/**
 * What speakers and the channel asked to remember, in one file of the workspace. Which speaker is fixed when it
 * is opened. The arguments of every method come from the model: wrong ones throw a {@link GuestError}
 * `memory_refused`, and then nothing has changed.
 */
export class MemoryStore {
  readonly #path: string
  readonly #speaker: string
  #entries: readonly MemoryEntry[]
  /** True when a file that could not be read was set aside. */
  readonly quarantined: boolean

  /** Reads the workspace's memory; starts empty when there is none, and when its file is bad. */
  constructor(workspace: string, speakerId: string) {
    this.#path = join(workspace, MEMORY_FILE)
    this.#speaker = speakerId
    const loaded = load(this.#path)
    this.#entries = loaded ?? []
    this.quarantined = loaded === undefined
  }

  /** Stores one text under a key, in place of an earlier one. */
  set(input: Readonly<Record<string, unknown>>): string {
    const text = readText(input.text)
    const entry: MemoryEntry = { scope: readScope(input), speaker: this.#speaker, key: readKey(input), text }
    const entries = [...this.#without(entry.scope, entry.key), entry]
    const own = entries.filter(({ speaker }) => speaker === this.#speaker)
    if (entries.length > MEMORY_ENTRIES || own.length > SPEAKER_MEMORY_ENTRIES) {
      throw new GuestError('memory_refused', 'too many entries')
    }
    if (fileBytes(entries) > MEMORY_BYTES || fileBytes(own) > SPEAKER_MEMORY_BYTES) {
      throw new GuestError('memory_refused', 'too many bytes')
    }
    this.#replace(entries)
    return 'Saved.'
  }

  /**
   * A JSON array of `{ key, text }`, by key; with `keys_only` of `{ key }`. `key` and `query` filter. When more
   * follow than fit, the last element is `{ cursor }`: the value for `cursor` in the next call.
   */
  get(input: Readonly<Record<string, unknown>>): string {
    const scope = readScope(input)
    const key = input.key === undefined ? undefined : readKey(input)
    const query = readFilter(input.query, 'query')?.toLowerCase()
    const cursor = readFilter(input.cursor, 'cursor')
    const found = this.#visible(scope)
      .filter((entry) => key === undefined || entry.key === key)
      .filter((entry) => query === undefined || matches(entry, query))
      .filter((entry) => cursor === undefined || entry.key > cursor)
      .sort((one, other) => (one.key < other.key ? -1 : 1))
    return page(found, input.keys_only === true)
  }

  /** Removes one entry; works at full capacity too. */
  remove(input: Readonly<Record<string, unknown>>): string {
    const entries = this.#without(readScope(input), readKey(input))
    if (entries.length === this.#entries.length) return 'Nothing was stored under this key.'
    this.#replace(entries)
    return 'Removed.'
  }

  /** The newest entries as a JSON array of `{ key, text }`, as many as fit in 4 KiB. */
  preview(scope: MemoryScope): { readonly json: string; readonly left: number } {
    const newest = this.#visible(scope).reverse()
    const kept: { key: string; text: string }[] = []
    for (const { key, text } of newest) {
      if (jsonBytes(JSON.stringify([...kept, { key, text }])) > MEMORY_PREVIEW_BYTES) break
      kept.push({ key, text })
    }
    return { json: JSON.stringify(kept), left: newest.length - kept.length }
  }

  #visible(scope: MemoryScope): MemoryEntry[] {
    return this.#entries.filter((entry) => entry.scope === scope && this.#mayRead(entry))
  }

  #without(scope: MemoryScope, key: string): MemoryEntry[] {
    return this.#entries.filter(
      (entry) => entry.scope !== scope || entry.key !== key || !this.#mayRead(entry),
    )
  }

  #mayRead(entry: MemoryEntry): boolean {
    return entry.scope === 'channel' || entry.speaker === this.#speaker
  }

  #replace(entries: readonly MemoryEntry[]): void {
    writeFileAtomic(this.#path, fileText(entries))
    this.#entries = entries
  }
}

function fileText(entries: readonly MemoryEntry[]): string {
  return JSON.stringify({ version: 1, entries })
}

function fileBytes(entries: readonly MemoryEntry[]): number {
  return Buffer.byteLength(fileText(entries))
}

function page(found: readonly MemoryEntry[], keysOnly: boolean): string {
  const items: Record<string, string>[] = []
  for (const { key, text } of found) {
    const item = keysOnly ? { key } : { key, text }
    const isLast = items.length === found.length - 1
    const room = isLast ? TOOL_RESULT_BYTES : TOOL_RESULT_BYTES - CURSOR_BYTES
    const measure = (last: Record<string, string>) => jsonBytes(JSON.stringify([...items, last]))
    if (measure(item) <= room) {
      items.push(item)
      continue
    }
    const previous = items.at(-1)?.key
    if (previous !== undefined) return JSON.stringify([...items, { cursor: previous }])
    items.push({ key, text: truncate(text, room, (candidate) => measure({ key, text: candidate })) })
  }
  return JSON.stringify(items)
}

function matches(entry: MemoryEntry, query: string): boolean {
  return entry.key.toLowerCase().includes(query) || entry.text.toLowerCase().includes(query)
}

function readScope(input: Readonly<Record<string, unknown>>): MemoryScope {
  if (input.scope === 'speaker' || input.scope === 'channel') return input.scope
  throw new GuestError('memory_refused', 'scope must be "speaker" or "channel"')
}

function readKey(input: Readonly<Record<string, unknown>>): string {
  const key = typeof input.key === 'string' ? input.key.trim() : ''
  if (key !== '' && key.length <= MEMORY_KEY_CHARS) return key
  throw new GuestError('memory_refused', `key must be a text of 1 to ${MEMORY_KEY_CHARS} characters`)
}

function readText(text: unknown): string {
  if (typeof text === 'string' && text.trim() !== '' && text.length <= MEMORY_TEXT_CHARS) return text
  throw new GuestError('memory_refused', `text must be a text of 1 to ${MEMORY_TEXT_CHARS} characters`)
}

function readFilter(value: unknown, name: string): string | undefined {
  if (value === undefined || typeof value === 'string') return value
  throw new GuestError('memory_refused', `${name} must be a text`)
}

/** The stored entries, or `undefined` when the file was bad and has been set aside. */
function load(path: string): readonly MemoryEntry[] | undefined {
  try {
    const text = readSmallFile(path, FILE_BYTES)
    return text === undefined ? [] : readEntries(text)
  } catch (error) {
    if (!GuestError.isInstance(error)) throw error
    setAside(path)
    return undefined
  }
}

function readEntries(text: string): readonly MemoryEntry[] {
  const file = parseJson(text)
  if (!isObject(file) || file.version !== 1 || !Array.isArray(file.entries)) {
    throw new GuestError('file_invalid', `${MEMORY_FILE}: not a memory of version 1`)
  }
  const entries = file.entries.map(readEntry)
  const names = new Set(
    entries.map(({ scope, speaker, key }) =>
      JSON.stringify([scope, scope === 'speaker' ? speaker : '', key]),
    ),
  )
  if (entries.length > MEMORY_ENTRIES || names.size !== entries.length) {
    throw new GuestError('file_invalid', `${MEMORY_FILE}: too many entries, or one twice`)
  }
  return entries
}

function readEntry(value: unknown): MemoryEntry {
  if (!isObject(value) || typeof value.speaker !== 'string') {
    throw new GuestError('file_invalid', `${MEMORY_FILE}: an entry of a wrong shape`)
  }
  try {
    return {
      scope: readScope(value),
      speaker: value.speaker,
      key: readKey(value),
      text: readText(value.text),
    }
  } catch (cause) {
    throw new GuestError('file_invalid', `${MEMORY_FILE}: an entry of a wrong shape`, { cause })
  }
}
