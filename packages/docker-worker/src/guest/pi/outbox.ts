import {
  closeSync,
  constants,
  fstatSync,
  lstatSync,
  mkdirSync,
  openSync,
  readdirSync,
  readSync,
  rmSync,
  unlinkSync,
  writeSync,
} from 'node:fs'
import { join } from 'node:path'
import { isSafeFileName, limits, type PiReplyFile } from '@sandbox/protocol'

const { O_CREAT, O_EXCL, O_NOFOLLOW, O_NONBLOCK, O_RDONLY, O_WRONLY } = constants

/** The reply files of a turn, and how many entries could not go along. */
export interface CollectedFiles {
  readonly files: readonly PiReplyFile[]
  readonly leftOut: number
}

/**
 * The directory of one turn's reply files. Whatever lies there goes along with the answer: regular files with safe
 * names, within the limits of the protocol. Links, pipes and directories never do.
 */
export class Outbox {
  readonly path: string
  readonly #parent: string

  constructor(workspace: string, turnId: string) {
    this.#parent = join(workspace, 'outbox')
    this.path = join(this.#parent, turnId)
  }

  /** Makes it, empty. What an earlier turn of this id left is gone; a link in its place is replaced, never followed. */
  open(): void {
    ownDirectory(this.#parent)
    rmSync(this.path, { recursive: true, force: true })
    mkdirSync(this.path, { mode: 0o700 })
  }

  /**
   * Writes a file under a safe name that is like the given one, `-2`, `-3` and so on when it is taken. Returns the
   * name. Throws `TypeError` for a size that no reply file may have, and what the file system throws.
   */
  save(name: string, bytes: Uint8Array): string {
    if (bytes.length < 1 || bytes.length > limits.REPLY_FILE_BYTES) {
      throw new TypeError(`A reply file has 1 to ${limits.REPLY_FILE_BYTES} bytes.`)
    }
    const [stem, ending] = safeParts(name)
    for (let count = 1; count <= 1000; count += 1) {
      const candidate = `${stem}${count === 1 ? '' : `-${count}`}${ending}`
      if (writeNew(join(this.path, candidate), bytes)) return candidate
    }
    throw new TypeError(`There are too many files with the name ${stem}${ending}.`)
  }

  /** Reads the files, by name, as many as may go along. Never throws: what cannot be read is left out. */
  collect(): CollectedFiles {
    const files: PiReplyFile[] = []
    let [total, leftOut] = [0, 0]
    for (const name of entriesOf(this.path)) {
      const bytes =
        files.length < limits.REPLY_FILES && isSafeFileName(name) && readFile(join(this.path, name))
      if (!bytes || total + bytes.length > limits.REPLY_FILES_TOTAL_BYTES) {
        leftOut += 1
        continue
      }
      total += bytes.length
      files.push({ name, data: bytes.toString('base64') })
    }
    return { files, leftOut }
  }

  /** Removes it with everything in it. Never throws. */
  clear(): void {
    try {
      rmSync(this.path, { recursive: true, force: true })
    } catch {
      // What cannot be removed is removed when a turn of this id begins.
    }
  }
}

/** Makes a directory, in place of a link or file that stands there. */
export function ownDirectory(path: string): void {
  const found = lstatSync(path, { throwIfNoEntry: false })
  if (found?.isDirectory()) return
  if (found) unlinkSync(path)
  mkdirSync(path, { recursive: true, mode: 0o700 })
}

/** A regular file of 1 to 10 MiB, read to its end; `undefined` for anything else. Follows no link, waits for no pipe. */
function readFile(path: string): Buffer | undefined {
  let file: number | undefined
  try {
    file = openSync(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK)
    const { size } = fstatSync(file)
    if (!fstatSync(file).isFile() || size < 1 || size > limits.REPLY_FILE_BYTES) return undefined
    // One byte more than it had: a file that grows meanwhile is no file that was checked.
    const bytes = Buffer.alloc(size + 1)
    const read = readSync(file, bytes, 0, size + 1, 0)
    return read === size ? bytes.subarray(0, size) : undefined
  } catch {
    return undefined
  } finally {
    if (file !== undefined) closeSync(file)
  }
}

function writeNew(path: string, bytes: Uint8Array): boolean {
  let file: number
  try {
    file = openSync(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, 0o600)
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'EEXIST') return false
    throw error
  }
  try {
    for (let at = 0; at < bytes.length; ) at += writeSync(file, bytes, at)
    return true
  } finally {
    closeSync(file)
  }
}

function entriesOf(path: string): readonly string[] {
  try {
    return readdirSync(path).sort()
  } catch {
    return []
  }
}

/** `a/b c.PNG` gives `b c` and `.png`: nothing of a path, nothing of a control character. */
function safeParts(name: string): [stem: string, ending: string] {
  const last = name.split(/[/\\]/).at(-1) ?? ''
  const [, plain = '', extension = ''] = /^(.*?)(?:\.([a-z0-9]{1,10}))?$/isu.exec(last) ?? []
  const stem = plain
    .replace(/[^\p{L}\p{N} _-]+/gu, '_')
    .trim()
    .slice(0, 80)
  return [stem === '' ? 'file' : stem, extension === '' ? '' : `.${extension.toLowerCase()}`]
}
