import { randomBytes } from 'node:crypto'
import { renameSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

/** The names of the keys of the check. The model service knows all but `unknown`. */
export const KEY_NAMES = ['alpha', 'alpha2', 'alpha3', 'beta', 'ann', 'ben', 'unknown', 'hostile'] as const

/** The name of a key of the check. */
export type KeyName = (typeof KEY_NAMES)[number]

interface Rule {
  readonly channel: string
  readonly speaker?: string
  readonly file: string
}

/** Fresh keys and the key file that hands them out, which may change while the bot runs. */
export class CheckKeys {
  readonly #dir: string
  readonly #tokens = new Map<KeyName, string>()
  #rules: readonly Rule[] = [
    { channel: 'demo:alpha', file: 'alpha' },
    { channel: 'demo:beta', file: 'beta' },
    { channel: 'demo:team', speaker: 'u-ann', file: 'ann' },
    { channel: 'demo:team', speaker: 'u-ben', file: 'ben' },
    { channel: 'demo:old', file: 'unknown' },
    { channel: 'demo:hostile', file: 'hostile' },
  ]

  /** Writes the files into `dir`, a private directory, with mode 0600. */
  constructor(dir: string) {
    this.#dir = dir
    for (const name of KEY_NAMES) {
      const token = `sk-check-${name}-${randomBytes(15).toString('base64url')}`
      this.#tokens.set(name, token)
      this.fill(name, name)
    }
    this.#write()
  }

  /** Absolute path of the key file. */
  get path(): string {
    return join(this.#dir, 'keys.json')
  }

  /** The key of a name. A secret. */
  token(name: KeyName): string {
    return this.#tokens.get(name) ?? ''
  }

  /** All keys. Secrets. */
  tokens(): readonly string[] {
    return [...this.#tokens.values()]
  }

  /** Makes the rule of a channel name another key, or takes the rule away. */
  assign(channel: string, name: KeyName | undefined): void {
    const others = this.#rules.filter((rule) => rule.channel !== channel)
    this.#rules = name === undefined ? others : [...others, { channel, file: name }]
    this.#write()
  }

  /** Puts another key into the file that a rule names. */
  fill(file: KeyName, name: KeyName): void {
    put(join(this.#dir, `${file}.key`), `${this.token(name)}\n`)
  }

  #write(): void {
    const rules = this.#rules.map(({ file, ...rule }) => ({ ...rule, key: `file:./${file}.key` }))
    put(this.path, `${JSON.stringify({ rules }, undefined, 2)}\n`)
  }
}

/** As an editor saves: a new file in the place of the old one. */
function put(path: string, text: string): void {
  const fresh = `${path}.${randomBytes(6).toString('hex')}`
  writeFileSync(fresh, text, { mode: 0o600, flag: 'wx' })
  renameSync(fresh, path)
}
