import { randomUUID } from 'node:crypto'
import type { ServerResponse } from 'node:http'
import { Server as OldServer } from '@modelcontextprotocol/sdk/server/index.js'
import { WebStandardStreamableHTTPServerTransport as OldTransport } from '@modelcontextprotocol/sdk/server/webStandardStreamableHttp.js'
import { CallToolRequestSchema, ListToolsRequestSchema } from '@modelcontextprotocol/sdk/types.js'
import { createMcpHandler, fromJsonSchema, inputRequired, McpServer } from '@modelcontextprotocol/server'
import { type ScriptedUpstream, type SeenRequest, scriptedUpstream } from '@sandbox/testing'

/** A real MCP server on loopback. */
export interface TestMcpServer extends AsyncDisposable {
  readonly url: string
  readonly seen: SeenRequest[]
  /** Sessions that are open now; always none in the newer era. */
  readonly sessions: Map<string, unknown>
}

const TEXT_INPUT = { type: 'object', properties: { text: { type: 'string' } }, required: ['text'] } as const
const DESCRIPTIONS: Readonly<Record<string, string>> = {
  echo: 'Gives back its text.',
  ask: 'Asks the client for input first.',
  fail: 'Fails, and says why.',
  hidden: 'Not for everybody.',
}

/** The SDK's own server of the newer era (2026-07-28), which refuses the older one. */
export async function newServer(mode: 'json' | 'sse'): Promise<TestMcpServer> {
  const handler = createMcpHandler(newTools, {
    responseMode: mode === 'json' ? 'auto' : 'sse',
    legacy: 'reject',
  })
  const upstream = await webServer((request) => handler.fetch(request))
  return { ...handle(upstream), sessions: new Map() }
}

function newTools(): McpServer {
  const server = new McpServer({ name: 'new', version: '1' })
  for (const name of Object.keys(DESCRIPTIONS)) {
    const config = {
      description: DESCRIPTIONS[name] ?? '',
      inputSchema: fromJsonSchema<{ text: string }>(TEXT_INPUT),
    }
    server.registerTool(name, config, ({ text }) => {
      if (name === 'ask') {
        const requestedSchema = { type: 'object' as const, properties: {} }
        return inputRequired({
          inputRequests: { more: inputRequired.elicit({ message: 'Your password?', requestedSchema }) },
        })
      }
      return plain(name, text)
    })
  }
  return server
}

/** The SDK's own server of the older era (2025-11-25), with sessions. */
export async function oldServer(responseMode: 'json' | 'sse'): Promise<TestMcpServer> {
  const sessions = new Map<string, OldTransport>()
  const upstream = await webServer(async (request) => {
    const id = request.headers.get('mcp-session-id')
    if (id !== null) return (await sessions.get(id)?.handleRequest(request)) ?? unknownSession()
    const transport = new OldTransport({
      sessionIdGenerator: randomUUID,
      enableJsonResponse: responseMode === 'json',
      onsessioninitialized: (session) => {
        sessions.set(session, transport)
      },
      onsessionclosed: (session) => {
        sessions.delete(session)
      },
    })
    await oldTools().connect(transport as Parameters<OldServer['connect']>[0])
    return await transport.handleRequest(request)
  })
  return { ...handle(upstream), sessions }
}

function unknownSession(): Response {
  const error = { code: -32001, message: 'Session not found' }
  return Response.json({ jsonrpc: '2.0', id: null, error }, { status: 404 })
}

function oldTools(): OldServer {
  const server = new OldServer({ name: 'old', version: '1' }, { capabilities: { tools: {} } })
  server.setRequestHandler(ListToolsRequestSchema, () => ({
    tools: Object.entries(DESCRIPTIONS).map(([name, description]) => ({
      name,
      description,
      inputSchema: TEXT_INPUT,
    })),
  }))
  server.setRequestHandler(CallToolRequestSchema, async ({ params }, { sendRequest }) => {
    const text = String(params.arguments?.text)
    if (params.name === 'ask') {
      const { message } = await sendRequest(
        {
          method: 'sampling/createMessage',
          params: { messages: [{ role: 'user', content: { type: 'text', text: 'key?' } }], maxTokens: 1 },
        },
        ListToolsRequestSchema as never,
      ).then(
        () => ({ message: 'the client answered' }),
        (error: Error) => error,
      )
      return plain('fail', message)
    }
    return plain(params.name, text)
  })
  return server
}

function plain(name: string, text: string) {
  const content = [
    { type: 'text' as const, text: name === 'fail' ? `failed: ${text}` : text, _meta: { debug: 1 } },
  ]
  return { content, isError: name === 'fail', _meta: { host: 'internal' } }
}

async function webServer(answer: (request: Request) => Promise<Response>): Promise<ScriptedUpstream> {
  return await scriptedUpstream(async (seen, response) => {
    const stop = new AbortController()
    response.on('close', () => stop.abort())
    const request = new Request(`http://127.0.0.1${seen.url}`, {
      method: seen.method,
      headers: Object.entries(seen.headers).map(([name, value]) => [name, String(value)] as [string, string]),
      signal: stop.signal,
      ...(seen.method === 'POST' ? { body: seen.body } : {}),
    })
    await send(await answer(request), response)
  })
}

async function send(answer: Response, response: ServerResponse): Promise<void> {
  response.writeHead(answer.status, Object.fromEntries(answer.headers))
  response.flushHeaders()
  const reader = answer.body?.getReader()
  response.on('close', () => void reader?.cancel().catch(() => {}))
  for (let next = await reader?.read(); next !== undefined && !next.done; next = await reader?.read()) {
    response.write(next.value)
  }
  response.end()
}

function handle(upstream: ScriptedUpstream) {
  return {
    url: `${upstream.url}/mcp`,
    seen: upstream.seen,
    [Symbol.asyncDispose]: () => upstream[Symbol.asyncDispose](),
  }
}

/** What a hostile server answers to one message; `undefined` = the script wrote its own answer. */
export type HostileScript = (call: {
  readonly message: { readonly id: number; readonly method: string; readonly params?: unknown }
  readonly seen: SeenRequest
  readonly response: ServerResponse
}) => unknown

/** A server of the older era that gets through the handshake and then does as its script says. */
export async function hostileServer(script: HostileScript): Promise<TestMcpServer> {
  const upstream = await scriptedUpstream((seen, response) => {
    if (seen.method !== 'POST') return void response.writeHead(200).end()
    const message = JSON.parse(seen.body)
    if (message.method === 'server/discover') return rpcError(message.id, -32601, 'no such method')
    if (message.method === 'initialize') {
      response.setHeader('mcp-session-id', 's-1')
      const serverInfo = { name: 'hostile', version: '1' }
      return rpc(message.id, { protocolVersion: '2025-11-25', capabilities: { tools: {} }, serverInfo })
    }
    if (message.id === undefined || message.method === undefined) return void response.writeHead(202).end()
    return script({ message, seen, response })
  })
  return { ...handle(upstream), sessions: new Map() }
}

/** A JSON-RPC result. */
export function rpc(id: unknown, result: unknown): object {
  return { jsonrpc: '2.0', id, result }
}

/** A JSON-RPC error. */
export function rpcError(id: unknown, code: number, message: string): object {
  return { jsonrpc: '2.0', id, error: { code, message } }
}

/** The result of a tool. */
export function toolText(text: string): object {
  return { content: [{ type: 'text', text }] }
}
