import type { CredentialAnswer, CredentialGetter, CredentialRequest } from './credential-source.ts'
import { CredentialError } from './errors.ts'
import { fingerprintOf } from './secret.ts'
import { notedGetter } from './traced-getter.ts'

/** A stored login: the pair that an OAuth token endpoint gave. */
export interface TokenPair {
  readonly accessToken: string
  /** Spent by the refresh that uses it, where the service rotates. */
  readonly refreshToken: string
  /** When the access token ends, in milliseconds since 1970. */
  readonly expiresAt: number
}

/** Where one login is kept. */
export interface TokenStore {
  /** For people, such as the path of a file. */
  readonly name: string
  /** The pair that is stored now, also when another process wrote it; `undefined` when there is none. */
  read(): Promise<TokenPair | undefined>
  /** Replaces the pair. Resolves when it would survive a power cut. */
  write(pair: TokenPair): Promise<void>
  /** Runs `task` while no other process and no other call does; passes on what it answers or throws. */
  exclusively<T>(task: () => Promise<T>): Promise<T>
}

/**
 * What came of one refresh request.
 *
 * - `pair`: the new pair
 * - `refused`: the service does not accept this refresh token, now or later
 * - `failed`: everything else; the refresh token may or may not be spent
 */
export type RefreshOutcome =
  | { readonly kind: 'pair'; readonly pair: TokenPair }
  | { readonly kind: 'refused'; readonly reason: string }
  | { readonly kind: 'failed'; readonly reason: string; readonly cause?: unknown }

/** What {@link refreshingOAuth} needs. */
export interface RefreshingOptions {
  readonly store: TokenStore
  /** Sends one refresh request and judges its answer. It should not throw, and must end by itself. */
  readonly refresh: (pair: TokenPair) => Promise<RefreshOutcome>
  /** How long before its end an access token is refreshed, in milliseconds; omitted = 300,000. */
  readonly marginMs?: number
  /** Up to this is added to the margin, so that many hosts do not refresh at once; omitted = 60,000. */
  readonly jitterMs?: number
  /** After a refresh that failed, none is tried for this long, in milliseconds; omitted = 5,000. */
  readonly pauseMs?: number
  /** The clock, milliseconds since 1970; omitted = `Date.now`. */
  readonly now?: () => number
  /** 0 to 1, for the jitter; omitted = `Math.random`. */
  readonly random?: () => number
}

/**
 * The access token of a stored login, refreshed before it ends. On demand: no timer that could die.
 *
 * - All calls of this process share one refresh; processes take turns by the store's lock, and who gets the lock
 *   reads the store again first, so an expired token costs one refresh however many ask.
 * - A new pair is stored before it is used. A refresh that failed changes nothing in the store.
 * - A refresh that failed is no failed call while the old token is still good; no other one is tried for a pause.
 * - A refused refresh token is sent once. After that every call fails with `login_required` until somebody logs in
 *   and the store has another one.
 * - A credential that the service refused (401, 403) is refreshed by force, but not again within the pause.
 *
 * A refresh is not ended by the signal of one call: the others wait for it, and its reply must not be lost.
 */
export function refreshingOAuth(options: RefreshingOptions): CredentialGetter {
  const login = new Login(options)
  return notedGetter((_scope, request, note) => {
    note.source = `login:${options.store.name}`
    return login.token(request?.rejected)
  })
}

const MARGIN_MS = 300_000
const JITTER_MS = 60_000
const PAUSE_MS = 5_000

class Login {
  readonly #store: TokenStore
  readonly #refresh: RefreshingOptions['refresh']
  readonly #marginMs: number
  readonly #pauseMs: number
  readonly #now: () => number
  /** Set once: a token's time to refresh must not move while it is looked at. */
  readonly #jitterMs: number
  #flight: Promise<TokenPair> | undefined
  /** Was given out by the service, but could not be stored yet. */
  #unstored: { readonly pair: TokenPair; readonly instead: string } | undefined
  #refusedToken: string | undefined
  #renewedAt = Number.NEGATIVE_INFINITY
  #pause: { readonly until: number; readonly error: CredentialError } | undefined

  constructor(options: RefreshingOptions) {
    const { marginMs = MARGIN_MS, jitterMs = JITTER_MS, pauseMs = PAUSE_MS, random = Math.random } = options
    for (const [name, value] of Object.entries({ marginMs, jitterMs, pauseMs })) {
      if (!(Number.isFinite(value) && value >= 0))
        throw new TypeError(`${name} must be a number of at least 0`)
    }
    this.#store = options.store
    this.#refresh = options.refresh
    this.#marginMs = marginMs
    this.#pauseMs = pauseMs
    this.#now = options.now ?? Date.now
    this.#jitterMs = jitterMs * random()
  }

  async token(rejected: CredentialRequest['rejected']): Promise<CredentialAnswer> {
    const stored = await this.#store.read()
    if (stored === undefined) return undefined
    if (!this.#isDue(stored) && !isRejected(stored, rejected)) return answer(stored)
    try {
      return answer(await this.#shared(stored))
    } catch (error) {
      // Refreshing is early: until its end the old token is good.
      if (this.#now() < stored.expiresAt && !isRejected(stored, rejected)) return answer(stored)
      throw error
    }
  }

  #isDue(pair: TokenPair): boolean {
    return this.#now() >= pair.expiresAt - this.#marginMs - this.#jitterMs
  }

  #shared(stale: TokenPair): Promise<TokenPair> {
    this.#flight ??= this.#store
      .exclusively(() => this.#renew(stale))
      .finally(() => {
        this.#flight = undefined
      })
    return this.#flight
  }

  /** Holds the lock. */
  async #renew(stale: TokenPair): Promise<TokenPair> {
    const stored = await this.#storedNow()
    if (stored.accessToken !== stale.accessToken && this.#now() < stored.expiresAt) return stored
    // A service that refuses what was just refreshed would refuse the next one too.
    if (!this.#isDue(stored) && this.#now() - this.#renewedAt < this.#pauseMs) return stored
    return this.#refreshed(stored, true)
  }

  async #refreshed(stored: TokenPair, mayReread: boolean): Promise<TokenPair> {
    if (stored.refreshToken === this.#refusedToken) throw this.#loginRequired()
    if (this.#pause !== undefined && this.#now() < this.#pause.until) throw this.#pause.error
    const outcome = await this.#refresh(stored).catch(
      (cause: unknown): RefreshOutcome => ({ kind: 'failed', reason: 'the request failed', cause }),
    )
    if (outcome.kind === 'pair') return this.#keep(outcome.pair, stored.refreshToken)
    if (outcome.kind === 'failed') throw this.#paused(outcome.reason, outcome.cause)
    return this.#refused(stored, mayReread)
  }

  /** Somebody who does not know our lock may have refreshed or logged in meanwhile: look before giving up. */
  async #refused(sent: TokenPair, mayReread: boolean): Promise<TokenPair> {
    const stored = await this.#storedNow()
    if (stored.refreshToken === sent.refreshToken || !mayReread) {
      this.#refusedToken = sent.refreshToken
      throw this.#loginRequired()
    }
    return this.#isDue(stored) ? this.#refreshed(stored, false) : stored
  }

  async #storedNow(): Promise<TokenPair> {
    const stored = await this.#store.read()
    if (stored === undefined) throw this.#loginRequired()
    const waiting = this.#unstored
    this.#unstored = undefined
    return waiting?.instead === stored.refreshToken ? this.#keep(waiting.pair, waiting.instead) : stored
  }

  async #keep(pair: TokenPair, instead: string): Promise<TokenPair> {
    try {
      await this.#store.write(pair)
    } catch (cause) {
      // The old refresh token is spent: this pair must not be lost, the next call tries to store it again.
      this.#unstored = { pair, instead }
      throw new CredentialError('source_invalid', `${this.#store.name}: the new login cannot be stored.`, {
        cause,
      })
    }
    this.#pause = undefined
    this.#renewedAt = this.#now()
    return pair
  }

  #paused(reason: string, cause: unknown): CredentialError {
    const error = new CredentialError('source_invalid', `${this.#store.name}: no refresh: ${reason}.`, {
      cause,
    })
    this.#pause = { until: this.#now() + this.#pauseMs, error }
    return error
  }

  #loginRequired(): CredentialError {
    return new CredentialError(
      'login_required',
      `${this.#store.name}: this login is no longer valid, log in again.`,
    )
  }
}

function answer(pair: TokenPair): CredentialAnswer {
  return { token: pair.accessToken, expiresAt: pair.expiresAt }
}

function isRejected(pair: TokenPair, rejected: CredentialRequest['rejected']): boolean {
  return rejected !== undefined && fingerprintOf(pair.accessToken) === rejected.fingerprint
}
