import { randomBytes } from 'node:crypto'
import {
  chmodSync,
  closeSync,
  constants,
  existsSync,
  lstatSync,
  openSync,
  readdirSync,
  renameSync,
  rmdirSync,
  unlinkSync,
} from 'node:fs'
import { join } from 'node:path'
import { setImmediate as breath } from 'node:timers/promises'
import { BYTES, bytePath, onDisk } from './byte-path.ts'

/** After so many entries, or so many milliseconds, others get their turn. */
const BATCH = 256
const STRETCH_MS = 10

const DIRECTORY = constants.O_RDONLY | constants.O_DIRECTORY | constants.O_NOFOLLOW
const BY_DESCRIPTOR = existsSync('/proc/self/fd')

/**
 * Removes a directory that a program has filled which runs no more. Not `rmSync`: that fails where directories are
 * closed to their owner, and on Node 22 where they are nested until no path reaches them. Follows no link: one in its own
 * place is removed.
 */
export function removeTree(root: string): void {
  const entries = removal(root)
  while (entries.next().done !== true);
}

/**
 * Removes a workspace and everything that a guest left in it, also what is closed to its owner or nested until no path
 * reaches it; other work goes on meanwhile. No worker may use it. Follows no link: one in its own place is removed. A
 * directory that is not there is no error. Throws what the file system throws; then it may be tried again.
 */
export async function removeWorkspace(directory: string): Promise<void> {
  if (lstatSync(directory, { throwIfNoEntry: false }) === undefined) return
  let count = 0
  let since = performance.now()
  for (const _ of removal(directory)) {
    count += 1
    if (count % BATCH !== 0 && performance.now() - since < STRETCH_MS) continue
    await breath()
    since = performance.now()
  }
}

/** Yields after each entry that is removed or moved. */
function* removal(directory: string): Generator<void> {
  // A plain process can put a link in the place of its own directory.
  if (lstatSync(directory).isSymbolicLink()) return unlinkSync(directory)
  const root = hold(bytePath(directory))
  try {
    for (let names = root.names(); names.length > 0; names = root.names()) {
      for (const name of names) yield* removeEntry(root.path, name)
    }
  } finally {
    root.close()
  }
  rmdirSync(directory)
}

/** A directory gives its own directories to the root first, where their turn comes: no path gets long. */
function* removeEntry(root: string, name: string): Generator<void> {
  const path = join(root, name)
  if (!lstatSync(onDisk(path)).isDirectory()) {
    unlinkSync(onDisk(path))
    return yield
  }
  const held = hold(path)
  try {
    for (const inner of held.names()) {
      const entry = join(held.path, inner)
      if (lstatSync(onDisk(entry)).isDirectory()) {
        // To move a directory is to write to it.
        openUp(entry)
        renameSync(onDisk(entry), onDisk(join(root, randomBytes(16).toString('hex'))))
      } else unlinkSync(onDisk(entry))
      yield
    }
  } finally {
    held.close()
  }
  rmdirSync(onDisk(path))
}

/** A directory that stays the same whatever is put in its place: a root host works where an account without rights writes. */
interface Held {
  /** Of bytes. Leads to it by its descriptor, where the system has such paths. */
  readonly path: string
  names(): string[]
  close(): void
}

/** Opens a directory, by a path of bytes. Throws `ENOTDIR` or `ELOOP` where it is none by now. */
function hold(path: string): Held {
  openUp(path)
  const descriptor = openSync(onDisk(path), DIRECTORY)
  const own = BY_DESCRIPTOR ? `/proc/self/fd/${descriptor}` : path
  return {
    path: own,
    names: () => readdirSync(onDisk(own), BYTES),
    close: () => closeSync(descriptor),
  }
}

/** Root needs no rights, and must give none: it could be to something else by now. */
function openUp(path: string): void {
  if (process.geteuid?.() !== 0) chmodSync(onDisk(path), 0o700)
}
