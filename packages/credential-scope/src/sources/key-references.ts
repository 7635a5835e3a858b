import { resolve } from 'node:path'
import { cached } from '../cached.ts'
import type { CredentialGetter } from '../credential-source.ts'
import { CredentialError } from '../errors.ts'
import { type RefreshingOptions, refreshingOAuth } from '../refreshing.ts'
import { fromCommand } from './from-command.ts'
import { LastGoodFile, usableKey } from './last-good-file.ts'
import { tokenStore } from './token-store.ts'

/** What {@link KeyReferences} needs. */
export interface KeyReferenceOptions {
  /** Paths are relative to it, and commands run in it. */
  readonly directory: string
  readonly env: Readonly<Record<string, string | undefined>>
  /** How each login service refreshes. */
  readonly logins: Readonly<Record<string, RefreshingOptions['refresh']>>
  readonly onProblem: ((problem: CredentialError) => void) | undefined
}

const KEY_BYTES = 64 * 1024
/** How long what a command printed is used, unless it says that it ends before. */
const COMMAND_TTL_MS = 60_000

/** What the references of a key file lead to. Each is opened once, however many rules name it. */
export class KeyReferences {
  readonly #options: KeyReferenceOptions
  readonly #files = new Map<string, LastGoodFile<string>>()
  /** Of commands and logins. */
  readonly #getters = new Map<string, CredentialGetter>()

  constructor(options: KeyReferenceOptions) {
    this.#options = options
  }

  /** The getter of a reference that is asked when it is needed; `undefined` for a variable or a file. */
  deferred(reference: string): CredentialGetter | undefined {
    if (!isDeferred(reference)) return undefined
    const known = this.#getters.get(reference)
    if (known !== undefined) return known
    const getter = reference.startsWith('command:')
      ? this.#command(reference.slice('command:'.length))
      : this.#login(reference)
    this.#getters.set(reference, getter)
    return getter
  }

  /**
   * What a variable or a file holds now.
   *
   * @throws CredentialError `source_invalid`, without the name of the key file.
   */
  read(reference: string): string {
    const value = reference.slice(reference.indexOf(':') + 1)
    return reference.startsWith('env:') ? this.#variable(value) : this.#file(value)
  }

  #variable(name: string): string {
    const { env } = this.#options
    const token = Object.hasOwn(env, name) ? env[name] : undefined
    if (token === undefined) throw new CredentialError('source_invalid', `env:${name} is not set`)
    return usableKey(token, `env:${name}`)
  }

  #file(reference: string): string {
    const path = resolve(this.#options.directory, reference)
    let file = this.#files.get(path)
    if (file === undefined) {
      const parse = (text: string) => usableKey(text, path)
      file = new LastGoodFile({ path, maxBytes: KEY_BYTES, parse, onProblem: this.#options.onProblem })
      this.#files.set(path, file)
    }
    return file.current()
  }

  #command(line: string): CredentialGetter {
    const [program = '', ...rest] = line.trim().split(/\s+/)
    const run = fromCommand({ command: [program, ...rest], cwd: this.#options.directory })
    return cached(run, { ttlMs: COMMAND_TTL_MS })
  }

  #login(reference: string): CredentialGetter {
    const [, service = '', path = ''] = /^oauth:([^:]+):(.+)$/s.exec(reference) ?? []
    const refresh = this.#options.logins[service]
    if (refresh === undefined) throw new TypeError(`no login service ${service}`)
    return refreshingOAuth({ store: tokenStore({ path: resolve(this.#options.directory, path) }), refresh })
  }
}

/** Whether a reference is asked when it is needed, and cannot be looked at before: a command or a login. */
export function isDeferred(reference: string): boolean {
  return reference.startsWith('command:') || reference.startsWith('oauth:')
}

/** A reference as people may see it: a command without its arguments. */
export function shownReference(reference: string): string {
  return /^command:\S+/.exec(reference)?.[0] ?? reference
}
