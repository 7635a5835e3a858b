import { statSync } from 'node:fs'
import { dirname, resolve } from 'node:path'
import type { CredentialGetter } from '../credential-source.ts'
import { CredentialError } from '../errors.ts'
import type { SandboxCredentialScope } from '../scope.ts'
import { fingerprintOf, tokenProblem } from '../secret.ts'
import { describeRule, type KeyRule, type KeyRules, parseKeyRules } from './key-file-format.ts'
import { readPrivateFile, versionOf } from './private-file.ts'

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
  const file = new WatchedKeyFile(options)
  return {
    getter: (scope) => file.lookUp(scope)?.token,
    explain: (scope) => file.explain(scope),
    check: () => file.check(),
  }
}

class WatchedKeyFile {
  readonly #path: string
  readonly #env: Readonly<Record<string, string | undefined>>
  readonly #onProblem: ((problem: CredentialError) => void) | undefined
  #rules: KeyRules | undefined
  #version: string | undefined

  constructor(options: KeyFileOptions) {
    this.#path = resolve(options.path)
    this.#env = options.env ?? process.env
    this.#onProblem = options.onProblem
  }

  lookUp(scope: SandboxCredentialScope): { rule: KeyRule; token: string } | undefined {
    const rule = this.#current().find(scope)
    return rule && { rule, token: this.#read(rule) }
  }

  explain(scope: SandboxCredentialScope): KeyFileExplanation {
    const rule = this.#current().find(scope)
    if (rule === undefined) return { rule: undefined, source: undefined, fingerprint: undefined }
    let fingerprint: string | undefined
    try {
      fingerprint = fingerprintOf(this.#read(rule))
    } catch {}
    return { rule: describeRule(rule), source: rule.key, fingerprint }
  }

  check(): void {
    this.#load()
    const problems: string[] = []
    for (const rule of this.#rules?.values() ?? []) {
      try {
        this.#read(rule)
      } catch (error) {
        problems.push((error as Error).message)
      }
    }
    if (problems.length > 0) throw new CredentialError('source_invalid', problems.join('\n'))
  }

  /** The rules to use now; keeps the last good ones when the file broke. */
  #current(): KeyRules {
    const stats = statSync(this.#path, { throwIfNoEntry: false })
    if (stats === undefined) {
      this.#rules = undefined
      this.#version = undefined
      throw new CredentialError('source_invalid', `${this.#path}: the key file is gone, all keys are refused`)
    }
    const version = versionOf(stats)
    if (version !== this.#version) {
      try {
        this.#load()
      } catch (error) {
        if (this.#rules === undefined) throw error
        this.#version = version
        this.#onProblem?.(error as CredentialError)
      }
    }
    return this.#rules as KeyRules
  }

  #load(): void {
    const { text, version } = readPrivateFile(this.#path, FILE_BYTES)
    try {
      this.#rules = parseKeyRules(text)
    } catch (error) {
      throw new CredentialError('source_invalid', `${this.#path}: ${(error as Error).message}`)
    }
    this.#version = version
  }

  #read(rule: KeyRule): string {
    const token = this.#referenced(rule)
    const problem = tokenProblem(token)
    if (problem === undefined) return (token as string).trim()
    const what = token === undefined ? 'is not set' : problem
    throw new CredentialError('source_invalid', `${describeRule(rule)}: ${rule.key} ${what}`)
  }

  #referenced(rule: KeyRule): string | undefined {
    if (rule.key.startsWith('env:')) return this.#env[rule.key.slice(4)]
    const path = resolve(dirname(this.#path), rule.key.slice(5))
    try {
      return readPrivateFile(path, KEY_BYTES).text
    } catch (cause) {
      throw new CredentialError('source_invalid', `${describeRule(rule)}: ${(cause as Error).message}`, {
        cause,
      })
    }
  }
}
