import type { Dir, Stats } from 'node:fs'
import { lstat, opendir } from 'node:fs/promises'
import { join } from 'node:path'
import { DriverError, stopIfAborted } from '../errors.ts'
import { BYTES, bytePath, onDisk } from './byte-path.ts'

/** Options of {@link workspaceSize}. */
export interface WorkspaceSizeOptions {
  /** Counting ends when the files take more than this. */
  readonly limitBytes: number
  /** Counting ends when there are more files, directories and others than this. Default 100,000. */
  readonly limitEntries?: number
  readonly signal?: AbortSignal
}

/** What {@link workspaceSize} counted. */
export interface WorkspaceSize {
  /** Disk that is taken, in blocks: a sparse file counts what it takes. Up to where counting ended. */
  readonly bytes: number
  /** Files, directories, links and others below the directory. */
  readonly entries: number
  /** The limit that was passed; absent when everything fits. */
  readonly over?: 'bytes' | 'entries' | 'depth'
}

const DEFAULT_ENTRIES = 100_000
const BLOCK_BYTES = 512
/** Deeper than this nothing is looked at: `over` says so. */
const MAX_DEPTH = 128
/** What the system says of a place that is no longer what it was. */
const VANISHED = new Set(['ENOENT', 'ENOTDIR', 'ELOOP'])

/**
 * Counts what is below a directory that a guest fills, without opening anything but directories: links are not
 * followed, FIFOs and devices are counted and never opened. What it does is bounded by the limits, whatever a guest has
 * planted. Files that vanish meanwhile are not counted; a directory that cannot be read, or has entries that
 * cannot be looked at, counts as `over`, since what is in it is unknown. A file with several names counts once. Rejects with `spec_invalid` when `directory` is none or a
 * link, with `options_invalid` for limits out of range, with `aborted`.
 */
export async function workspaceSize(
  directory: string,
  options: WorkspaceSizeOptions,
): Promise<WorkspaceSize> {
  const { limitBytes, limitEntries = DEFAULT_ENTRIES, signal } = options
  checkLimit('limitBytes', limitBytes)
  checkLimit('limitEntries', limitEntries)
  stopIfAborted(signal)
  const top = await lstat(directory).catch(() => undefined)
  if (!top?.isDirectory()) {
    throw new DriverError('spec_invalid', `The workspace is no directory, or a link: ${directory}.`)
  }
  const count = new Count(limitBytes, limitEntries)
  const waiting: Place[] = [{ path: bytePath(directory), depth: 0, ino: top.ino, dev: top.dev }]
  for (let place = waiting.pop(); place && count.over === undefined; place = waiting.pop()) {
    await countDirectory(place, waiting, count, signal)
  }
  return count.result()
}

interface Place {
  /** Of bytes. */
  readonly path: string
  readonly depth: number
  readonly ino: number
  readonly dev: number
}

async function countDirectory(
  place: Place,
  waiting: Place[],
  count: Count,
  signal: AbortSignal | undefined,
): Promise<void> {
  try {
    await countListing(place, waiting, count, signal)
  } catch (error) {
    if (error instanceof DriverError) throw error
    const { code = '' } = error as NodeJS.ErrnoException
    // What vanished meanwhile is not counted. Of anything else, nobody knows what is in it.
    if (!VANISHED.has(code)) count.over ??= code === 'ENAMETOOLONG' ? 'depth' : 'entries'
  }
}

/**
 * Rejects when the directory cannot be read (Node says so when it is opened, Bun when it is read), and when what is in
 * it cannot be looked at: a guest can take the right to search it away, or nest names until no path reaches them.
 */
async function countListing(
  place: Place,
  waiting: Place[],
  count: Count,
  signal: AbortSignal | undefined,
): Promise<void> {
  const listing = await openSame(place)
  if (listing === undefined) return
  // Leaving the loop closes the listing.
  for await (const { name } of listing) {
    stopIfAborted(signal)
    const path = join(place.path, name)
    const found = await look(path)
    if (!found) continue
    count.add(found)
    if (count.over !== undefined) return
    if (!found.isDirectory()) continue
    if (place.depth + 1 > MAX_DEPTH) {
      count.over = 'depth'
      return
    }
    waiting.push({ path, depth: place.depth + 1, ino: found.ino, dev: found.dev })
  }
}

async function look(path: string): Promise<Stats | undefined> {
  try {
    return await lstat(onDisk(path))
  } catch (error) {
    if (VANISHED.has((error as NodeJS.ErrnoException).code ?? '')) return undefined
    throw error
  }
}

/** Opens the directory that was seen: one that a link has taken the place of meanwhile is left alone. */
async function openSame({ path, ino, dev }: Place): Promise<Dir | undefined> {
  const listing = await opendir(onDisk(path), BYTES)
  const now = await look(path).catch(() => undefined)
  if (now?.isDirectory() && now.ino === ino && now.dev === dev) return listing
  await listing.close()
  return undefined
}

class Count {
  over: WorkspaceSize['over']
  readonly #limitBytes: number
  readonly #limitEntries: number
  readonly #seen = new Set<string>()
  #bytes = 0
  #entries = 0

  constructor(limitBytes: number, limitEntries: number) {
    this.#limitBytes = limitBytes
    this.#limitEntries = limitEntries
  }

  add(found: Stats): void {
    this.#entries++
    this.#bytes += this.#sizeOf(found)
    if (this.#entries > this.#limitEntries) this.over ??= 'entries'
    if (this.#bytes > this.#limitBytes) this.over ??= 'bytes'
  }

  result(): WorkspaceSize {
    const { over } = this
    return { bytes: this.#bytes, entries: this.#entries, ...(over === undefined ? {} : { over }) }
  }

  /** What it takes on the disk; another name of a file takes nothing. */
  #sizeOf(found: Stats): number {
    if (found.nlink > 1 && !found.isDirectory()) {
      const id = `${found.dev}:${found.ino}`
      if (this.#seen.has(id)) return 0
      this.#seen.add(id)
    }
    return found.blocks * BLOCK_BYTES
  }
}

function checkLimit(field: string, value: number): void {
  if (Number.isSafeInteger(value) && value >= 0) return
  throw new DriverError('options_invalid', `${field} has to be a whole number from 0.`)
}
