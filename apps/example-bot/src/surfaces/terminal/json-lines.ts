import type { Readable } from 'node:stream'
import { BotError } from '../../errors.ts'
import type { Ledger, Receipt } from '../../ledger.ts'
import type { Room, RoomEntry, RoomSaid } from '../room.ts'

/** Options of {@link openJsonLines}. */
export interface JsonLinesOptions {
  readonly room: Room
  readonly ledger: Ledger
  readonly input: Readable
  readonly output: NodeJS.WritableStream
  /** Called once, when the input has ended and everything is answered: whether a line was refused or a turn failed. */
  readonly onEnd: (failed: boolean) => void
}

/** The lines while they are read. */
export interface JsonLines {
  /** Reads no more. Idempotent. */
  close(): void
}

/**
 * A view of the room for scripts. A line of the input is a message: `{"text": "…", "channel": "…", "speaker": "…"}`,
 * or plain text; without a channel it goes to the first one, without a speaker it is the first one's there. What
 * happens is one JSON object per line: `message`, `reply`, `turn` (its receipt) and `error`. Messages of a channel are
 * said one after another, each when the one before has been answered.
 */
export function openJsonLines(options: JsonLinesOptions): JsonLines {
  return new OpenJsonLines(options)
}

class OpenJsonLines implements JsonLines {
  readonly #options: JsonLinesOptions
  readonly #ends: (() => void)[]
  /** The last message of each channel. */
  readonly #channels = new Map<string, Promise<void>>()
  #line = 0
  #failed = false
  #over = false

  constructor(options: JsonLinesOptions) {
    this.#options = options
    const { room, ledger } = options
    this.#ends = [
      room.subscribe((event) => event.type === 'entry' && this.#entry(event.entry)),
      ledger.onChange((receipt) => receipt.state === 'settled' && this.#turn(receipt)),
    ]
    void this.#listen(options.input)
  }

  close(): void {
    if (this.#over) return
    this.#over = true
    for (const end of this.#ends) end()
    this.#options.input.destroy()
  }

  /** Not by node:readline, which ends lines where JSON does not. */
  async #listen(input: Readable): Promise<void> {
    let rest = ''
    try {
      for await (const chunk of input.setEncoding('utf8')) {
        const lines = (rest + chunk).split('\n')
        rest = lines.pop() ?? ''
        for (const line of lines) this.#take(line.trim())
      }
    } catch {
      // Closed, by us or by whoever wrote: what has come is answered all the same.
    }
    this.#take(rest.trim())
    await this.#finish()
  }

  #take(line: string): void {
    this.#line += 1
    if (line === '' || this.#over) return
    const number = this.#line
    const said = this.#read(line)
    if (said === undefined) {
      this.#refuse(number, 'This is no message: {"text": "…"} or plain text is one.')
      return
    }
    const before = this.#channels.get(said.channel) ?? Promise.resolve()
    const answered = before.then(() => this.#say(number, said))
    this.#channels.set(said.channel, answered)
  }

  #read(line: string): RoomSaid | undefined {
    const [first] = this.#options.room.channels
    const given = line.startsWith('{') ? parse(line) : { text: line }
    const { text, channel = first?.key, speaker } = given ?? {}
    if (typeof text !== 'string' || typeof channel !== 'string') return undefined
    const there = this.#options.room.channels.find(({ key }) => key === channel)
    const speakerId = speaker ?? there?.speakers[0]?.id ?? ''
    return typeof speakerId === 'string' ? { channel, speakerId, text } : undefined
  }

  async #say(number: number, said: RoomSaid): Promise<void> {
    if (this.#over) return
    try {
      await this.#options.room.ask(said)
    } catch (error) {
      if (!BotError.isInstance(error)) throw error
      this.#refuse(number, error.message)
    }
  }

  /** A turn may settle a little after its answer. */
  async #finish(): Promise<void> {
    await Promise.all(this.#channels.values())
    const { ledger, onEnd } = this.#options
    const settled = () => ledger.recent().every(({ state }) => state === 'settled')
    while (!this.#over && !settled()) {
      await new Promise<void>((done) => {
        const end = ledger.onChange(() => {
          end()
          done()
        })
      })
    }
    if (this.#over) return
    this.close()
    onEnd(this.#failed)
  }

  #entry({ kind, speakerId, ...entry }: RoomEntry): void {
    this.#write({ type: kind, ...entry, ...(speakerId !== undefined && { speaker: speakerId }) })
  }

  #turn(receipt: Receipt): void {
    if (receipt.ok !== true) this.#failed = true
    this.#write({ type: 'turn', ...receipt })
  }

  #refuse(line: number, message: string): void {
    this.#failed = true
    this.#write({ type: 'error', line, message })
  }

  #write(what: object): void {
    this.#options.output.write(`${JSON.stringify(what).replace(OBEYED, escaped)}\n`)
  }
}

/** What JSON leaves as it is and a terminal would obey, should a person look at the lines in one. */
const OBEYED = /[\u007f-\u009f\u202a-\u202e\u2066-\u2069]/g

function escaped(character: string): string {
  return `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`
}

function parse(line: string): Record<string, unknown> | undefined {
  try {
    return JSON.parse(line)
  } catch {
    return undefined
  }
}
