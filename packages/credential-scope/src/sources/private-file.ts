import { closeSync, constants, fstatSync, openSync, readFileSync, type Stats } from 'node:fs'
import { CredentialError } from '../errors.ts'

/** A file's text with the metadata of the very file that was read. */
export interface PrivateFile {
  readonly text: string
  readonly stats: Stats
}

/**
 * Reads a file that only its owner may read: mode 0600 or stricter, owned by this process's user, a regular
 * file, no link in place of it. All checks are made on the opened file, so they hold for what is read.
 *
 * @throws CredentialError `source_invalid` that says how to mend it; its `cause` has the system's error.
 */
export function readPrivateFile(path: string, maxBytes: number): PrivateFile {
  const fd = openNoFollow(path)
  try {
    const stats = fstatSync(fd)
    const problem = privacyProblem(stats, maxBytes)
    if (problem !== undefined) throw new CredentialError('source_invalid', `${path}: ${problem}`)
    return { text: readFileSync(fd, 'utf8'), stats }
  } catch (cause) {
    if (CredentialError.isInstance(cause)) throw cause
    throw new CredentialError('source_invalid', `${path}: the file cannot be read`, { cause })
  } finally {
    closeSync(fd)
  }
}

/** Whether two looks at a path saw the same file, not replaced and not written to in between. */
export function isSameVersion(a: Stats, b: Stats): boolean {
  return (
    a.mtimeMs === b.mtimeMs &&
    a.ctimeMs === b.ctimeMs &&
    a.ino === b.ino &&
    a.size === b.size &&
    a.dev === b.dev
  )
}

function openNoFollow(path: string): number {
  try {
    return openSync(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK)
  } catch (cause) {
    const code = (cause as NodeJS.ErrnoException).code
    const problem =
      code === 'ENOENT'
        ? 'the file does not exist'
        : code === 'ELOOP'
          ? 'a symbolic link is not followed, name the file itself'
          : `the file cannot be opened (${code})`
    throw new CredentialError('source_invalid', `${path}: ${problem}`, { cause })
  }
}

function privacyProblem(stats: Stats, maxBytes: number): string | undefined {
  if (!stats.isFile()) return 'it is not a regular file'
  const uid = process.geteuid?.()
  if (uid !== undefined && stats.uid !== uid) {
    return `it belongs to user ${stats.uid}, this process is user ${uid}: chown it`
  }
  const mode = stats.mode & 0o777
  if (process.platform !== 'win32' && (mode & 0o077) !== 0) {
    return `its mode is 0${mode.toString(8)}, others may read it: chmod 0600`
  }
  if (stats.size > maxBytes) return `it is larger than ${maxBytes} bytes`
  return undefined
}
