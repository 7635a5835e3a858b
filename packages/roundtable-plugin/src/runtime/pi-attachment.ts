import { randomBytes } from 'node:crypto'
import { constants } from 'node:fs'
import { open, rename, unlink } from 'node:fs/promises'
import { giveOpen, type HeldDirectory } from './held-directory.ts'
import type { Account } from './private-directory.ts'

/** A file for the worker of a channel. */
export interface NewAttachment {
  /** Safe: one name, without a slash. */
  readonly name: string
  readonly data: Uint8Array
}

const NEW = constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL | constants.O_NOFOLLOW

/**
 * Writes a file into a directory that a guest may change at any moment: under a name that nobody knows, then renamed
 * over what has the name, which is not followed.
 */
export async function putAttachment(
  directory: HeldDirectory,
  { name, data }: NewAttachment,
  owner: Account,
): Promise<void> {
  const draft = directory.at(`.draft-${randomBytes(8).toString('hex')}`)
  const file = await open(draft, NEW, 0o600)
  try {
    giveOpen(file.fd, owner, 0o600)
    await file.writeFile(data)
    await file.close()
    await takeName(directory, draft, name)
  } catch (cause) {
    await file.close().catch(() => {})
    await unlink(draft).catch(() => {})
    throw cause
  }
}

/** A directory that stands under the name is moved aside. */
async function takeName(directory: HeldDirectory, draft: string, name: string): Promise<void> {
  try {
    await rename(draft, directory.at(name))
  } catch (cause) {
    const { code } = cause as NodeJS.ErrnoException
    if (code !== 'EISDIR' && code !== 'ENOTEMPTY' && code !== 'EEXIST') throw cause
    directory.clear(name)
    await rename(draft, directory.at(name))
  }
}
