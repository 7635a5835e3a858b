import {
  closeSync,
  constants,
  fstatSync,
  fsyncSync,
  openSync,
  readFileSync,
  renameSync,
  unlinkSync,
  writeFileSync,
} from 'node:fs'
import { dirname } from 'node:path'
import { GuestError } from './errors.ts'

const { O_CREAT, O_DIRECTORY, O_EXCL, O_NOFOLLOW, O_NONBLOCK, O_RDONLY, O_WRONLY } = constants

/**
 * Replaces a file in one step, mode 0600: a temporary file beside it, fsync, rename, fsync of the directory.
 * After a crash the file holds the old text or the new one. A link in its place is replaced, never followed.
 * Throws what the file system throws, and leaves no temporary file behind.
 */
export function writeFileAtomic(path: string, text: string): void {
  const temporary = `${path}.${randomSuffix()}.tmp`
  const file = openSync(temporary, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, 0o600)
  try {
    try {
      writeFileSync(file, text)
      fsyncSync(file)
    } finally {
      closeSync(file)
    }
    renameSync(temporary, path)
  } catch (error) {
    unlinkSync(temporary)
    throw error
  }
  syncDirectory(dirname(path))
}

/**
 * The text of a regular file, or `undefined` when there is none. Throws a {@link GuestError} `file_invalid` for
 * a link, a directory, a pipe, a file over `maxBytes`, bytes that are no UTF-8, and every read error.
 */
export function readSmallFile(path: string, maxBytes: number): string | undefined {
  try {
    return readRegular(path, maxBytes)
  } catch (cause) {
    if (isCode(cause, 'ENOENT')) return undefined
    if (GuestError.isInstance(cause)) throw cause
    throw new GuestError('file_invalid', `${path}: cannot be read`, { cause })
  }
}

/**
 * Moves a bad file out of the way, to `<path>.bad`; an earlier one there is replaced, so they cannot pile up.
 * Returns false when the file stays where it is.
 */
export function setAside(path: string): boolean {
  for (const target of [`${path}.bad`, `${path}.${randomSuffix()}.bad`]) {
    try {
      renameSync(path, target)
      return true
    } catch {
      // The first target may be a directory; the second is a new name.
    }
  }
  return false
}

function readRegular(path: string, maxBytes: number): string {
  const file = openSync(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK)
  try {
    const stat = fstatSync(file)
    if (!stat.isFile()) throw new GuestError('file_invalid', `${path}: not a regular file`)
    if (stat.size > maxBytes) throw new GuestError('file_invalid', `${path}: over ${maxBytes} bytes`)
    return new TextDecoder('utf-8', { fatal: true }).decode(readFileSync(file))
  } finally {
    closeSync(file)
  }
}

function syncDirectory(path: string): void {
  const directory = openSync(path, O_RDONLY | O_DIRECTORY)
  try {
    fsyncSync(directory)
  } finally {
    closeSync(directory)
  }
}

/** Only has to be new, not secret: an existing name is refused by `O_EXCL`. `node:crypto` would cost 5 ms. */
function randomSuffix(): string {
  return Math.random().toString(36).slice(2, 12).padEnd(10, '0')
}

function isCode(error: unknown, code: string): boolean {
  return error instanceof Error && 'code' in error && error.code === code
}
