import { dirname, resolve } from 'node:path'
import type { CredentialAnswer, CredentialGetter } from '../credential-source.ts'
import { CredentialError } from '../errors.ts'
import type { SandboxCredentialScope } from '../scope.ts'
import { fingerprintOf } from '../secret.ts'
import { type ChoiceNote, notedGetter } from '../traced-getter.ts'
import { describeRule, type KeyRule, type KeyRules, parseKeyRules } from './key-file-format.ts'
import { LastGoodFile, usableKey } from './last-good-file.ts'

/** What {@link keyFile} needs. */
export interface KeyFileOptions {
  /** Path of the JSON file. `file:` references in it are relative to its directory. */
  readonly path: string
  /** Where `env:` references are looked up; omitted = `process.env`. */
  readonly env?: Readonly<Record<string, string | undefined>>
  /** Called once for each new problem of the file after it was good, and never with a credential. */
  readonly onProblem?: (problem: CredentialError) => void
}

/** Which key a scope gets, without the key. All `undefined` = no rule, the call would be refused. */
export interface KeyFileExplanation {
  /** The rule that chose, such as `channel demo:team, speaker u-ann`. */
  readonly rule: string | undefined
  /** The reference that the rule names, such as `env:TEAM_KEY`. */
  readonly source: string | undefined
  /** Fingerprint of the key; `undefined` when the reference leads to no key. */
  readonly fingerprint: string | undefined
}

/** A key file in use. */
export interface KeyFile {
  /** Picks a scope's credential; the file is looked at on each call. */
  readonly getter: CredentialGetter
  /** Says which key a scope would get now. Throws what the getter would throw for an unusable file. */
  explain(scope: SandboxCredentialScope): KeyFileExplanation
  /** Reads the file and every key in it now. @throws CredentialError `source_invalid` with all that is wrong. */
  check(): void
}

const FILE_BYTES = 64 * 1024 * 1024
const KEY_BYTES = 64 * 1024

/**
 * A credential source made of one JSON file that maps channels, or channels and speakers, to key references:
 * `{ "rules": [{ "channel": "demo:team", "speaker": "u-ann", "key": "env:ANN_KEY" }] }`. A rule with a speaker
 * beats one without; no rule means no credential.
 *
 * The file must have mode 0600 and belong to this process's user. A changed file is used by the next call; a
 * broken one keeps the last good rules and is reported; a deleted one refuses everything.
 */
export function keyFile(options: KeyFileOptions): KeyFile {
  const keys = new KeysInFile(options)
  return {
    getter: notedGetter((scope, _request, note) => keys.lookUp(scope, note)),
    explain: (scope) => keys.explain(scope),
    check: () => keys.check(),
  }
}

class KeysInFile {
  readonly #path: string
  readonly #env: Readonly<Record<string, string | undefined>>
  readonly #onProblem: ((problem: CredentialError) => void) | undefined
  readonly #file: LastGoodFile<KeyRules>
  /** Key files by their path. */
  readonly #keys = new Map<string, LastGoodFile<string>>()

  constructor(options: KeyFileOptions) {
    this.#path = resolve(options.path)
    this.#env = options.env ?? process.env
    this.#onProblem = options.onProblem
    this.#file = new LastGoodFile({
      path: this.#path,
      maxBytes: FILE_BYTES,
      onProblem: options.onProblem,
      parse: (text) => parseKeyRules(text, this.#path),
    })
  }

  lookUp(scope: SandboxCredentialScope, note: ChoiceNote): CredentialAnswer {
    const rule = this.#file.current().find(scope)
    if (rule === undefined) return undefined
    note.rules.push(describeRule(rule))
    note.source = rule.key
    const token = this.#read(rule)
    return rule.origin === undefined ? token : { token, origin: rule.origin }
  }

  explain(scope: SandboxCredentialScope): KeyFileExplanation {
    const rule = this.#file.current().find(scope)
    if (rule === undefined) return { rule: undefined, source: undefined, fingerprint: undefined }
    let fingerprint: string | undefined
    try {
      fingerprint = fingerprintOf(this.#read(rule))
    } catch {}
    return { rule: describeRule(rule), source: rule.key, fingerprint }
  }

  check(): void {
    const problems: string[] = []
    for (const rule of this.#file.load().values()) {
      try {
        this.#read(rule)
      } catch (error) {
        problems.push((error as Error).message)
      }
    }
    if (problems.length > 0) throw new CredentialError('source_invalid', problems.join('\n'))
  }

  #read(rule: KeyRule): string {
    try {
      return rule.key.startsWith('env:')
        ? this.#fromEnv(rule.key.slice(4))
        : this.#fromFile(rule.key.slice(5))
    } catch (cause) {
      const message = `${this.#path}: ${describeRule(rule)}: ${(cause as Error).message}`
      throw new CredentialError('source_invalid', message, { cause })
    }
  }

  #fromEnv(name: string): string {
    const token = Object.hasOwn(this.#env, name) ? this.#env[name] : undefined
    if (token === undefined) throw new CredentialError('source_invalid', `env:${name} is not set`)
    return usableKey(token, `env:${name}`)
  }

  #fromFile(reference: string): string {
    const path = resolve(dirname(this.#path), reference)
    let file = this.#keys.get(path)
    if (file === undefined) {
      const parse = (text: string) => usableKey(text, path)
      file = new LastGoodFile({ path, maxBytes: KEY_BYTES, parse, onProblem: this.#onProblem })
      this.#keys.set(path, file)
    }
    return file.current()
  }
}
