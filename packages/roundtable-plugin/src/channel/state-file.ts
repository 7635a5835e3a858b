import { randomBytes } from 'node:crypto'
import {
  closeSync,
  constants,
  existsSync,
  fstatSync,
  fsyncSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  realpathSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { basename, dirname, isAbsolute, join } from 'node:path'
import { SandboxPluginError } from '../errors.ts'
import { isWithin, privacyProblem } from '../runtime/private-directory.ts'

/**
 * A small private file that is replaced as a whole: what a reader finds is either the old text or the new one,
 * whenever the machine stops.
 */
export class StateFile {
  /** The real path. */
  readonly path: string

  /**
   * @param outside real directories that the file must not be in: a worker sees what is in them
   * @throws SandboxPluginError `state_refused`
   */
  constructor(path: string, outside: readonly string[]) {
    if (!isAbsolute(path)) throw refused(path, 'is not absolute. Give the whole path')
    const directory = dirname(path)
    mkdirSync(directory, { recursive: true, mode: 0o700 })
    const real = realpathSync(directory)
    this.path = join(real, basename(path))
    if (outside.some((root) => isWithin(this.path, root))) {
      throw refused(path, 'is inside the run root or the workspace root. Workers see those: put it elsewhere')
    }
    const problem = privacyProblem(real, ownAccount())
    if (problem !== undefined) throw refused(path, `is in a directory that ${problem}`)
    this.#dropTemporary(real)
  }

  /**
   * The text; `undefined` when there is no file.
   * @throws SandboxPluginError `state_refused` for anything but a private regular file of this account, `state_invalid`
   * for one that is no text
   */
  read(): string | undefined {
    const file = this.#open()
    if (file === undefined) return undefined
    try {
      const stat = fstatSync(file)
      const uid = process.geteuid?.()
      if (!stat.isFile()) throw refused(this.path, 'is not a regular file. Move it away')
      if (uid !== undefined && stat.uid !== uid)
        throw refused(this.path, `belongs to uid ${stat.uid}, not ${uid}`)
      if (uid !== undefined && (stat.mode & 0o077) !== 0) {
        throw refused(this.path, `is open to other accounts. Run: chmod 600 ${this.path}`)
      }
      return this.#textOf(readFileSync(file))
    } finally {
      closeSync(file)
    }
  }

  /**
   * Replaces the text: a new file of a random name, flushed, renamed, and the directory flushed.
   * @throws SandboxPluginError `state_unwritable`; the old text is still there
   */
  write(text: string): void {
    const directory = dirname(this.path)
    const fresh = join(directory, `${this.#prefix}${randomBytes(8).toString('hex')}.tmp`)
    try {
      const file = openSync(fresh, 'wx', 0o600)
      try {
        writeFileSync(file, text)
        fsyncSync(file)
      } finally {
        closeSync(file)
      }
      renameSync(fresh, this.path)
      flushDirectory(directory)
    } catch (cause) {
      rmSync(fresh, { force: true })
      const reason = (cause as NodeJS.ErrnoException).code ?? 'unknown error'
      throw new SandboxPluginError('state_unwritable', `${this.path} cannot be written: ${reason}`, { cause })
    }
  }

  #textOf(bytes: Buffer): string {
    try {
      return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes)
    } catch (cause) {
      const problem = 'is not text in UTF-8, or is too large. Mend it, or move it away to start anew.'
      throw new SandboxPluginError('state_invalid', `${this.path} ${problem}`, { cause })
    }
  }

  get #prefix(): string {
    return `.${basename(this.path)}.`
  }

  /** What a crash in the middle of `write` left. */
  #dropTemporary(directory: string): void {
    for (const name of readdirSync(directory)) {
      if (!name.startsWith(this.#prefix) || !/^[0-9a-f]{16}\.tmp$/.test(name.slice(this.#prefix.length)))
        continue
      rmSync(join(directory, name), { force: true })
    }
  }

  #open(): number | undefined {
    // Without O_NONBLOCK a named pipe in its place would make the host wait for ever.
    const flags = constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK
    try {
      return openSync(this.path, flags)
    } catch (cause) {
      if ((cause as NodeJS.ErrnoException).code === 'ENOENT' && !existsSync(this.path)) return undefined
      throw new SandboxPluginError('state_refused', `${this.path} cannot be opened as a regular file.`, {
        cause,
      })
    }
  }
}

function flushDirectory(path: string): void {
  const directory = openSync(path, 'r')
  try {
    fsyncSync(directory)
  } finally {
    closeSync(directory)
  }
}

function ownAccount(): { uid: number; gid: number } {
  return { uid: process.geteuid?.() ?? -1, gid: process.getegid?.() ?? -1 }
}

function refused(path: string, problem: string): SandboxPluginError {
  return new SandboxPluginError('state_refused', `stateFile ${path} ${problem}.`)
}
