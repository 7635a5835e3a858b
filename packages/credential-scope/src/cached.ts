import type { CredentialAnswer, CredentialGetter, CredentialRequest } from './credential-source.ts'
import type { SandboxCredentialScope } from './scope.ts'
import { fingerprintOf } from './secret.ts'
import { askWithNote, type ChoiceNote, notedGetter } from './traced-getter.ts'

/** What {@link cached} needs. */
export interface CachedOptions {
  /** How long a credential is used without asking again, in milliseconds. */
  readonly ttlMs: number
  /** How long before its `expiresAt` a credential is no longer used, in milliseconds; omitted = 60,000. */
  readonly marginMs?: number
  /**
   * Scopes with the same text share a credential. Omitted = channel, speaker id and `principalId`: never share. For a
   * source that does not depend on the scope, such as one command, `() => ''` asks it once for all.
   */
  readonly keyOf?: (scope: SandboxCredentialScope) => string
  /** Most credentials that are kept; the one that was not used for longest goes. Omitted = 10,000. */
  readonly maxEntries?: number
  /** The clock, milliseconds since 1970; omitted = `Date.now`. */
  readonly now?: () => number
}

interface Kept {
  readonly answer: CredentialAnswer
  readonly note: ChoiceNote
  readonly goodUntil: number
}

const MARGIN_MS = 60_000
const MAX_ENTRIES = 10_000

/**
 * Keeps a source's credentials for a while. Calls that come while the source is asked wait for that one answer; an
 * answer is never given to another key. "None" and failures are not kept. A credential that a service refused is
 * dropped and asked for again.
 *
 * The source is asked on behalf of all who wait, so the signal that it gets fires only when nobody waits any more.
 *
 * @throws TypeError for a time or number that cannot be used.
 */
export function cached(source: CredentialGetter, options: CachedOptions): CredentialGetter {
  const cache = new CredentialCache(source, options)
  return notedGetter((scope, request, note) => cache.get(scope, request, note))
}

class CredentialCache {
  readonly #source: CredentialGetter
  readonly #ttlMs: number
  readonly #marginMs: number
  readonly #maxEntries: number
  readonly #keyOf: (scope: SandboxCredentialScope) => string
  readonly #now: () => number
  /** In the order of their last use. */
  readonly #kept = new Map<string, Kept>()
  readonly #flights = new Map<string, Flight>()

  constructor(source: CredentialGetter, options: CachedOptions) {
    if (typeof source !== 'function') throw new TypeError('cached needs a function')
    const { ttlMs, marginMs = MARGIN_MS, maxEntries = MAX_ENTRIES } = options
    for (const [name, value] of Object.entries({ ttlMs, marginMs, maxEntries })) {
      if (!(Number.isFinite(value) && value >= 0))
        throw new TypeError(`${name} must be a number of at least 0`)
    }
    this.#source = source
    this.#ttlMs = ttlMs
    this.#marginMs = marginMs
    this.#maxEntries = maxEntries
    this.#keyOf =
      options.keyOf ??
      (({ channel, speaker: { id, principalId = '' } }) => `${channel}\0${id}\0${principalId}`)
    this.#now = options.now ?? Date.now
  }

  async get(
    scope: SandboxCredentialScope,
    request: CredentialRequest | undefined,
    note: ChoiceNote,
  ): Promise<CredentialAnswer> {
    const key = this.#keyOf(scope)
    const kept = this.#fresh(key, request?.rejected)
    const { answer, note: inner } = kept ?? (await this.#join(key, scope, request))
    note.rules.push(...inner.rules)
    if (inner.source !== undefined) note.source = inner.source
    return answer
  }

  #fresh(key: string, rejected: CredentialRequest['rejected']): Kept | undefined {
    const kept = this.#kept.get(key)
    if (kept === undefined) return undefined
    this.#kept.delete(key)
    if (this.#now() >= kept.goodUntil) return undefined
    if (rejected !== undefined && fingerprintOf(tokenOf(kept.answer) ?? '') === rejected.fingerprint)
      return undefined
    this.#kept.set(key, kept)
    return kept
  }

  async #join(
    key: string,
    scope: SandboxCredentialScope,
    request: CredentialRequest | undefined,
  ): Promise<Kept> {
    let flight = this.#flights.get(key)
    if (flight === undefined || flight.abandoned) {
      flight = new Flight((signal) => this.#ask(key, scope, { ...request, signal }))
      this.#flights.set(key, flight)
      const own = flight
      const land = () => this.#flights.get(key) === own && this.#flights.delete(key)
      own.landed.then(land, land)
    }
    return flight.wait(request?.signal)
  }

  async #ask(key: string, scope: SandboxCredentialScope, request: CredentialRequest): Promise<Kept> {
    const note: ChoiceNote = { rules: [] }
    const answer = await askWithNote(this.#source, scope, request, note)
    const expiresAt = typeof answer === 'object' && answer !== null ? answer.expiresAt : undefined
    const now = this.#now()
    const goodUntil = Math.min(now + this.#ttlMs, (expiresAt ?? Number.POSITIVE_INFINITY) - this.#marginMs)
    const kept = { answer, note, goodUntil }
    if (typeof tokenOf(answer) === 'string' && tokenOf(answer) !== '' && goodUntil > now)
      this.#keep(key, kept)
    return kept
  }

  #keep(key: string, kept: Kept): void {
    this.#kept.delete(key)
    this.#kept.set(key, kept)
    for (const oldest of this.#kept.keys()) {
      if (this.#kept.size <= this.#maxEntries) break
      this.#kept.delete(oldest)
    }
  }
}

/** One question to the source, for all who wait for it. */
class Flight {
  readonly landed: Promise<Kept>
  readonly #control = new AbortController()
  #waiting = 0

  constructor(ask: (signal: AbortSignal) => Promise<Kept>) {
    this.landed = ask(this.#control.signal)
  }

  /** Nobody waits any more, and the source was told so. */
  get abandoned(): boolean {
    return this.#control.signal.aborted
  }

  async wait(signal: AbortSignal | undefined): Promise<Kept> {
    this.#waiting += 1
    const leave = () => {
      this.#waiting -= 1
      if (this.#waiting === 0) this.#control.abort(signal?.reason)
    }
    if (signal?.aborted) leave()
    else signal?.addEventListener('abort', leave, { once: true })
    try {
      return await this.landed
    } finally {
      signal?.removeEventListener('abort', leave)
    }
  }
}

function tokenOf(answer: CredentialAnswer): string | undefined {
  return (typeof answer === 'object' ? answer?.token : answer) ?? undefined
}
