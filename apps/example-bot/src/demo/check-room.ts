import { randomUUID } from 'node:crypto'
import type { CallEvent, HostTool } from '@sandbox/broker'
import type {
  ChannelKey,
  ChatSurface,
  InboundMessage,
  OutboundReply,
  TurnEvent,
} from '@sandbox/roundtable-plugin'

/** A message of the check and who says it where. */
export interface CheckMessage {
  readonly channel: ChannelKey
  readonly speaker: { readonly id: string; readonly name: string }
  readonly text: string
}

/** What the host itself told about one message. */
export interface CheckTrace {
  readonly message: CheckMessage
  /** The last event of its turn; absent when it never became one. */
  turn?: TurnEvent
  /** Calls that were admitted under its turn. */
  readonly calls: CallEvent[]
  /** Every call of the bot from the message to its answer, other channels' included. */
  window: readonly CallEvent[]
  readonly replies: string[]
  /** Whom the host tool was called for. */
  readonly toolScopes: { readonly channel: string; readonly speaker: string }[]
  /** From the message to its answer. */
  durationMs: number
  /** Why the host did not take the message, when it did not. */
  failure?: string
}

/**
 * The check's own chat service, and the place where what the host tells comes together: each message with its
 * turn, its calls, its tool calls and its replies.
 */
export class CheckRoom implements ChatSurface {
  readonly surface = 'demo'
  /** A host tool that tells the time and remembers for whom. */
  readonly clock: HostTool
  readonly #waiting = new Map<string, CheckTrace[]>()
  readonly #current = new Map<string, CheckTrace>()
  readonly #byTurn = new Map<string, CheckTrace>()
  readonly #calls: CallEvent[] = []
  #deliver: ((message: InboundMessage) => Promise<void>) | undefined

  constructor() {
    this.clock = {
      name: 'clock',
      description: 'Tells the time.',
      parameters: { type: 'object', properties: {} },
      execute: (_, { channel, speaker }) => {
        this.#current.get(channel)?.toolScopes.push({ channel, speaker: speaker.id })
        return new Date().toISOString()
      },
    }
  }

  /** The host's side: messages go to `deliver` from now on. */
  async start(deliver: (message: InboundMessage) => Promise<void>): Promise<void> {
    this.#deliver = deliver
  }

  /** The host's side: no message is taken any more. */
  async stop(): Promise<void> {
    this.#deliver = undefined
  }

  /** The host's side: what the bot says. */
  async sendReply(channel: ChannelKey, reply: OutboundReply): Promise<void> {
    this.#current.get(channel)?.replies.push(reply.chunks.join('\n'))
  }

  /** To be given to the bot. */
  readonly onTurn = (event: TurnEvent): void => {
    if (event.state === 'admitted') {
      const trace = this.#waiting.get(event.channel)?.shift()
      if (trace === undefined) return
      this.#current.set(event.channel, trace)
      this.#byTurn.set(event.turnId, trace)
    }
    const trace = this.#byTurn.get(event.turnId)
    if (trace !== undefined) trace.turn = event
  }

  /** To be given to the bot. */
  readonly onCall = (event: CallEvent): void => {
    this.#calls.push(event)
    if (event.turnId !== undefined) this.#byTurn.get(event.turnId)?.calls.push(event)
  }

  /** Says something. Resolves when the host is done with it; never rejects. */
  async say(message: CheckMessage): Promise<CheckTrace> {
    const trace: CheckTrace = { message, calls: [], window: [], replies: [], toolScopes: [], durationMs: 0 }
    const waiting = this.#waiting.get(message.channel) ?? []
    this.#waiting.set(message.channel, waiting)
    waiting.push(trace)
    const from = this.#calls.length
    const began = performance.now()
    try {
      if (this.#deliver === undefined) throw new TypeError('the bot is not running')
      await this.#deliver(inbound(message))
    } catch (error) {
      trace.failure = error instanceof Error ? error.message : String(error)
    }
    trace.durationMs = Math.round(performance.now() - began)
    trace.window = this.#calls.slice(from)
    const left = waiting.indexOf(trace)
    if (left >= 0) waiting.splice(left, 1)
    return trace
  }
}

function inbound({ channel, speaker, text }: CheckMessage): InboundMessage {
  return {
    channel,
    messageId: randomUUID(),
    text,
    attachments: [],
    authorId: speaker.id,
    authorName: speaker.name,
    authorIsBot: false,
    space: 'demo',
    isDirect: false,
    mentionsBot: true,
    repliesToBot: false,
  }
}
