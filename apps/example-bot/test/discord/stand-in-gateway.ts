import type { Server } from 'node:http'
import { type WebSocket, WebSocketServer } from 'ws'
import { guildOf } from './payloads.ts'
import { BOT, type Person, snowflake, userOf } from './people.ts'

/** What the gateway heard from a bot: `identify` or `resume`, with its data. */
export interface Heard {
  readonly what: 'identify' | 'resume'
  // biome-ignore lint/suspicious/noExplicitAny: whatever the bot sends; tests match its shape
  readonly data: any
}

/** Options of {@link StandInGateway}. */
export interface GatewayOptions {
  readonly server: Server
  readonly token: string
  readonly people: readonly Person[]
}

/** Discord's gateway: a session survives its connection, and a resume brings what was missed. */
export class StandInGateway {
  readonly heard: Heard[] = []
  /** Closes every new connection with this code after it has identified itself. */
  refuse: number | undefined
  /** Sends nothing to a new connection, not even a greeting. */
  silent = false
  readonly #options: GatewayOptions
  readonly #sockets: WebSocketServer
  readonly #connections = new Set<WebSocket>()
  readonly #ready = new Set<WebSocket>()
  readonly #sent: { s: number; t: string; d: unknown }[] = []
  #sessionId = ''

  constructor(options: GatewayOptions) {
    this.#options = options
    this.#sockets = new WebSocketServer({ server: options.server })
    this.#sockets.on('connection', (socket) => this.#greet(socket))
  }

  /** Connections that are open now. */
  get open(): number {
    return this.#connections.size
  }

  /** Sends an event to the bot, or keeps it until the bot resumes. */
  dispatch(t: string, d: unknown): void {
    const event = { s: this.#sent.length + 1, t, d }
    this.#sent.push(event)
    for (const socket of this.#ready) send(socket, { op: 0, ...event })
  }

  /** Ends every connection: with a code, or as a cable does. */
  drop(code?: number): void {
    for (const socket of this.#connections) {
      this.#ready.delete(socket)
      if (code === undefined) socket.terminate()
      else socket.close(code)
    }
  }

  /** Asks the bot to connect anew and resume, as Discord does every few hours. */
  askToReconnect(): void {
    for (const socket of this.#ready) send(socket, { op: 7, d: null })
  }

  /** Forgets the bot: a resume is refused. */
  forget(): void {
    this.#sessionId = ''
  }

  async close(): Promise<void> {
    this.drop()
    await new Promise((done) => this.#sockets.close(done))
  }

  #greet(socket: WebSocket): void {
    this.#connections.add(socket)
    socket.on('close', () => {
      this.#connections.delete(socket)
      this.#ready.delete(socket)
    })
    socket.on('error', () => {})
    socket.on('message', (data) => this.#take(socket, JSON.parse(String(data))))
    if (!this.silent) send(socket, { op: 10, d: { heartbeat_interval: 41_250 } })
  }

  // biome-ignore lint/suspicious/noExplicitAny: whatever the bot sends
  #take(socket: WebSocket, { op, d }: { op: number; d: any }): void {
    if (op === 1) send(socket, { op: 11 })
    if (op === 2) this.#identify(socket, d)
    if (op === 6) this.#resume(socket, d)
  }

  // biome-ignore lint/suspicious/noExplicitAny: whatever the bot sends
  #identify(socket: WebSocket, data: any): void {
    this.heard.push({ what: 'identify', data })
    const code = data.token === this.#options.token ? this.refuse : 4004
    if (code !== undefined) {
      socket.close(code)
      return
    }
    this.#sessionId = `session-${snowflake()}`
    this.#sent.length = 0
    this.#ready.add(socket)
    this.dispatch('READY', {
      v: 10,
      user: userOf(BOT),
      guilds: [{ id: guildOf([]).id, unavailable: true }],
      session_id: this.#sessionId,
      resume_gateway_url: this.url,
      shard: [0, 1],
      application: { id: BOT.id, flags: 0 },
    })
    this.dispatch('GUILD_CREATE', guildOf(this.#options.people))
  }

  // biome-ignore lint/suspicious/noExplicitAny: whatever the bot sends
  #resume(socket: WebSocket, data: any): void {
    this.heard.push({ what: 'resume', data })
    if (data.session_id !== this.#sessionId) {
      send(socket, { op: 9, d: false })
      return
    }
    for (const event of this.#sent.filter(({ s }) => s > data.seq)) send(socket, { op: 0, ...event })
    this.#ready.add(socket)
    this.dispatch('RESUMED', {})
  }

  /** Where bots connect. */
  get url(): string {
    const address = this.#options.server.address()
    if (address === null || typeof address === 'string') throw new TypeError('the gateway is not listening')
    return `ws://127.0.0.1:${address.port}`
  }
}

function send(socket: WebSocket, payload: object): void {
  socket.send(JSON.stringify(payload))
}
