import type { ChannelKey } from '../host-contract.ts'

/** What a turn takes along: whether it starts afresh, and which requests that covers. */
export interface FreshStart {
  readonly reset: boolean
  readonly generation: number
}

/**
 * Remembers which channels were asked to start over. Lives as long as the process. A request is used up only by
 * a turn that succeeded and began after it; a later request stays for the next turn.
 */
export class FreshStarts {
  readonly #asked = new Map<ChannelKey, number>()
  #last = 0

  /** Asks that the channel's next turn starts without history. */
  request(channel: ChannelKey): void {
    this.#last += 1
    this.#asked.set(channel, this.#last)
  }

  /** There is nothing to start over from. */
  forget(channel: ChannelKey): void {
    this.#asked.delete(channel)
  }

  /** What a turn that begins now has to do. Changes nothing. */
  begin(channel: ChannelKey): FreshStart {
    const generation = this.#asked.get(channel)
    return { reset: generation !== undefined, generation: generation ?? 0 }
  }

  /** To be called when a turn succeeded: its request is done, unless there is a newer one. */
  consume(channel: ChannelKey, start: FreshStart): void {
    if (this.#asked.get(channel) === start.generation) this.#asked.delete(channel)
  }
}
