import { createHash, randomBytes } from 'node:crypto'
import { closeSync, constants, fsyncSync, lstatSync, openSync, readdirSync, renameSync } from 'node:fs'
import { join } from 'node:path'
import { removeWorkspace } from '@sandbox/docker-worker'

const GONE = /^\.gone-([0-9a-f]{32})\.[0-9a-f]{12}$/

/**
 * Removes directories below a root, so that a crash in the middle leaves none that is half there: each is first renamed
 * to what nobody looks for, and what is left of that is removed with the next erasure or sweep.
 */
export class ErasedDirectories {
  readonly #root: string
  /** Removals under way, by name. */
  readonly #removing = new Map<string, Promise<void>>()

  constructor(root: string) {
    this.#root = root
  }

  /**
   * Removes a directory, and what earlier attempts left of one of that name. One that is not there is no error. Throws
   * what the file system throws; it may be tried again.
   */
  async erase(name: string): Promise<void> {
    // A name of its own may have all the bytes that a name may have.
    const mark = createHash('sha256').update(name).digest('hex').slice(0, 32)
    if (lstatSync(join(this.#root, name), { throwIfNoEntry: false }) !== undefined) {
      renameSync(join(this.#root, name), join(this.#root, `.gone-${mark}.${randomBytes(6).toString('hex')}`))
      this.#sync()
    }
    for (const left of this.#left()) if (GONE.exec(left)?.[1] === mark) await this.#remove(left)
    this.#sync()
  }

  /** Removes what earlier attempts left. Returns the names. What cannot be removed is no reason not to start: it stays. */
  async sweep(): Promise<readonly string[]> {
    const removed: string[] = []
    for (const name of this.#left().filter((one) => !this.#removing.has(one))) {
      await this.#remove(name).then(
        () => removed.push(name),
        () => {},
      )
    }
    return removed
  }

  #left(): readonly string[] {
    return readdirSync(this.#root).filter((name) => GONE.test(name))
  }

  /** Whoever asks meanwhile waits for the same removal. */
  #remove(name: string): Promise<void> {
    const under = this.#removing.get(name)
    if (under !== undefined) return under
    const removing = removeWorkspace(join(this.#root, name)).finally(() => this.#removing.delete(name))
    this.#removing.set(name, removing)
    return removing
  }

  #sync(): void {
    const root = openSync(this.#root, constants.O_RDONLY | constants.O_DIRECTORY)
    try {
      fsyncSync(root)
    } finally {
      closeSync(root)
    }
  }
}
