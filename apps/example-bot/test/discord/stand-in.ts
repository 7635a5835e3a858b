import { commandOf, type MessagePayload, messageOf, type Said } from './payloads.ts'
import { ANN, BEN, BOT, GUILD, OLGA, type Person } from './people.ts'
import { StandInGateway } from './stand-in-gateway.ts'
import { type Answer, openRest, type SeenPost } from './stand-in-rest.ts'

const TOKEN = 'stand-in.token.of-the-bot'

/** Discord on loopback: its REST API over HTTP and its gateway over a WebSocket, as far as the bot uses them. */
export interface StandIn extends AsyncDisposable {
  /** Base of the REST API. */
  readonly api: string
  readonly token: string
  readonly gateway: StandInGateway
  /** Every request but the one for the gateway, in order. */
  readonly seen: readonly SeenPost[]
  /** Those of one method and path; the path as an expression. */
  seenAt(method: string, path: RegExp): readonly SeenPost[]
  /** Messages that the bot posted, everywhere or in a channel. */
  posted(channel?: string): readonly SeenPost[]
  /** Somebody says something. Returns it as the API wrote it. */
  say(said: Said): MessagePayload
  /** What somebody said so far, as the API wrote it. */
  said(by: Person): readonly MessagePayload[]
  /** Somebody uses a slash command. Returns what can be read of the answers. */
  command(command: Parameters<typeof commandOf>[0]): { answers(): readonly SeenPost[] }
  /** The next request that fits is answered so, once, in place of how Discord would. */
  once(method: string, path: RegExp, answer: Answer | (() => Promise<Answer>)): void
}

/** Starts one. */
export async function openStandIn(): Promise<StandIn> {
  return await StandInDiscord.open([OLGA, ANN, BEN, BOT])
}

class StandInDiscord implements StandIn {
  readonly token = TOKEN
  readonly seen: SeenPost[] = []
  readonly gateway: StandInGateway
  readonly #people: readonly Person[]
  readonly #faults: { method: string; path: RegExp; answer: Answer | (() => Promise<Answer>) }[] = []
  readonly #said: MessagePayload[] = []
  readonly #close: () => Promise<void>

  static async open(people: readonly Person[]): Promise<StandIn> {
    const late: { standIn?: StandInDiscord } = {}
    const server = await openRest({
      token: TOKEN,
      answer: (seen) => late.standIn?.answer(seen) ?? { status: 503 },
    })
    const gateway = new StandInGateway({ server, token: TOKEN, people })
    late.standIn = new StandInDiscord(people, gateway, async () => {
      server.closeAllConnections()
      await gateway.close()
      await new Promise<void>((done) => server.close(() => done()))
    })
    return late.standIn
  }

  constructor(people: readonly Person[], gateway: StandInGateway, close: () => Promise<void>) {
    this.#people = people
    this.gateway = gateway
    this.#close = close
  }

  get api(): string {
    return `${this.gateway.url.replace('ws:', 'http:')}/api`
  }

  seenAt(method: string, path: RegExp): readonly SeenPost[] {
    return this.seen.filter((post) => post.method === method && path.test(post.path))
  }

  posted(channel = '\\d+'): readonly SeenPost[] {
    return this.seenAt('POST', new RegExp(`^/channels/${channel}/messages$`))
  }

  say(said: Said): MessagePayload {
    const message = messageOf(said, this.#people)
    this.#said.push(message)
    this.gateway.dispatch('MESSAGE_CREATE', message)
    return message
  }

  said(by: Person): readonly MessagePayload[] {
    return this.#said.filter(({ author }) => author.id === by.id)
  }

  command(command: Parameters<typeof commandOf>[0]): { answers(): readonly SeenPost[] } {
    const interaction = commandOf(command)
    this.gateway.dispatch('INTERACTION_CREATE', interaction)
    return { answers: () => this.seen.filter(({ path }) => path.includes(interaction.token)) }
  }

  once(method: string, path: RegExp, answer: Answer | (() => Promise<Answer>)): void {
    this.#faults.push({ method, path, answer })
  }

  async answer(seen: SeenPost): Promise<Answer> {
    const fault = this.#faults.findIndex(({ method, path }) => method === seen.method && path.test(seen.path))
    if (seen.path === '/gateway/bot' && fault < 0) return this.#gatewayAnswer()
    this.seen.push(seen)
    if (fault < 0) return this.#usual(seen)
    const [{ answer } = { answer: { status: 500 } }] = this.#faults.splice(fault, 1)
    return typeof answer === 'function' ? await answer() : answer
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.#close()
  }

  #gatewayAnswer(): Answer {
    const limit = { total: 1000, remaining: 999, reset_after: 0, max_concurrency: 1 }
    return { status: 200, body: { url: this.gateway.url, shards: 1, session_start_limit: limit } }
  }

  #usual(seen: SeenPost): Answer {
    const { method, path, body, files } = seen
    const [, channel] = /^\/channels\/(\d+)\/messages$/.exec(path) ?? []
    if (method === 'POST' && channel !== undefined) return this.#post(channel, body, files.length)
    if (method === 'POST' && path.endsWith('/typing')) return { status: 204 }
    if (method === 'GET' && path === '/applications/@me') {
      return { status: 200, body: { id: BOT.id, name: BOT.name, flags: 1 << 19 } }
    }
    if (method === 'GET' && path === '/users/@me/guilds') return { status: 200, body: [{ id: GUILD }] }
    if (method === 'PUT' && path === `/applications/${BOT.id}/commands`) return { status: 200, body }
    if (method === 'POST' && path.startsWith('/interactions/')) return { status: 204 }
    if (method === 'PATCH' && path.startsWith('/webhooks/')) {
      return { status: 200, body: messageOf({ by: BOT, text: body.content }, this.#people) }
    }
    return { status: 404, body: { message: '404: Not Found', code: 0 } }
  }

  /** Discord's own limits. A message that is taken comes back to the bot as everybody's does. */
  #post(channel: string, body: { content?: string }, files: number): Answer {
    const { content = '' } = body
    if (content.trim() === '' && files === 0) {
      return { status: 400, body: { message: 'Cannot send an empty message', code: 50_006 } }
    }
    if (content.length > 2_000 || files > 10) {
      return { status: 400, body: { message: 'Invalid Form Body', code: 50_035, errors: {} } }
    }
    return { status: 200, body: this.say({ by: BOT, text: content, in: channel }) }
  }
}
