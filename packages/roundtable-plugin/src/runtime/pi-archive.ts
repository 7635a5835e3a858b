import { readdir, rename } from 'node:fs/promises'
import type { HeldDirectory } from './held-directory.ts'
import type { Account } from './private-directory.ts'

/**
 * Moves the conversations of a channel, its plain top-level `.jsonl` files, into `archive/<time>/`. Links and
 * directories stay where they are: nothing is followed. Returns the names.
 */
export async function archiveSessions(
  sessions: HeldDirectory,
  owner: Account,
  now: Date,
): Promise<readonly string[]> {
  const entries = await readdir(sessions.path, { withFileTypes: true })
  const names = entries.filter((one) => one.isFile() && one.name.endsWith('.jsonl')).map(({ name }) => name)
  if (names.length === 0) return []
  using archive = sessions.child('archive', owner)
  using place = archive.child(stamp(now, await readdir(archive.path)), owner)
  for (const name of names) await rename(sessions.at(name), place.at(name))
  place.sync()
  sessions.sync()
  return names
}

/** The time as a name; another one when it is taken, since nothing that was archived is ever written over. */
function stamp(now: Date, taken: readonly string[]): string {
  const name = now.toISOString().replaceAll(/[:.]/g, '-')
  if (!taken.includes(name)) return name
  let count = 2
  while (taken.includes(`${name}-${count}`)) count += 1
  return `${name}-${count}`
}
