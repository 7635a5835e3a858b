import { CallRefusal } from './refusal.ts'

/** While a body is read, cut and sent, it is there twice: as the guest sent it, and as it is forwarded. */
const COPIES = 2
/** Bodies up to this size never wait for larger ones. */
const SMALL_BYTES = 512 * 1024
/** The part of the memory that is for small bodies, and the most of each part that one broker may hold. */
const SMALL_PART = 1 / 8
const ONE_BROKER = 1 / 4

/** Memory for request bodies unless the host says otherwise, in bytes. */
const BODY_MEMORY_BYTES = 256 * 1024 * 1024

/** What one broker takes its bodies' memory from. */
export interface BodyShare {
  /**
   * Waits until a body of up to this many bytes may be read.
   * @throws CallRefusal `body_too_large` at once for one that could never be. Rejects with the signal's reason when
   * that fires first, and then holds nothing.
   */
  reserve(bytes: number, signal: AbortSignal): Promise<BodyLease>
}

/** Memory that is held for one body. */
export interface BodyLease {
  /** The body turned out to be this small: the rest is given back. */
  shrink(bytes: number): void
  /** Gives all of it back. Idempotent. */
  release(): void
}

/**
 * Memory for the request bodies of all brokers that share it. A body is read only when there is room for it; until
 * then its call waits, first come, first served, and its guest's connection with it. Small bodies have a part of
 * their own, and no broker can hold more than a quarter of either part but for a single body, so that one guest
 * that fills its share holds up nobody else.
 */
export class BodyBudget {
  readonly #small: Pool
  readonly #large: Pool

  /** `bytes`: 16 MiB at least. */
  constructor({ bytes }: { readonly bytes: number }) {
    if (!Number.isSafeInteger(bytes) || bytes < 16 * 1024 * 1024) {
      throw new TypeError('bytes: must be a whole number, 16 MiB at least')
    }
    const small = Math.floor(bytes * SMALL_PART)
    this.#small = new Pool(small)
    this.#large = new Pool(bytes - small)
  }

  /** What is held now, in bytes. Never above the budget. */
  get heldBytes(): number {
    return this.#small.held + this.#large.held
  }

  /** Bodies that wait. */
  get waiting(): number {
    return this.#small.waiting + this.#large.waiting
  }

  /** A share for one broker. */
  share(): BodyShare {
    const small: Holder = { held: 0 }
    const large: Holder = { held: 0 }
    return {
      reserve: (bytes, signal) =>
        bytes <= SMALL_BYTES
          ? this.#small.take(small, bytes, signal)
          : this.#large.take(large, bytes, signal),
    }
  }
}

let shared: BodyBudget | undefined

/** The budget of this process, 256 MiB: what brokers share that are given no other. */
export function sharedBodyBudget(): BodyBudget {
  shared ??= new BodyBudget({ bytes: BODY_MEMORY_BYTES })
  return shared
}

/** Who holds memory, and how much. */
interface Holder {
  held: number
}

interface Waiting {
  readonly holder: Holder
  readonly cost: number
  readonly start: () => void
}

class Pool {
  readonly #size: number
  readonly #queue: Waiting[] = []
  #free: number

  constructor(size: number) {
    this.#size = size
    this.#free = size
  }

  get held(): number {
    return this.#size - this.#free
  }

  get waiting(): number {
    return this.#queue.length
  }

  async take(holder: Holder, bytes: number, signal: AbortSignal): Promise<BodyLease> {
    signal.throwIfAborted()
    const cost = bytes * COPIES
    if (cost > this.#size) {
      throw new CallRefusal('body_too_large', { limitBytes: Math.floor(this.#size / COPIES) })
    }
    // Nobody waits: the usual case.
    if (this.#queue.length === 0 && this.#fits(holder, cost)) this.#hold(holder, cost)
    else await this.#admitted(holder, cost, signal)
    let left = cost
    const giveBack = (amount: number) => {
      left -= amount
      holder.held -= amount
      this.#free += amount
      this.#next()
    }
    return {
      shrink: (size) => giveBack(Math.max(0, left - size * COPIES)),
      release: () => giveBack(left),
    }
  }

  #admitted(holder: Holder, cost: number, signal: AbortSignal): Promise<void> {
    return new Promise((resolve, reject) => {
      const onAbort = () => {
        this.#queue.splice(this.#queue.indexOf(waiting), 1)
        reject(signal.reason)
        this.#next()
      }
      const waiting: Waiting = {
        holder,
        cost,
        start: () => {
          signal.removeEventListener('abort', onAbort)
          resolve()
        },
      }
      signal.addEventListener('abort', onAbort, { once: true })
      this.#queue.push(waiting)
      this.#next()
    })
  }

  /** In order of arrival. Only what waits for its own broker's bodies is passed by. */
  #next(): void {
    for (let at = 0; at < this.#queue.length; ) {
      const { holder, cost, start } = this.#queue[at] as Waiting
      if (this.#isAtItsShare(holder, cost)) {
        at += 1
        continue
      }
      if (cost > this.#free) return
      this.#queue.splice(at, 1)
      this.#hold(holder, cost)
      start()
    }
  }

  #isAtItsShare(holder: Holder, cost: number): boolean {
    return holder.held > 0 && holder.held + cost > this.#size * ONE_BROKER
  }

  #fits(holder: Holder, cost: number): boolean {
    return cost <= this.#free && !this.#isAtItsShare(holder, cost)
  }

  #hold(holder: Holder, cost: number): void {
    this.#free -= cost
    holder.held += cost
  }
}
