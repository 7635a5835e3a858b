import { randomBytes } from 'node:crypto'
import { chmodSync, lstatSync, readdirSync, renameSync, rmdirSync, unlinkSync } from 'node:fs'
import { join } from 'node:path'

/**
 * Removes a directory that a program has filled which runs no more. Not `rmSync`: that fails where directories are
 * closed to their owner, and on Node 22 where they are nested until no path reaches them. Follows no link.
 */
export function removeTree(root: string): void {
  chmodSync(root, 0o700)
  for (let names = readdirSync(root); names.length > 0; names = readdirSync(root)) {
    for (const name of names) removeEntry(root, name)
  }
  rmdirSync(root)
}

/** A directory gives its own directories to the root first, where their turn comes: no path gets long. */
function removeEntry(root: string, name: string): void {
  const path = join(root, name)
  if (!lstatSync(path).isDirectory()) {
    unlinkSync(path)
    return
  }
  chmodSync(path, 0o700)
  for (const inner of readdirSync(path)) {
    const entry = join(path, inner)
    if (lstatSync(entry).isDirectory()) {
      // To move a directory is to write to it.
      chmodSync(entry, 0o700)
      renameSync(entry, join(root, randomBytes(16).toString('hex')))
    } else unlinkSync(entry)
  }
  rmdirSync(path)
}
