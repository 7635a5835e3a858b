import { createServer, type IncomingHttpHeaders, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'

/** One request as the upstream saw it. */
export interface SeenRequest {
  readonly method: string
  readonly url: string
  readonly headers: IncomingHttpHeaders
  readonly rawHeaders: readonly string[]
  readonly body: string
}

/** What an upstream answers: JSON for an object, else whatever the function writes itself. */
export type UpstreamScript = (
  request: SeenRequest,
  response: ServerResponse,
  incoming: IncomingMessage,
) => unknown | Promise<unknown>

/** A real HTTP service on loopback that records what it saw. */
export interface ScriptedUpstream extends AsyncDisposable {
  readonly url: string
  readonly seen: SeenRequest[]
  script: UpstreamScript
}

/** Starts an upstream. The script's return value, when not `undefined`, is sent as a 200 JSON answer. */
export async function scriptedUpstream(script: UpstreamScript): Promise<ScriptedUpstream> {
  const seen: SeenRequest[] = []
  const server = createServer(async (incoming, response) => {
    const chunks: Buffer[] = []
    try {
      for await (const chunk of incoming) chunks.push(chunk as Buffer)
    } catch {
      return
    }
    const request: SeenRequest = {
      method: incoming.method ?? '',
      url: incoming.url ?? '',
      headers: incoming.headers,
      rawHeaders: incoming.rawHeaders,
      body: Buffer.concat(chunks).toString('utf8'),
    }
    seen.push(request)
    const answer = await upstream.script(request, response, incoming)
    if (answer === undefined || response.headersSent) return
    response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(answer))
  })
  await new Promise<void>((done) => server.listen(0, '127.0.0.1', done))
  const upstream: ScriptedUpstream = {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    seen,
    script,
    [Symbol.asyncDispose]: async () => {
      server.closeAllConnections()
      await new Promise<void>((done) => server.close(() => done()))
    },
  }
  return upstream
}

/** A Chat Completions answer with plain text. */
export function chatText(text: string): object {
  return {
    id: 'chatcmpl-1',
    object: 'chat.completion',
    model: 'scripted',
    choices: [{ index: 0, finish_reason: 'stop', message: { role: 'assistant', content: text } }],
    usage: { prompt_tokens: 5, completion_tokens: 3, total_tokens: 8 },
  }
}

/** A Chat Completions answer that calls tools. */
export function chatToolCalls(calls: readonly { id?: string; name: string; input: unknown }[]): object {
  return {
    id: 'chatcmpl-1',
    object: 'chat.completion',
    model: 'scripted',
    choices: [
      {
        index: 0,
        finish_reason: 'tool_calls',
        message: {
          role: 'assistant',
          content: null,
          tool_calls: calls.map((call, index) => ({
            id: call.id ?? `call_${index}`,
            type: 'function',
            function: { name: call.name, arguments: JSON.stringify(call.input) },
          })),
        },
      },
    ],
    usage: { prompt_tokens: 5, completion_tokens: 3, total_tokens: 8 },
  }
}
