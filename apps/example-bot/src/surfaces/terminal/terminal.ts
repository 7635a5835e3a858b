import { clearScreenDown, createInterface, cursorTo, type Interface, moveCursor } from 'node:readline'
import { CredentialError } from '@sandbox/credential-scope'
import { BotError } from '../../errors.ts'
import type { Explain, Ledger, Receipt } from '../../ledger.ts'
import { plain } from '../../plain-text.ts'
import { payerWords } from '../payer-words.ts'
import type { RoomFile } from '../reply-files.ts'
import type { Room, RoomChannel, RoomEntry, RoomSpeaker } from '../room.ts'
import { type Paint, painter } from './colours.ts'

/** Options of {@link openTerminal}. */
export interface TerminalOptions {
  readonly room: Room
  readonly ledger: Ledger
  readonly explain: Explain
  /** Ends the turn that runs in a channel; false when none does. */
  readonly stop: (channel: string) => boolean
  /** Called for /quit, Ctrl-C and the end of input; again for a second Ctrl-C. */
  readonly onQuit: () => void
  readonly input: NodeJS.ReadableStream
  readonly output: NodeJS.WritableStream
  /** True when a person sits there: line editing, history, completion and a prompt. */
  readonly interactive: boolean
  readonly colours: boolean
}

/** The terminal while it is open. */
export interface Terminal {
  /** Prints a line above what is being typed. */
  print(line: string): void
  /** Idempotent. */
  close(): void
}

const COMMANDS = ['channel', 'speaker', 'key', 'stop', 'quit', 'help'] as const

const HELP = `  /channel [NAME]  go to a channel, or list them
  /speaker [NAME]  speak as somebody else, or list who may
  /key             who pays here
  /stop            end the turn that runs here
  /quit            stop the bot (so does Ctrl-C)
  anything else is a message; Tab completes, the arrows bring back what was typed`

/** Lines that the arrows bring back, in this terminal only: what was said is kept nowhere. */
const HISTORY_LINES = 200

/** A view of the room for a terminal: plain text is a message, a line with a slash is a command. */
export function openTerminal(options: TerminalOptions): Terminal {
  return new OpenTerminal(options)
}

class OpenTerminal implements Terminal {
  readonly #options: TerminalOptions
  readonly #paint: Paint
  readonly #lines: Interface
  readonly #ends: (() => void)[]
  #channel: RoomChannel
  #speaker: RoomSpeaker
  #over = false
  /** A reply that was shown before its turn had settled: the receipt is still to come. */
  #owed: string | undefined

  constructor(options: TerminalOptions) {
    this.#options = options
    this.#paint = painter(options.colours)
    const [first] = options.room.channels
    const speaker = first?.speakers[0]
    if (first === undefined || speaker === undefined)
      throw new TypeError('the room has no channel with a speaker')
    this.#channel = first
    this.#speaker = speaker
    this.#lines = createInterface({
      input: options.input,
      ...(options.interactive ? { output: options.output } : {}),
      terminal: options.interactive,
      historySize: HISTORY_LINES,
      removeHistoryDuplicates: true,
      completer: (line: string) => this.#complete(line),
    })
    this.#lines.on('line', (line) => this.#take(line.trim()))
    this.#lines.on('SIGINT', () => options.onQuit())
    this.#lines.on('close', () => this.#over || options.onQuit())
    this.#ends = [
      options.room.subscribe((event) => event.type === 'entry' && this.#show(event.entry)),
      options.ledger.onChange((receipt) => this.#settle(receipt)),
    ]
    this.#prompt()
  }

  print(line: string): void {
    const { interactive, output } = this.#options
    if (!interactive) {
      output.write(`${line}\n`)
      return
    }
    // What is being typed may be more than one row.
    moveCursor(output, 0, -this.#lines.getCursorPos().rows)
    cursorTo(output, 0)
    clearScreenDown(output)
    output.write(`${line}\n`)
    // It is drawn anew from here, and not from as many rows further up as it had before.
    Object.assign(this.#lines, { prevRows: 0 })
    if (!this.#over) this.#lines.prompt(true)
  }

  close(): void {
    if (this.#over) return
    this.#over = true
    for (const end of this.#ends) end()
    this.#lines.close()
    if (this.#options.interactive) this.#options.output.write('\n')
  }

  #take(line: string): void {
    const [, command, argument = ''] = /^\/(\S*)\s*(.*)$/.exec(line) ?? []
    if (line !== '') {
      try {
        if (command === undefined) this.#say(line)
        else this.#obey(command, argument)
      } catch (error) {
        if (!BotError.isInstance(error) && !CredentialError.isInstance(error)) throw error
        this.print(this.#paint('red', error.message))
      }
    }
    if (!this.#over) this.#prompt()
  }

  #obey(command: string, argument: string): void {
    const commands: Record<(typeof COMMANDS)[number], () => void> = {
      channel: () => this.#goTo(argument),
      speaker: () => this.#speakAs(argument),
      key: () => this.print(this.#payer()),
      stop: () => this.#options.stop(this.#channel.key) || this.print('Nothing runs here.'),
      quit: () => this.#options.onQuit(),
      help: () => this.print(HELP),
    }
    const known = COMMANDS.find((name) => name === command)
    if (known === undefined) this.print(`There is no command /${plain(command)}.\n${HELP}`)
    else commands[known]()
  }

  #say(text: string): void {
    this.#options.room.post({ channel: this.#channel.key, speakerId: this.#speaker.id, text })
  }

  #goTo(name: string): void {
    const { channels } = this.#options.room
    const found = channels.find(({ key, title }) => key === name || title === name)
    if (found === undefined) {
      if (name !== '') this.print(`There is no channel ${plain(name)}.`)
      for (const { title, about } of channels) this.print(`  ${title.padEnd(8)} ${this.#paint('dim', about)}`)
      return
    }
    this.#channel = found
    this.#speaker =
      found.speakers.find(({ id }) => id === this.#speaker.id) ?? found.speakers[0] ?? this.#speaker
  }

  #speakAs(name: string): void {
    const { speakers } = this.#channel
    const found = speakers.find((one) => one.id === name || one.name.toLowerCase() === name.toLowerCase())
    if (found !== undefined) this.#speaker = found
    else this.print(`In ${this.#channel.title} speak: ${speakers.map((one) => one.name).join(', ')}.`)
  }

  #payer(): string {
    return plain(payerWords(this.#options.explain({ channel: this.#channel.key, speaker: this.#speaker })))
  }

  /** What Tab offers: commands, and after two of them channels and speakers. */
  #complete(line: string): [string[], string] {
    const [, command, start = ''] = /^\/(channel|speaker)\s+(.*)$/.exec(line) ?? []
    const names = {
      channel: () => this.#options.room.channels.map(({ title }) => title),
      speaker: () => this.#channel.speakers.map(({ name }) => name),
    }
    if (command === 'channel' || command === 'speaker') {
      return [names[command]().filter((name) => name.startsWith(start)), start]
    }
    const commands = COMMANDS.map((name) => `/${name} `)
    return [line.startsWith('/') ? commands.filter((name) => name.startsWith(line)) : [], line]
  }

  #show(entry: RoomEntry): void {
    const own = entry.kind === 'message'
    if (own && this.#options.interactive && entry.channel === this.#channel.key) {
      if (entry.speakerId === this.#speaker.id) return
    }
    const place = this.#paint('dim', `${entry.channel} `)
    const author = this.#paint(own ? 'bold' : 'cyan', `${plain(entry.author)}:`)
    this.print([`${place}${author} ${block(entry.text)}`, ...(entry.files ?? []).map(fileLine)].join('\n'))
    if (entry.turnId === undefined) return
    this.#owed = entry.turnId
    const receipt = this.#options.ledger.latest(entry.channel)
    if (receipt !== undefined) this.#settle(receipt)
  }

  #settle(receipt: Receipt): void {
    if (receipt.state !== 'settled' || receipt.turnId !== this.#owed) return
    this.#owed = undefined
    const paid = receipt.payments.map(({ rule, fingerprint }) =>
      plain(rule === undefined ? `key ${short(fingerprint)}` : `${rule}, key ${short(fingerprint)}`),
    )
    const place = receipt.driver === 'docker' ? 'container' : 'no container'
    const facts = [paid.join(' and ') || 'nobody paid', `${receipt.durationMs} ms`, place]
    if (receipt.ok === false)
      facts.push(`${receipt.category ?? 'failed'}: ${block(receipt.cause ?? 'no cause')}`)
    this.print(
      this.#paint(receipt.ok === false ? 'yellow' : 'dim', `${receipt.channel} ${facts.join(' · ')}`),
    )
  }

  #prompt(): void {
    if (!this.#options.interactive) return
    this.#lines.setPrompt(`${this.#paint('green', `${this.#channel.title}/${this.#speaker.name}`)}> `)
    this.#lines.prompt()
  }
}

/** Lines after the first are set in, so that none of them can pass for a line of the terminal's own. */
function block(text: string): string {
  return plain(text).replaceAll('\n', '\n  ')
}

function fileLine({ name, size }: RoomFile): string {
  return `  file ${plain(name)} (${size} bytes)`
}

function short(fingerprint: string): string {
  return fingerprint.slice(0, 8)
}
