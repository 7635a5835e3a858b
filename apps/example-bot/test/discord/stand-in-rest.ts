import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'

/** A request that the bot made, as Discord's REST API saw it. */
export interface SeenPost {
  readonly method: string
  /** Without the version: `/channels/1/messages`. */
  readonly path: string
  // biome-ignore lint/suspicious/noExplicitAny: whatever the bot sends; tests match its shape
  readonly body: any
  readonly files: readonly { readonly name: string; readonly bytes: Uint8Array }[]
}

/** An answer: a status, and JSON. */
export interface Answer {
  readonly status: number
  readonly body?: unknown
  readonly headers?: Readonly<Record<string, string>>
}

/** Options of {@link openRest}. */
export interface RestOptions {
  readonly token: string
  readonly answer: (seen: SeenPost) => Answer | Promise<Answer>
}

/** An HTTP server that takes requests as Discord's REST API does: the bot's token, JSON or a form with files. */
export async function openRest(options: RestOptions): Promise<Server> {
  const server = createServer((request, response) => {
    take(options, request).then(
      (answer) => reply(response, answer),
      () => response.destroy(),
    )
  })
  await new Promise<void>((done) => server.listen(0, '127.0.0.1', done))
  return server
}

async function take({ token, answer }: RestOptions, request: IncomingMessage): Promise<Answer> {
  const chunks: Buffer[] = []
  for await (const chunk of request) chunks.push(chunk as Buffer)
  const path = (request.url ?? '').replace(/^\/api\/v10/, '').replace(/\?.*$/, '')
  // The answer to an interaction is authorised by its own token, in the path.
  const open = path.startsWith('/interactions/') || path.startsWith('/webhooks/')
  if (!open && request.headers.authorization !== `Bot ${token}`) {
    return { status: 401, body: { message: '401: Unauthorized', code: 0 } }
  }
  const parsed = await parse(request.headers['content-type'] ?? '', Buffer.concat(chunks))
  return await answer({ method: request.method ?? '', path, ...parsed })
}

async function parse(type: string, bytes: Buffer): Promise<Pick<SeenPost, 'body' | 'files'>> {
  if (type.startsWith('application/json')) return { body: JSON.parse(bytes.toString()), files: [] }
  if (!type.startsWith('multipart/form-data')) return { body: undefined, files: [] }
  const form = await new Response(bytes, { headers: { 'content-type': type } }).formData()
  const files: { name: string; bytes: Uint8Array }[] = []
  for (const value of form.values()) {
    if (value instanceof File)
      files.push({ name: value.name, bytes: new Uint8Array(await value.arrayBuffer()) })
  }
  return { body: JSON.parse(String(form.get('payload_json'))), files }
}

function reply(response: ServerResponse, { status, body, headers = {} }: Answer): void {
  const type = body === undefined ? {} : { 'content-type': 'application/json' }
  response.writeHead(status, { ...type, ...headers })
  response.end(body === undefined ? undefined : JSON.stringify(body))
}
