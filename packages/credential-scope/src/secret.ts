import { hash, randomBytes } from 'node:crypto'
import { CredentialError } from './errors.ts'

/**
 * Where a credential goes in an outgoing request.
 *
 * - `bearer`: `authorization: Bearer <token>`
 * - `header`: `<name>: <prefix><token>`; prefix omitted = none
 * - `query`: `?<name>=<token>`
 * - `basic`: `authorization: Basic base64(<user>:<token>)`; user omitted = empty
 */
export type AuthSlot =
  | { readonly kind: 'bearer' }
  | { readonly kind: 'header'; readonly name: string; readonly prefix?: string }
  | { readonly kind: 'query'; readonly name: string }
  | { readonly kind: 'basic'; readonly user?: string }

/** Shortest credential that is accepted: a shorter one cannot be told from ordinary text in an answer. */
const SECRET_CHARS_MIN = 8

/** Longest credential that is accepted; Node refuses headers over 16 KiB. */
const SECRET_CHARS_MAX = 12_288

let keys: { readonly inner: Uint8Array; readonly outer: Uint8Array } | undefined

/** HMAC-SHA256 (RFC 2104) as two hashes: `createHmac` takes four times as long, and every call needs one. */
function makeKeys() {
  const key = randomBytes(64)
  return { inner: key.map((byte) => byte ^ 0x36), outer: key.map((byte) => byte ^ 0x5c) }
}
let reveal: (secret: Secret) => string

/**
 * A credential that cannot be printed, logged, serialised or cloned. It belongs to one origin and leaves only
 * through {@link Secret.applyTo}.
 */
export class Secret {
  readonly #token: string
  readonly #origin: string
  #fingerprint: string | undefined

  static {
    reveal = (secret) => secret.#token
  }

  /**
   * Checks and wraps a credential. White space around it is cut off.
   *
   * @throws CredentialError `credential_invalid` for anything that is no usable credential.
   * @throws TypeError when `origin` is no http(s) URL.
   */
  constructor(options: { token: string; origin: string }) {
    this.#token = usableToken(options.token)
    this.#origin = originOf(options.origin)
  }

  /** The only origin that this credential is sent to. */
  get origin(): string {
    return this.#origin
  }

  /** Short keyed hash, the same for the same credential within one process: for logs and comparing. */
  get fingerprint(): string {
    this.#fingerprint ??= fingerprintOf(this.#token)
    return this.#fingerprint
  }

  /**
   * Writes the credential into a request that is about to be sent: it replaces whatever the slot held, in any
   * letter case. `url` is changed only by a `query` slot.
   *
   * @throws CredentialError `credential_origin` when `url` is not of this credential's origin; nothing is written.
   * @throws TypeError when the slot's name is no header name, or its prefix or user cannot be sent.
   */
  applyTo(headers: Record<string, string>, url: URL, slot: AuthSlot): void {
    if (url.origin !== this.#origin) {
      throw new CredentialError(
        'credential_origin',
        `This credential is for ${this.#origin}, not for ${url.origin}.`,
      )
    }
    if (slot.kind === 'query') {
      putQuery(url, slot.name, this.#token)
      return
    }
    const [name, value] = headerOf(slot, this.#token)
    for (const key of Object.keys(headers)) if (key.toLowerCase() === name) delete headers[key]
    headers[name] = value
  }

  /** Always `[secret]`. */
  toString(): string {
    return '[secret]'
  }

  /** Always `[secret]`. */
  toJSON(): string {
    return '[secret]'
  }

  /** Always `[secret]`. */
  [Symbol.toPrimitive](): string {
    return '[secret]'
  }

  /** Always `[secret]`. */
  [Symbol.for('nodejs.util.inspect.custom')](): string {
    return '[secret]'
  }
}

/** The credential in the clear. For this package only: never exported from an entry. */
export function revealSecret(secret: Secret): string {
  return reveal(secret)
}

/**
 * A short keyed hash of a credential: 12 hex digits of an HMAC with a key that this process made up. The same
 * for the same credential within the process, useless for guessing outside of it.
 */
export function fingerprintOf(token: string): string {
  const plain = token.trim()
  const known = fingerprints.get(plain)
  if (known !== undefined) return known
  const made = hashOf(plain)
  fingerprints.set(plain, made)
  for (const oldest of fingerprints.keys()) {
    if (fingerprints.size <= KEPT_FINGERPRINTS) break
    fingerprints.delete(oldest)
  }
  return made
}

/** Of the last few credentials: every call asks for one of them, and the hashes take longer than the rest of it. */
const fingerprints = new Map<string, string>()
const KEPT_FINGERPRINTS = 16

function hashOf(plain: string): string {
  keys ??= makeKeys()
  const inner = hash('sha256', Buffer.concat([keys.inner, Buffer.from(plain)]), 'buffer')
  return hash('sha256', Buffer.concat([keys.outer, inner]), 'hex').slice(0, 12)
}

/** The last one that was read; it stands for itself. */
let lastOrigin: string | undefined

/**
 * The origin of an http(s) URL.
 *
 * @throws TypeError for anything else.
 */
export function originOf(url: string): string {
  // Every call asks this about one of very few origins.
  if (url === lastOrigin) return url
  const parsed = URL.canParse(url) ? new URL(url) : undefined
  if (parsed?.protocol === 'https:' || parsed?.protocol === 'http:') {
    lastOrigin = parsed.origin
    return lastOrigin
  }
  throw new TypeError('A credential’s origin must be an http(s) URL such as https://api.example.com')
}

/** Why `token` is no usable credential, or `undefined`. The text says nothing about its characters. */
export function tokenProblem(token: unknown): string | undefined {
  if (typeof token !== 'string')
    return `is ${token === null ? 'null' : `of type ${typeof token}`}, not a string`
  const text = token.trim()
  if (text === '') return 'is empty'
  if (text.length < SECRET_CHARS_MIN) {
    return `is shorter than ${SECRET_CHARS_MIN} characters, too short to be recognised in an answer`
  }
  if (text.length > SECRET_CHARS_MAX) return `is longer than ${SECRET_CHARS_MAX} characters`
  return /^[\x20-\x7e]*$/.test(text) ? undefined : 'holds control or non-ASCII characters'
}

function usableToken(token: unknown): string {
  const problem = tokenProblem(token)
  if (problem === undefined) return (token as string).trim()
  throw new CredentialError('credential_invalid', `The credential ${problem}.`)
}

function headerOf(slot: Exclude<AuthSlot, { kind: 'query' }>, token: string): [name: string, value: string] {
  switch (slot.kind) {
    case 'bearer':
      return ['authorization', `Bearer ${token}`]
    case 'basic': {
      const user = slot.user ?? ''
      if (user.includes(':')) throw new TypeError('The user of a basic slot must not hold a colon')
      return ['authorization', `Basic ${Buffer.from(`${user}:${token}`).toString('base64')}`]
    }
    case 'header': {
      if (!/^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/.test(slot.name)) throw new TypeError('Not a header name')
      const prefix = slot.prefix ?? ''
      if (!/^[\x20-\x7e]*$/.test(prefix)) throw new TypeError('A header prefix must be printable ASCII')
      return [slot.name.toLowerCase(), prefix + token]
    }
  }
}

/** Sets one query parameter and leaves the bytes of all others alone. */
function putQuery(url: URL, name: string, token: string): void {
  if (name === '') throw new TypeError('The name of a query slot must not be empty')
  const kept = url.search
    .slice(1)
    .split('&')
    .filter((pair) => pair !== '' && !new URLSearchParams(pair).has(name))
  url.search = [...kept, `${encodeURIComponent(name)}=${encodeURIComponent(token)}`].join('&')
}
