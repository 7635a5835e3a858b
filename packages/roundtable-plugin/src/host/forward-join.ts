import type { InboundMessage } from '../host-contract.ts'

interface Held {
  readonly message: InboundMessage
  /** Sends it on alone. */
  release(): void
  /** Ends its wait with the message that it became a part of. */
  joined(whole: Promise<void>): void
}

/**
 * A forward without words waits a moment: when the same author writes next in that channel, both become one
 * message. Chats send a forward and the question about it as two.
 */
export class ForwardJoin {
  readonly #waitMs: number
  readonly #next: (message: InboundMessage) => Promise<void>
  readonly #held = new Map<string, Held>()

  constructor(waitMs: number, next: (message: InboundMessage) => Promise<void>) {
    this.#waitMs = waitMs
    this.#next = next
  }

  /** Passes a message on, now or after the wait. Settles as the message's own way does. */
  pass(message: InboundMessage): Promise<void> {
    const author = `${message.channel}\0${message.authorId}`
    const held = this.#held.get(author)
    if (message.forwarded !== undefined) {
      held?.release()
      return message.text.trim() === '' ? this.#hold(author, message) : this.#next(message)
    }
    if (held === undefined) return this.#next(message)
    const whole = this.#next(join(held.message, message))
    held.joined(whole)
    return whole
  }

  /** Sends on whatever waits. */
  flush(): void {
    for (const held of [...this.#held.values()]) held.release()
  }

  #hold(author: string, message: InboundMessage): Promise<void> {
    return new Promise((resolve) => {
      const end = (way: Promise<void>) => {
        clearTimeout(timer)
        this.#held.delete(author)
        resolve(way)
      }
      const release = () => end(this.#next(message))
      const timer = setTimeout(release, this.#waitMs)
      this.#held.set(author, { message, release, joined: end })
    })
  }
}

function join(forward: InboundMessage, message: InboundMessage): InboundMessage {
  return {
    ...message,
    mentionsBot: forward.mentionsBot || message.mentionsBot,
    attachments: [...forward.attachments, ...message.attachments],
    ...(forward.forwarded !== undefined && { forwarded: forward.forwarded }),
  }
}
