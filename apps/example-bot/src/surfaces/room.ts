import { randomUUID } from 'node:crypto'
import { limits } from '@sandbox/protocol'
import type { ChannelKey, ChatSurface, InboundMessage, OutboundReply } from '@sandbox/roundtable-plugin'
import { BotError } from '../errors.ts'
import { ReplyFiles, type RoomFile } from './reply-files.ts'
import { RoomHistory } from './room-history.ts'

/** Most messages of a channel that may wait for their turn. */
const WAITING_MESSAGES = 20

/** Somebody who may speak in a channel. */
export interface RoomSpeaker {
  readonly id: string
  readonly name: string
}

/** A channel of the room and who speaks in it. */
export interface RoomChannel {
  readonly key: ChannelKey
  readonly title: string
  /** One sentence for a newcomer. */
  readonly about: string
  readonly speakers: readonly RoomSpeaker[]
  /** Messages to try first. */
  readonly ideas?: readonly string[]
}

/** A line of a channel: somebody's message or the bot's reply. */
export interface RoomEntry {
  readonly id: number
  readonly channel: ChannelKey
  readonly kind: 'message' | 'reply'
  readonly author: string
  /** Of a message. */
  readonly speakerId?: string
  readonly text: string
  /** ISO 8601. */
  readonly at: string
  /** Of a reply: the turn that it ends. */
  readonly turnId?: string
  /** Of a reply: what came with it. */
  readonly files?: readonly RoomFile[]
}

/** What somebody says, and where. */
export interface RoomSaid {
  readonly channel: string
  readonly speakerId: string
  readonly text: string
}

/** An answer as it grows: the worker's words, like the answer itself. */
export interface RoomDraft {
  readonly channel: ChannelKey
  /** All of it that is known by now. */
  readonly text: string
}

/** What a view of the room is told. */
export type RoomEvent =
  | { readonly type: 'entry'; readonly entry: RoomEntry }
  | { readonly type: 'typing'; readonly channel: ChannelKey; readonly on: boolean }
  | { readonly type: 'draft'; readonly draft: RoomDraft }

/** Options of a {@link Room}. */
export interface RoomOptions {
  /** The prefix of its channel keys. */
  readonly prefix: string
  readonly channels: readonly RoomChannel[]
  /** The id of a channel's last turn, to tie a reply to its receipt. */
  readonly turnOf?: (channel: string) => string | undefined
}

/**
 * The demo's chat service: it holds the channels, is one chat surface for the bot, and has views, the page and
 * the terminal, that post and listen.
 */
export class Room implements ChatSurface {
  readonly surface: string
  readonly supportsFiles = true
  readonly channels: readonly RoomChannel[]
  readonly #turnOf: (channel: string) => string | undefined
  readonly #history = new RoomHistory<RoomEntry>()
  #lastId = 0
  readonly #files = new ReplyFiles()
  readonly #drafts = new Map<ChannelKey, RoomDraft>()
  readonly #typing = new Map<ChannelKey, number>()
  readonly #waiting = new Map<ChannelKey, number>()
  readonly #listeners = new Set<(event: RoomEvent) => void>()
  #deliver: ((message: InboundMessage) => Promise<void>) | undefined

  constructor(options: RoomOptions) {
    this.surface = options.prefix
    this.channels = options.channels
    this.#turnOf = options.turnOf ?? (() => undefined)
  }

  /** The host's side: messages go to `deliver` from now on. */
  async start(deliver: (message: InboundMessage) => Promise<void>): Promise<void> {
    this.#deliver = deliver
  }

  /** The host's side: no message is taken any more. */
  async stop(): Promise<void> {
    this.#deliver = undefined
  }

  /** The host's side: a reply is one entry, its chunks put together again. */
  async sendReply(channel: ChannelKey, reply: OutboundReply): Promise<void> {
    const turnId = this.#turnOf(channel)
    const files = (reply.files ?? []).map((file) => this.#files.add(file))
    this.#drafts.delete(channel)
    this.#add({
      channel,
      kind: 'reply',
      author: 'Bot',
      text: reply.chunks.join('\n\n'),
      ...(turnId === undefined ? {} : { turnId }),
      ...(files.length === 0 ? {} : { files }),
    })
  }

  /** The host's side, where a runtime tells an answer as it grows: shown while somebody types there, then forgotten. */
  draft(channel: ChannelKey, text: string): void {
    if (!this.#typing.has(channel)) return
    const draft = { channel, text }
    this.#drafts.set(channel, draft)
    this.#tell({ type: 'draft', draft })
  }

  /** The host's side: shows that an answer is being written, until the returned function is called. */
  startTyping(channel: ChannelKey): () => void {
    this.#setTyping(channel, 1)
    let over = false
    return () => {
      if (over) return
      over = true
      this.#setTyping(channel, -1)
    }
  }

  /** What has been said, oldest first. */
  entries(): readonly RoomEntry[] {
    return this.#history.all()
  }

  /** The channels in which an answer is being written. */
  typing(): readonly ChannelKey[] {
    return [...this.#typing.keys()]
  }

  /** The answers that are growing. */
  drafts(): readonly RoomDraft[] {
    return [...this.#drafts.values()]
  }

  /** A file of a reply, as long as it is kept. */
  file(id: string): ReturnType<ReplyFiles['find']> {
    return this.#files.find(id)
  }

  /** How many views listen. */
  get listening(): number {
    return this.#listeners.size
  }

  /** Calls `listener` on everything that happens. Returns the way out. */
  subscribe(listener: (event: RoomEvent) => void): () => void {
    this.#listeners.add(listener)
    return () => this.#listeners.delete(listener)
  }

  /**
   * Says something. Returns the entry at once; the reply comes as an entry of its own.
   *
   * @throws BotError `message`: no such channel or speaker, blank or too long, too many waiting, or closed.
   */
  post(said: RoomSaid): RoomEntry {
    return this.#take(said).entry
  }

  /** The same; resolves when its turn is over, or when nobody takes it. */
  async ask(said: RoomSaid): Promise<void> {
    await this.#take(said).over
  }

  #take(said: RoomSaid): { entry: RoomEntry; over: Promise<void> } {
    const { channel, speaker } = this.#find(said)
    const deliver = this.#deliver
    if (deliver === undefined) throw refuse('The bot is not running.')
    if (said.text.trim() === '') throw refuse('The message is empty.')
    if (said.text.length > limits.TURN_TEXT_CHARS) {
      throw refuse(`The message has ${said.text.length} characters, ${limits.TURN_TEXT_CHARS} at most.`)
    }
    const waiting = this.#waiting.get(channel.key) ?? 0
    if (waiting >= WAITING_MESSAGES) throw refuse(`${waiting} messages wait for an answer here already.`)
    this.#waiting.set(channel.key, waiting + 1)
    const entry = this.#add({
      channel: channel.key,
      kind: 'message',
      author: speaker.name,
      speakerId: speaker.id,
      text: said.text,
    })
    return { entry, over: this.#hand(deliver, inbound(this.surface, entry, speaker)) }
  }

  async #hand(deliver: (message: InboundMessage) => Promise<void>, message: InboundMessage): Promise<void> {
    try {
      await deliver(message)
    } catch {
      this.#add({
        channel: message.channel,
        kind: 'reply',
        author: 'Bot',
        text: 'The host could not take this message.',
      })
    } finally {
      this.#waiting.set(message.channel, (this.#waiting.get(message.channel) ?? 1) - 1)
    }
  }

  #find(said: RoomSaid): { channel: RoomChannel; speaker: RoomSpeaker } {
    const channel = this.channels.find((known) => known.key === said.channel)
    if (channel === undefined) throw refuse('There is no such channel.')
    const speaker = channel.speakers.find((known) => known.id === said.speakerId)
    if (speaker === undefined) throw refuse('There is no such speaker in this channel.')
    return { channel, speaker }
  }

  #add(entry: Omit<RoomEntry, 'id' | 'at'>): RoomEntry {
    this.#lastId += 1
    const added = { id: this.#lastId, at: new Date().toISOString(), ...entry }
    this.#history.add(added)
    this.#tell({ type: 'entry', entry: added })
    return added
  }

  #setTyping(channel: ChannelKey, step: 1 | -1): void {
    const before = this.#typing.get(channel) ?? 0
    if (before + step > 0) this.#typing.set(channel, before + step)
    else this.#typing.delete(channel)
    if (before + step === 0) this.#drafts.delete(channel)
    if (before === 0 || before + step === 0) this.#tell({ type: 'typing', channel, on: before === 0 })
  }

  #tell(event: RoomEvent): void {
    for (const listener of this.#listeners) listener(event)
  }
}

function inbound(space: string, entry: RoomEntry, speaker: RoomSpeaker): InboundMessage {
  return {
    channel: entry.channel,
    messageId: randomUUID(),
    text: entry.text,
    attachments: [],
    authorId: speaker.id,
    authorName: speaker.name,
    authorIsBot: false,
    space,
    isDirect: false,
    mentionsBot: true,
    repliesToBot: false,
  }
}

function refuse(sentence: string): BotError {
  return new BotError('message', sentence)
}
