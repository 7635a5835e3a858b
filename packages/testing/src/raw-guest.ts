import { connect, type Socket } from 'node:net'

/** One answer as it stood on the wire. */
export interface GuestAnswer {
  readonly status: number
  readonly headers: Readonly<Record<string, string>>
  readonly text: string
  /** The decoded body, or `undefined` when it is no JSON. */
  // biome-ignore lint/suspicious/noExplicitAny: tests look at any shape.
  readonly json: any
}

/** A request that a guest can spell as it likes. */
export interface GuestRequest {
  readonly method?: string
  readonly path: string
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: unknown
}

/** A connection of a guest, byte by byte. Everything that it received is kept. */
export class Guest implements Disposable {
  readonly socket: Socket
  readonly closed: Promise<void>
  readonly #chunks: Buffer[] = []
  #unread = Buffer.alloc(0)
  #wake: (() => void) | undefined
  #over = false

  constructor(path: string, options: { readonly reading?: boolean } = {}) {
    this.socket = connect(path)
    this.socket.on('error', () => {})
    if (options.reading !== false) this.startReading()
    this.closed = new Promise((done) => {
      this.socket.on('close', () => {
        this.#over = true
        this.#wake?.()
        done()
      })
    })
  }

  /** For a guest that was made without reading. */
  startReading(): void {
    this.socket.on('data', (chunk) => {
      this.#chunks.push(chunk)
      this.#unread = Buffer.concat([this.#unread, chunk])
      this.#wake?.()
    })
  }

  get received(): Buffer {
    return Buffer.concat(this.#chunks)
  }

  write(bytes: string | Uint8Array): void {
    this.socket.write(bytes)
  }

  send(request: GuestRequest): void {
    const body = request.body === undefined ? '' : textOf(request.body)
    const headers: Record<string, string> = {
      host: 'broker',
      ...(request.method === 'GET' ? {} : { 'content-length': String(Buffer.byteLength(body)) }),
      ...request.headers,
    }
    const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`)
    this.write(`${request.method ?? 'POST'} ${request.path} HTTP/1.1\r\n${lines.join('')}\r\n${body}`)
  }

  /** The next answer; `undefined` when the connection closed before it was complete. */
  async answer(): Promise<GuestAnswer | undefined> {
    for (;;) {
      const found = parse(this.#unread)
      if (found !== undefined) {
        this.#unread = this.#unread.subarray(found.size)
        return found.answer
      }
      if (this.#over) return undefined
      await new Promise<void>((wake) => {
        this.#wake = wake
      })
    }
  }

  /** Resolves with all that was received once it holds this text, or once the connection closed. */
  async until(text: string): Promise<string> {
    for (;;) {
      const received = this.received.toString()
      if (this.#over || received.includes(text)) return received
      await new Promise<void>((wake) => {
        this.#wake = wake
      })
    }
  }

  async call(request: GuestRequest): Promise<GuestAnswer> {
    this.send(request)
    const answer = await this.answer()
    if (answer === undefined) throw new TypeError(`no answer to ${request.path}`)
    return answer
  }

  [Symbol.dispose](): void {
    this.socket.destroy()
  }
}

function textOf(body: unknown): string {
  return typeof body === 'string' ? body : JSON.stringify(body)
}

function parse(bytes: Buffer): { size: number; answer: GuestAnswer } | undefined {
  const end = bytes.indexOf('\r\n\r\n')
  if (end === -1) return undefined
  const [first = '', ...lines] = bytes.subarray(0, end).toString('latin1').split('\r\n')
  const headers: Record<string, string> = {}
  for (const line of lines) {
    const colon = line.indexOf(':')
    headers[line.slice(0, colon).toLowerCase()] = line.slice(colon + 1).trim()
  }
  const size = end + 4 + Number(headers['content-length'] ?? 0)
  if (bytes.length < size) return undefined
  const text = bytes.subarray(end + 4, size).toString('utf8')
  return { size, answer: { status: Number(first.split(' ')[1]), headers, text, json: jsonOf(text) } }
}

function jsonOf(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}
