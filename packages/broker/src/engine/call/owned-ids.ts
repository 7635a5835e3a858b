import type { SandboxCredentialScope } from '@sandbox/credential-scope'

/** Bounds of {@link OwnedIds}. */
export interface OwnedIdsOptions {
  /** Ids that are remembered for one scope. The oldest is forgotten. Omitted = 1024. */
  readonly perScope?: number
  /** Ids of all scopes. The oldest of the scope that was quiet for longest is forgotten. Omitted = 65,536. */
  readonly total?: number
  /** How long an id is remembered after it was last seen, in milliseconds. Omitted = 30 days. */
  readonly ageMs?: number
  /** A clock in milliseconds that never goes back; for tests. */
  readonly now?: () => number
}

const DAY_MS = 24 * 60 * 60 * 1000
/** Longest id. */
const ID_CHARS = 256

/** Whose id it is: names are chosen by speakers, and say nothing. */
type IdScope = Pick<SandboxCredentialScope, 'channel'> & { readonly speaker: { readonly id: string } }

/**
 * Which scope created which thing on a provider's account: responses, their items, conversations, files. A request
 * may name such a thing only when its own channel and speaker created it. Held in memory alone; what is forgotten
 * is refused. Give one to all brokers of a host, so that a later turn may go on from an earlier one.
 */
export class OwnedIds {
  readonly #perScope: number
  readonly #total: number
  readonly #ageMs: number
  readonly #now: () => number
  /** In order of last use; ids of a scope in order of last use, with that time. */
  readonly #scopes = new Map<string, Map<string, number>>()
  #size = 0

  constructor(options: OwnedIdsOptions = {}) {
    const { perScope = 1024, total = 65_536, ageMs = 30 * DAY_MS, now = () => performance.now() } = options
    for (const [name, value] of Object.entries({ perScope, total, ageMs })) {
      if (!Number.isSafeInteger(value) || value < 1) {
        throw new TypeError(`${name}: must be a whole number, 1 at least`)
      }
    }
    this.#perScope = perScope
    this.#total = total
    this.#ageMs = ageMs
    this.#now = now
  }

  /** How many ids are remembered now. */
  get size(): number {
    return this.#size
  }

  /**
   * Notes that a thing is this scope's: brokers do so for what providers create, hosts for what they create
   * themselves. An id of more than 256 characters, or an empty one, is not remembered.
   */
  add(scope: IdScope, id: string): void {
    if (id === '' || id.length > ID_CHARS) return
    const key = keyOf(scope)
    const ids = this.#scopes.get(key) ?? new Map<string, number>()
    if (ids.delete(id)) this.#size -= 1
    ids.set(id, this.#now())
    this.#size += 1
    this.#scopes.delete(key)
    this.#scopes.set(key, ids)
    if (ids.size > this.#perScope) this.#dropOldest(key, ids)
    this.#tidy()
  }

  /** Whether the thing is this scope's, as far as it is remembered. */
  has(scope: IdScope, id: string): boolean {
    const seenMs = this.#scopes.get(keyOf(scope))?.get(id)
    return seenMs !== undefined && this.#isFresh(seenMs)
  }

  /** Forgets all that a channel's speakers created; with `speakerId`, only what that one did. */
  forget({ channel, speakerId }: { readonly channel: string; readonly speakerId?: string }): void {
    for (const [key, ids] of this.#scopes) {
      const [ofChannel, ofSpeaker] = JSON.parse(key) as [string, string]
      if (ofChannel !== channel || (speakerId !== undefined && ofSpeaker !== speakerId)) continue
      this.#size -= ids.size
      this.#scopes.delete(key)
    }
  }

  /** Too many go, and those of scopes that have been quiet for too long. */
  #tidy(): void {
    for (const [key, ids] of this.#scopes) {
      const oldestMs = ids.values().next().value
      if (this.#size <= this.#total && oldestMs !== undefined && this.#isFresh(oldestMs)) return
      this.#dropOldest(key, ids)
    }
  }

  #dropOldest(key: string, ids: Map<string, number>): void {
    for (const [id, seenMs] of ids) {
      const full = ids.size > this.#perScope || this.#size > this.#total
      if (!full && this.#isFresh(seenMs)) return
      ids.delete(id)
      this.#size -= 1
    }
    this.#scopes.delete(key)
  }

  #isFresh(seenMs: number): boolean {
    return this.#now() - seenMs < this.#ageMs
  }
}

function keyOf({ channel, speaker }: IdScope): string {
  return JSON.stringify([channel, speaker.id])
}
