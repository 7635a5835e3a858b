import { readdir, rename } from 'node:fs/promises'
import type { HeldDirectory } from './held-directory.ts'
import type { Account } from './private-directory.ts'

/** Each character is a byte: a guest's name need not be text, and read as text it would lead to nothing. */
const BYTES = 'latin1'

/**
 * Moves the conversations of a channel, its plain top-level `.jsonl` files, into `archive/<time>/`. Links and
 * directories stay where they are: nothing is followed. Returns the names.
 */
export async function archiveSessions(
  sessions: HeldDirectory,
  owner: Account,
  now: Date,
): Promise<readonly string[]> {
  const entries = await readdir(sessions.path, { withFileTypes: true, encoding: BYTES })
  const names = entries.filter((one) => one.isFile() && one.name.endsWith('.jsonl')).map(({ name }) => name)
  if (names.length === 0) return []
  using archive = sessions.child('archive', owner)
  using place = archive.child(stamp(now, await readdir(archive.path)), owner)
  for (const name of names) await rename(entryOf(sessions, name), entryOf(place, name))
  place.sync()
  sessions.sync()
  return names.map((name) => Buffer.from(name, BYTES).toString())
}

function entryOf({ path }: HeldDirectory, name: string): Buffer {
  return Buffer.concat([Buffer.from(`${path}/`), Buffer.from(name, BYTES)])
}

/** The time as a name; another one when it is taken, since nothing that was archived is ever written over. */
function stamp(now: Date, taken: readonly string[]): string {
  const name = now.toISOString().replaceAll(/[:.]/g, '-')
  if (!taken.includes(name)) return name
  let count = 2
  while (taken.includes(`${name}-${count}`)) count += 1
  return `${name}-${count}`
}
