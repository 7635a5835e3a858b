import { lstatSync, type Stats } from 'node:fs'
import { CredentialError } from '../errors.ts'
import { tokenProblem } from '../secret.ts'
import { isSameVersion, readPrivateFile } from './private-file.ts'

/** What {@link LastGoodFile} needs. */
export interface LastGoodFileOptions<T> {
  readonly path: string
  readonly maxBytes: number
  /** Makes the value; throws a CredentialError for text that cannot be used. */
  readonly parse: (text: string) => T
  /** Called once for each new problem of a file that was good before. What it throws is ignored. */
  readonly onProblem: ((problem: CredentialError) => void) | undefined
}

/** A version seen within this time of its last change may still change without looking different. */
const SETTLE_MS = 50

/**
 * The value of a private file, looked up by its metadata on each use: a changed file is used at once, a broken one
 * keeps the last good value and is reported, a deleted one refuses everything. No watcher, no timer.
 */
export class LastGoodFile<T> {
  readonly #options: LastGoodFileOptions<T>
  #value: { readonly it: T } | undefined
  #version: Stats | undefined
  #reported: string | undefined

  constructor(options: LastGoodFileOptions<T>) {
    this.#options = options
  }

  /**
   * The value to use now.
   *
   * @throws CredentialError `source_invalid` when the file is gone, or was never good.
   */
  current(): T {
    try {
      if (this.#unchanged()) return (this.#value as { it: T }).it
      return this.load()
    } catch (error) {
      if (this.#value === undefined) throw error
      this.#report(error as CredentialError)
      return this.#value.it
    }
  }

  /** Reads the file whether it changed or not; keeps nothing of a broken one. */
  load(): T {
    const { path, maxBytes, parse } = this.#options
    const { text, stats } = readPrivateFile(path, maxBytes)
    // Set first: a broken version is not read again for each call.
    this.#version = Math.abs(Date.now() - stats.mtimeMs) < SETTLE_MS ? undefined : stats
    const it = parse(text)
    this.#value = { it }
    this.#reported = undefined
    return it
  }

  #unchanged(): boolean {
    const { path } = this.#options
    const stats = lstatSync(path, { throwIfNoEntry: false })
    if (stats === undefined) {
      this.#value = undefined
      this.#version = undefined
      throw new CredentialError('source_invalid', `${path}: the file does not exist, nothing is handed out`)
    }
    return this.#value !== undefined && this.#version !== undefined && isSameVersion(stats, this.#version)
  }

  #report(problem: CredentialError): void {
    if (this.#reported === problem.message) return
    this.#reported = problem.message
    try {
      this.#options.onProblem?.(problem)
    } catch {}
  }
}

/**
 * A key as it stands in a file or a variable, without the white space around it.
 *
 * @throws CredentialError `source_invalid` that names the place.
 */
export function usableKey(text: string, where: string): string {
  const problem = tokenProblem(text)
  if (problem === undefined) return text.trim()
  throw new CredentialError('source_invalid', `${where}: the key ${problem}`)
}
