import { dirname, resolve } from 'node:path'
import type { CredentialAnswer, CredentialGetter, CredentialRequest } from '../credential-source.ts'
import { CredentialError } from '../errors.ts'
import type { RefreshingOptions } from '../refreshing.ts'
import type { SandboxCredentialScope } from '../scope.ts'
import { fingerprintOf } from '../secret.ts'
import { type ChoiceNote, notedGetter } from '../traced-getter.ts'
import { describeRule, type KeyRule, type KeyRules, parseKeyRules } from './key-file-format.ts'
import { isDeferred, KeyReferences, shownReference } from './key-references.ts'
import { LastGoodFile } from './last-good-file.ts'
import { oauthEndpoints, refreshAt } from './oauth-endpoint.ts'

/** What {@link keyFile} needs. */
export interface KeyFileOptions {
  /** Path of the file. `file:` and `oauth:` references in it are relative to its directory. */
  readonly path: string
  /** Where `env:` references are looked up; omitted = `process.env`. */
  readonly env?: Readonly<Record<string, string | undefined>>
  /**
   * The providers that rules may name, with the origin that a key for each is sent to, and to no other. Omitted = a
   * rule's `provider` is only told by `explain`.
   */
  readonly providers?: Readonly<Record<string, string>>
  /** More services for `oauth:SERVICE:PATH`: how each refreshes. `anthropic` and `codex` are known. */
  readonly logins?: Readonly<Record<string, RefreshingOptions['refresh']>>
  /** Called once for each new problem of the file after it was good, and never with a credential. */
  readonly onProblem?: (problem: CredentialError) => void
}

/** Which key a scope gets, without the key. All `undefined` = no rule, the call would be refused. */
export interface KeyFileExplanation {
  /** The rule that chose, such as `channel demo:team, speaker u-ann`. */
  readonly rule: string | undefined
  /** The reference that the rule names, such as `env:TEAM_KEY`; a command without its arguments. */
  readonly source: string | undefined
  /** Fingerprint of the key; `undefined` when the reference leads to no key, or was not asked yet. */
  readonly fingerprint: string | undefined
  /** The provider that the rule names. Absent = none. */
  readonly provider?: string
  /** The model that the rule names. Absent = none. */
  readonly model?: string
  /** True for a command or a login: `fingerprint` is then of what it gave this scope last, if it was asked yet. */
  readonly deferred?: true
}

/** A key file in use. */
export interface KeyFile {
  /** Picks a scope's credential; the file is looked at on each call. */
  readonly getter: CredentialGetter
  /** Says which key a scope would get now. Throws what the getter would throw for an unusable file. */
  explain(scope: SandboxCredentialScope): KeyFileExplanation
  /** The rules as they are now, without keys. Throws what the getter would throw for an unusable file. */
  rules(): readonly KeyRule[]
  /**
   * Reads the file, every variable and every key file in it now; runs no command and refreshes no login.
   * @throws CredentialError `source_invalid` with all that is wrong.
   */
  check(): void
}

const FILE_BYTES = 64 * 1024 * 1024
/** Scopes of which a fingerprint is kept. */
const MOST_GIVEN = 1_000

/**
 * A credential source made of one JSON file, comments allowed, that maps channels, or channels and speakers, to key
 * references: `{ "rules": [{ "channel": "demo:team", "speaker": "u-ann", "key": "env:ANN_KEY" }] }`. A rule with a
 * speaker beats one without, a whole channel key beats a pattern; no rule means no credential.
 *
 * The file must have mode 0600 and belong to this process's user. A changed file is used by the next call; a
 * broken one keeps the last good rules and is reported; a deleted one refuses everything.
 */
export function keyFile(options: KeyFileOptions): KeyFile {
  const keys = new KeysInFile(options)
  return {
    getter: notedGetter((scope, request, note) => keys.lookUp(scope, request, note)),
    explain: (scope) => keys.explain(scope),
    rules: () => keys.rules(),
    check: () => keys.check(),
  }
}

class KeysInFile {
  readonly #file: LastGoodFile<KeyRules>
  readonly #references: KeyReferences
  /** Fingerprints of what commands and logins gave, by scope and reference, the last one last. */
  readonly #given = new Map<string, string>()

  constructor(options: KeyFileOptions) {
    const { env = process.env, providers, onProblem } = options
    const path = resolve(options.path)
    const { anthropic, codex } = oauthEndpoints
    const logins = { anthropic: refreshAt(anthropic), codex: refreshAt(codex), ...options.logins }
    const names = { providers, logins: Object.keys(logins) }
    this.#references = new KeyReferences({ directory: dirname(path), env, logins, onProblem })
    this.#file = new LastGoodFile({
      path,
      maxBytes: FILE_BYTES,
      onProblem,
      parse: (text) => parseKeyRules(text, path, names),
    })
  }

  lookUp(
    scope: SandboxCredentialScope,
    request: CredentialRequest | undefined,
    note: ChoiceNote,
  ): CredentialAnswer | Promise<CredentialAnswer> {
    const rules = this.#file.current()
    const rule = rules.find(scope)
    if (rule === undefined) return undefined
    note.rules.push(describeRule(rule))
    note.source = shownReference(rule.key)
    const deferred = this.#references.deferred(rule.key)
    if (deferred === undefined) return withOrigin(this.#read(rule, rules), rule)
    return this.#ask(deferred, rule, rules, scope, request)
  }

  explain(scope: SandboxCredentialScope): KeyFileExplanation {
    const rules = this.#file.current()
    const rule = rules.find(scope)
    if (rule === undefined) return { rule: undefined, source: undefined, fingerprint: undefined }
    const { provider, model, key } = rule
    return {
      rule: describeRule(rule),
      source: shownReference(key),
      fingerprint: isDeferred(key) ? this.#given.get(givenId(scope, key)) : this.#fingerprint(rule, rules),
      ...(provider !== undefined && { provider }),
      ...(model !== undefined && { model }),
      ...(isDeferred(key) && { deferred: true }),
    }
  }

  rules(): readonly KeyRule[] {
    return [...this.#file.current().values()]
  }

  check(): void {
    const problems: string[] = []
    const rules = this.#file.load()
    for (const rule of rules.values()) {
      if (isDeferred(rule.key)) continue
      try {
        this.#read(rule, rules)
      } catch (error) {
        problems.push((error as Error).message)
      }
    }
    if (problems.length > 0) throw new CredentialError('source_invalid', problems.join('\n'))
  }

  #fingerprint(rule: KeyRule, rules: KeyRules): string | undefined {
    try {
      return fingerprintOf(this.#read(rule, rules))
    } catch {
      return undefined
    }
  }

  #read(rule: KeyRule, rules: KeyRules): string {
    try {
      return this.#references.read(rule.key)
    } catch (cause) {
      throw failed(rule, rules, cause)
    }
  }

  async #ask(
    getter: CredentialGetter,
    rule: KeyRule,
    rules: KeyRules,
    scope: SandboxCredentialScope,
    request: CredentialRequest | undefined,
  ): Promise<CredentialAnswer> {
    let answer: CredentialAnswer
    try {
      answer = await getter(scope, request)
    } catch (cause) {
      throw failed(rule, rules, cause)
    }
    const token = typeof answer === 'object' ? answer?.token : answer
    if (typeof token === 'string') this.#keepGiven(givenId(scope, rule.key), fingerprintOf(token))
    return withOrigin(answer, rule)
  }

  #keepGiven(id: string, fingerprint: string): void {
    this.#given.delete(id)
    this.#given.set(id, fingerprint)
    const [oldest] = this.#given.keys()
    if (this.#given.size > MOST_GIVEN && oldest !== undefined) this.#given.delete(oldest)
  }
}

/** An origin that a command printed stays: where it is another one, the call is refused. */
function withOrigin(answer: CredentialAnswer, { origin }: KeyRule): CredentialAnswer {
  if (origin === undefined || answer === undefined || answer === null) return answer
  return typeof answer === 'string' ? { token: answer, origin } : { origin, ...answer }
}

function givenId({ channel, speaker }: SandboxCredentialScope, reference: string): string {
  return `${channel}\0${speaker.id}\0${reference}`
}

function failed(rule: KeyRule, rules: KeyRules, cause: unknown): CredentialError {
  const message = `${rules.place(rule)}: ${describeRule(rule)}: ${(cause as Error).message}`
  return new CredentialError('source_invalid', message, { cause })
}
