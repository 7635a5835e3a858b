import type { Dispatcher } from 'undici'
import { Client } from 'undici/index.js'

/** Where calls are sent, and how. */
export interface Door {
  readonly origin: string
  readonly socketPath?: string
  /** Omitted = that of chat completions. */
  readonly path?: string
  readonly headers?: Readonly<Record<string, string>>
}

/** A connection that is kept. */
export class Caller {
  readonly #client: Dispatcher
  readonly #path: string
  readonly #headers: Record<string, string>

  constructor({ origin, socketPath, path = '/v1/chat/completions', headers }: Door) {
    const options = { pipelining: 1, headersTimeout: 0, bodyTimeout: 0 }
    this.#client = new Client(origin, socketPath === undefined ? options : { ...options, socketPath })
    this.#path = path
    this.#headers = { 'content-type': 'application/json', ...headers }
  }

  /** One call; milliseconds until its answer was read. */
  async call(body: Uint8Array): Promise<number> {
    const startMs = performance.now()
    const { statusCode, body: answer } = await this.#send(body)
    const text = await answer.text()
    if (statusCode !== 200) throw new TypeError(`bench: ${statusCode} ${text.slice(0, 200)}`)
    return performance.now() - startMs
  }

  /** One stream; milliseconds to its first words, and from each event's start to its arrival. */
  async stream(body: Uint8Array): Promise<{ firstMs: number; delaysMs: number[] }> {
    const startMs = performance.now()
    const { statusCode, body: answer } = await this.#send(body)
    if (statusCode !== 200) throw new TypeError(`bench: ${statusCode} ${(await answer.text()).slice(0, 200)}`)
    let firstMs = 0
    let rest = ''
    const delaysMs: number[] = []
    for await (const chunk of answer) {
      const nowMs = performance.timeOrigin + performance.now()
      rest += (chunk as Buffer).toString('latin1')
      const end = rest.lastIndexOf('\n\n') + 2
      if (end === 1) continue
      for (const [, left] of rest.slice(0, end).matchAll(/"(?:content|text)":"(\d+(?:\.\d+)?) /g)) {
        firstMs ||= performance.now() - startMs
        delaysMs.push(nowMs - Number(left))
      }
      rest = rest.slice(end)
    }
    return { firstMs, delaysMs }
  }

  async close(): Promise<void> {
    await this.#client.destroy()
  }

  #send(body: Uint8Array): Promise<Dispatcher.ResponseData> {
    return this.#client.request({
      path: this.#path,
      method: 'POST',
      headers: { ...this.#headers, 'content-length': String(body.length) },
      body,
    })
  }
}

/** A request body of about so many bytes, of many messages. */
export function bodyOf(bytes: number, stream = false): Uint8Array {
  const content = 'The function reads the file and returns its lines; “é” is kept as it is.\n'.repeat(
    bytes > 2 ** 20 ? 240 : 6,
  )
  const messages = [{ role: 'user', content: 'hi' }]
  for (let size = 0; size + content.length < bytes; size += content.length + 40)
    messages.push({ role: 'user', content })
  // Last, where the model service looks for it.
  return Buffer.from(JSON.stringify({ model: 'guest-model', user: 'someone', messages, stream }))
}

/** The status of one small call. */
export async function get(door: Door): Promise<number> {
  const caller = new Caller(door)
  try {
    await caller.call(bodyOf(100))
    return 200
  } finally {
    await caller.close()
  }
}
