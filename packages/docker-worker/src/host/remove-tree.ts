import { randomBytes } from 'node:crypto'
import { chmodSync, lstatSync, readdirSync, renameSync, rmdirSync, unlinkSync } from 'node:fs'
import { join } from 'node:path'
import { setImmediate as breath } from 'node:timers/promises'
import { BYTES, bytePath, onDisk } from './byte-path.ts'

/** After so many entries, or so many milliseconds, others get their turn. */
const BATCH = 256
const STRETCH_MS = 10

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
  const root = bytePath(directory)
  chmodSync(directory, 0o700)
  for (let names = readdirSync(directory, BYTES); names.length > 0; names = readdirSync(directory, BYTES)) {
    for (const name of names) yield* removeEntry(root, name)
  }
  rmdirSync(directory)
}

/** A directory gives its own directories to the root first, where their turn comes: no path gets long. */
function* removeEntry(root: string, name: string): Generator<void> {
  const path = onDisk(join(root, name))
  if (!lstatSync(path).isDirectory()) {
    unlinkSync(path)
    return yield
  }
  chmodSync(path, 0o700)
  for (const inner of readdirSync(path, BYTES)) {
    const entry = onDisk(join(root, name, inner))
    if (lstatSync(entry).isDirectory()) {
      // To move a directory is to write to it.
      chmodSync(entry, 0o700)
      renameSync(entry, onDisk(join(root, randomBytes(16).toString('hex'))))
    } else unlinkSync(entry)
    yield
  }
  rmdirSync(path)
}
