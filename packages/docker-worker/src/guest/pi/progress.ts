import { limits, type PiProgress } from '@sandbox/protocol'

/** What a {@link ProgressReporter} is given. */
export interface ProgressOptions {
  readonly turnId: string
  /** Hands one piece over. May fail: pieces do not matter. */
  send(piece: PiProgress): Promise<void>
}

/**
 * Hands the answer over piece by piece while it grows: one piece at a time, a few a second, none twice. A piece that
 * is lost stays lost, since the result is the truth.
 */
export class ProgressReporter {
  readonly #options: ProgressOptions
  #text = ''
  #sent = 0
  #seq = 0
  #timer: NodeJS.Timeout | undefined
  #sending = false
  #closed = false

  constructor(options: ProgressOptions) {
    this.#options = options
  }

  /** The text starts anew: another message of the agent. */
  restart(): void {
    this.#text = ''
    this.#sent = 0
  }

  /** The text has grown. What is beyond the longest answer is not reported. */
  add(delta: string): void {
    if (this.#closed || this.#text.length >= limits.REPLY_TEXT_CHARS) return
    this.#text += delta.slice(0, limits.REPLY_TEXT_CHARS - this.#text.length)
    this.#timer ??= setTimeout(() => this.#tick(), limits.PI_PROGRESS_MS)
  }

  /** Reports nothing more. */
  close(): void {
    this.#closed = true
    clearTimeout(this.#timer)
  }

  #tick(): void {
    this.#timer = undefined
    if (this.#closed || this.#sending || this.#sent >= this.#text.length) return
    const at = this.#sent
    const text = this.#text.slice(at, at + limits.PI_PROGRESS_CHARS)
    this.#sent = at + text.length
    this.#sending = true
    const done = () => {
      this.#sending = false
      if (!this.#closed && this.#sent < this.#text.length) {
        this.#timer ??= setTimeout(() => this.#tick(), limits.PI_PROGRESS_MS)
      }
    }
    this.#options.send({ turnId: this.#options.turnId, seq: this.#seq++, at, text }).then(done, done)
  }
}
