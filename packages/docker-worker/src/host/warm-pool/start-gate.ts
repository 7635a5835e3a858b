import { stopIfAborted } from '../../errors.ts'

/** A start that hangs gives its place away after this long: it must not keep others from starting. */
const LONGEST_HOLD_MS = 5_000

/** A place in the queue, then a place at work. */
export interface StartTicket {
  /** Resolves when the start may begin. Rejects with `aborted`. */
  readonly entered: Promise<void>
  /** Somebody waits for this start now. */
  promote(): void
  /** The start is over, or no longer wanted. Idempotent. */
  leave(): void
}

interface Entry {
  readonly channel: string
  urgent: boolean
  state: 'waiting' | 'inside' | 'left'
  timer?: NodeJS.Timeout
  begin(): void
}

/**
 * Lets a bounded number of starts run at once. A start that a turn waits for goes before a spare, and where there is
 * room for two, spares never fill the last place. Channels take turns: one that asks often waits behind the others.
 */
export class StartGate {
  readonly #limit: number
  readonly #waiting: Entry[] = []
  readonly #inside = new Set<Entry>()
  /** When each channel entered last, for the order among them; holds only channels that wait or are inside. */
  readonly #served = new Map<string, number>()
  #clock = 0

  constructor(limit: number) {
    this.#limit = limit
  }

  /** Queues for a start. */
  enter(channel: string, options: { readonly urgent: boolean; readonly signal?: AbortSignal }): StartTicket {
    const { signal } = options
    const entry: Entry = { channel, urgent: options.urgent, state: 'waiting', begin: () => {} }
    const entered = new Promise<void>((resolve, reject) => {
      const abort = () => {
        this.#leave(entry)
        try {
          stopIfAborted(signal)
        } catch (error) {
          reject(error)
        }
      }
      entry.begin = () => {
        signal?.removeEventListener('abort', abort)
        entry.timer = setTimeout(() => this.#leave(entry), LONGEST_HOLD_MS)
        entry.timer.unref()
        resolve()
      }
      if (signal?.aborted) return abort()
      signal?.addEventListener('abort', abort, { once: true })
      this.#waiting.push(entry)
    })
    entered.catch(() => {})
    this.#pump()
    const promote = () => {
      entry.urgent = true
      this.#pump()
    }
    return { entered, promote, leave: () => this.#leave(entry) }
  }

  #leave(entry: Entry): void {
    if (entry.state === 'left') return
    entry.state = 'left'
    clearTimeout(entry.timer)
    this.#inside.delete(entry)
    const at = this.#waiting.indexOf(entry)
    if (at >= 0) this.#waiting.splice(at, 1)
    if (this.#waiting.length === 0 && this.#inside.size === 0) this.#served.clear()
    this.#pump()
  }

  #pump(): void {
    for (let next = this.#next(); next !== undefined; next = this.#next()) {
      this.#waiting.splice(this.#waiting.indexOf(next), 1)
      this.#inside.add(next)
      this.#served.set(next.channel, ++this.#clock)
      next.state = 'inside'
      next.begin()
    }
  }

  #next(): Entry | undefined {
    if (this.#inside.size >= this.#limit) return undefined
    const spares = [...this.#inside].filter(({ urgent }) => !urgent).length
    const room = spares < Math.max(1, this.#limit - 1)
    const first = (urgent: boolean) => this.#fairest(this.#waiting.filter((entry) => entry.urgent === urgent))
    return first(true) ?? (room ? first(false) : undefined)
  }

  /** Of those that wait, one of the channel that was served longest ago; the earliest where there are several. */
  #fairest(entries: readonly Entry[]): Entry | undefined {
    const served = ({ channel }: Entry) => this.#served.get(channel) ?? 0
    let best: Entry | undefined
    for (const entry of entries) if (best === undefined || served(entry) < served(best)) best = entry
    return best
  }
}
