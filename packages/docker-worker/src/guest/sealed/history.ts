import { join } from 'node:path'
import { readSmallFile, setAside, writeFileAtomic } from '../shared/atomic-file.ts'
import { GuestError } from '../shared/errors.ts'
import { isObject, parseJson } from '../shared/json.ts'
import { HISTORY_ENTRIES, HISTORY_ENTRY_BYTES } from './limits.ts'
import { truncate } from './truncate.ts'

/** One message of an earlier turn, as it is sent to the model. */
export interface HistoryEntry {
  readonly role: 'user' | 'assistant'
  readonly content: string
}

/** What an earlier turn left. */
export interface LoadedHistory {
  readonly entries: readonly HistoryEntry[]
  /** True when a file that could not be read was set aside. */
  readonly quarantined: boolean
}

/** The name of the history's file in the workspace. */
export const HISTORY_FILE = 'history.json'

const FILE_BYTES = 512 * 1024

/** The channel's history; empty when there is none, and when its file is bad, which is then set aside. */
export function loadHistory(workspace: string): LoadedHistory {
  const path = join(workspace, HISTORY_FILE)
  try {
    const text = readSmallFile(path, FILE_BYTES)
    return { entries: text === undefined ? [] : readEntries(text), quarantined: false }
  } catch (error) {
    if (!GuestError.isInstance(error)) throw error
    setAside(path)
    return { entries: [], quarantined: true }
  }
}

/** Adds one exchange and keeps the 20 newest entries. Throws what the file system throws. */
export function saveExchange(
  workspace: string,
  earlier: readonly HistoryEntry[],
  exchange: { readonly user: string; readonly assistant: string },
): void {
  const entries: HistoryEntry[] = [
    ...earlier,
    { role: 'user', content: truncate(exchange.user, HISTORY_ENTRY_BYTES) },
    { role: 'assistant', content: truncate(exchange.assistant, HISTORY_ENTRY_BYTES) },
  ]
  const file = { version: 1, entries: entries.slice(-HISTORY_ENTRIES) }
  writeFileAtomic(join(workspace, HISTORY_FILE), JSON.stringify(file))
}

function readEntries(text: string): HistoryEntry[] {
  const file = parseJson(text)
  if (!isObject(file) || file.version !== 1 || !Array.isArray(file.entries)) {
    throw new GuestError('file_invalid', `${HISTORY_FILE}: not a history of version 1`)
  }
  if (file.entries.length > HISTORY_ENTRIES || !file.entries.every(isEntry)) {
    throw new GuestError('file_invalid', `${HISTORY_FILE}: too many entries, or one of a wrong shape`)
  }
  return file.entries.map(({ role, content }) => ({ role, content: truncate(content, HISTORY_ENTRY_BYTES) }))
}

function isEntry(value: unknown): value is HistoryEntry {
  return (
    isObject(value) &&
    (value.role === 'user' || value.role === 'assistant') &&
    typeof value.content === 'string'
  )
}
