import { randomBytes } from 'node:crypto'
import {
  closeSync,
  constants,
  fchownSync,
  fstatSync,
  fsyncSync,
  lstatSync,
  openSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { removeTree } from './remove-tree.ts'

const { O_CREAT, O_DIRECTORY, O_EXCL, O_NOFOLLOW, O_NONBLOCK, O_RDONLY, O_WRONLY } = constants

/** As the sealed guest names it. */
const FILE = 'memory.json'

/** No guest of ours writes a larger one. */
const FILE_BYTES = 1024 * 1024

/** What a guest set aside, and what it left half written. Nobody reads them any more, and they may hold anything. */
const ASIDE = /^memory\.json(?:\.[a-z0-9]+)?\.(?:bad|tmp)$/

interface Entry {
  readonly scope?: unknown
  readonly speaker?: unknown
}

/**
 * Removes what sealed workers remember of one speaker in a workspace: the speaker's own facts; as the last writer of
 * notes that the channel shares, the speaker is no longer named. A memory that cannot be read, or not be written again,
 * goes as a whole. No turn may run in the workspace. Follows no link. True when something was removed. Throws what the
 * file system throws; the file then holds the old text or the new one.
 */
export function forgetSpeaker(workspace: string, speakerId: string): boolean {
  const asides = readdirSync(workspace).filter((name) => ASIDE.test(name))
  for (const name of asides) discard(join(workspace, name))
  const path = join(workspace, FILE)
  if (lstatSync(path, { throwIfNoEntry: false }) === undefined) return asides.length > 0
  const memory = readMemory(path)
  if (memory === undefined) {
    discard(path)
    return true
  }
  const kept = memory.entries.filter((entry) => entry.scope !== 'speaker' || entry.speaker !== speakerId)
  const entries = kept.map((entry) => (entry.speaker === speakerId ? { ...entry, speaker: '' } : entry))
  if (kept.length === memory.entries.length && entries.every((entry, index) => entry === kept[index])) {
    return asides.length > 0
  }
  const text = textOf({ ...memory, entries })
  if (text === undefined) discard(path)
  else replace(workspace, text)
  return true
}

/** `undefined` for what is nested so deeply that it can be read and not written: no guest of ours wrote that. */
function textOf(memory: object): string | undefined {
  try {
    return JSON.stringify(memory)
  } catch {
    return undefined
  }
}

function readMemory(path: string): { readonly entries: readonly Entry[] } | undefined {
  try {
    const memory: unknown = JSON.parse(readRegular(path))
    if (typeof memory !== 'object' || memory === null || !('entries' in memory)) return undefined
    const { entries } = memory
    const known = Array.isArray(entries) && entries.every((one) => typeof one === 'object' && one !== null)
    return known ? { ...memory, entries } : undefined
  } catch {
    return undefined
  }
}

/** Whatever a guest put in the file's place is neither followed nor waited for. */
function readRegular(path: string): string {
  const file = openSync(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK)
  try {
    const { size } = fstatSync(file)
    if (size > FILE_BYTES) throw new RangeError('too large')
    return new TextDecoder('utf-8', { fatal: true }).decode(readFileSync(file))
  } finally {
    closeSync(file)
  }
}

/** Whole or not at all, and from the first moment the workers' own. */
function replace(workspace: string, text: string): void {
  const { uid, gid } = lstatSync(workspace)
  const draft = join(workspace, `${FILE}.${randomBytes(6).toString('hex')}.tmp`)
  const file = openSync(draft, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, 0o600)
  try {
    if (process.geteuid?.() === 0) fchownSync(file, uid, gid)
    writeFileSync(file, text)
    fsyncSync(file)
    renameSync(draft, join(workspace, FILE))
  } catch (cause) {
    rmSync(draft, { force: true })
    throw cause
  } finally {
    closeSync(file)
  }
  syncDirectory(workspace)
}

function discard(path: string): void {
  if (lstatSync(path).isDirectory()) removeTree(path)
  else rmSync(path)
}

function syncDirectory(path: string): void {
  const directory = openSync(path, O_RDONLY | O_DIRECTORY)
  try {
    fsyncSync(directory)
  } finally {
    closeSync(directory)
  }
}
