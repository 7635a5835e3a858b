import { randomBytes } from 'node:crypto'
import {
  closeSync,
  constants,
  fchmodSync,
  fchownSync,
  fsyncSync,
  mkdirSync,
  openSync,
  renameSync,
  unlinkSync,
} from 'node:fs'
import { join } from 'node:path'
import type { Account } from './private-directory.ts'

const DIRECTORY = constants.O_RDONLY | constants.O_DIRECTORY | constants.O_NOFOLLOW

/** More replacements than this for one entry means that somebody plays with us; then it is an error. */
const TRIES = 8

/**
 * A directory held open. Whoever may write around it can move it, put a link in its place or plant links inside: what
 * is done through {@link at} still happens in this directory, and nowhere else, as long as the last part of the path
 * is not followed.
 */
export class HeldDirectory implements Disposable {
  readonly #path: string
  #descriptor: number | undefined

  private constructor(path: string, descriptor: number) {
    this.#path = path
    this.#descriptor = descriptor
  }

  /** Opens a directory; a link in its place is an error (`ENOTDIR` or `ELOOP`), and so is anything else. */
  static open(path: string): HeldDirectory {
    return new HeldDirectory(path, openSync(path, DIRECTORY))
  }

  /** The directory itself, for `readdir`. */
  get path(): string {
    return this.at('.')
  }

  /** A path to an entry of this very directory. `name` is one name, without a slash. */
  at(name: string): string {
    if (this.#descriptor === undefined) throw new TypeError('the directory was closed')
    // Linux alone can go on from a descriptor; elsewhere there is no container that could race.
    if (process.platform !== 'linux') return join(this.#path, name)
    return `/proc/self/fd/${this.#descriptor}/${name}`
  }

  /** Opens or makes a directory inside. A link or anything else in its place is an error. */
  strict(name: string, owner: Account): HeldDirectory {
    try {
      mkdirSync(this.at(name), { mode: 0o700 })
    } catch (cause) {
      if (codeOf(cause) !== 'EEXIST') throw cause
    }
    return this.#take(name, owner)
  }

  /**
   * Opens or makes a directory inside. A link or a file in its place is unlinked, and whatever else cannot be opened is
   * moved aside: none of it is followed.
   */
  child(name: string, owner: Account): HeldDirectory {
    for (let left = TRIES; ; left -= 1) {
      try {
        return this.#take(name, owner)
      } catch (cause) {
        if (left === 0) throw cause
        if (codeOf(cause) === 'ENOENT') makeUnlessThere(this.at(name))
        else this.clear(name)
      }
    }
  }

  /** Takes an entry out of the way: unlinked when it is no directory, else renamed. Nothing is followed. */
  clear(name: string): void {
    try {
      unlinkSync(this.at(name))
    } catch (cause) {
      if (codeOf(cause) === 'ENOENT') return
      renameSync(this.at(name), this.at(`.aside-${randomBytes(6).toString('hex')}`))
    }
  }

  /** Makes the names in it durable. */
  sync(): void {
    fsyncSync(this.#descriptor as number)
  }

  [Symbol.dispose](): void {
    if (this.#descriptor !== undefined) closeSync(this.#descriptor)
    this.#descriptor = undefined
  }

  #take(name: string, owner: Account): HeldDirectory {
    const descriptor = openSync(this.at(name), DIRECTORY)
    try {
      giveOpen(descriptor, owner, 0o700)
    } catch (cause) {
      closeSync(descriptor)
      throw cause
    }
    return new HeldDirectory(join(this.#path, name), descriptor)
  }
}

/** Sets the mode of an open file or directory and, for a root host, its owner. */
export function giveOpen(descriptor: number, owner: Account, mode: number): void {
  fchmodSync(descriptor, mode)
  if (process.geteuid?.() === 0) fchownSync(descriptor, owner.uid, owner.gid)
}

function makeUnlessThere(path: string): void {
  try {
    mkdirSync(path, { mode: 0o700 })
  } catch (cause) {
    if (codeOf(cause) !== 'EEXIST') throw cause
  }
}

function codeOf(error: unknown): string | undefined {
  return (error as NodeJS.ErrnoException | null)?.code
}
