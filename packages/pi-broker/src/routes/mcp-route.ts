import {
  type AdmittedCall,
  CallRefusal,
  type CallRoute,
  jsonBytes,
  type McpLinks,
  type McpServer,
  type McpUse,
  mcpAnswer,
  mcpSecret,
  PassedAnswer,
  parseMessage,
  reserveCredit,
  shownTools,
} from '@sandbox/broker/engine'
import { limits, PI_PLACEHOLDER } from '@sandbox/protocol'
import type { ResolvedPiOptions } from '../options.ts'

/** What the MCP routes are made of. */
export interface McpRouteOptions {
  readonly options: ResolvedPiOptions
  readonly links: McpLinks
}

type JsonObject = Readonly<Record<string, unknown>>

/**
 * `/mcp/<server>`: one JSON-RPC message, as a client of Streamable HTTP posts it. The handshake, `ping` and the list
 * are answered here; the session with the server is the host's own, one per turn. Only listed tools are shown and
 * called, both directions are rebuilt, and a server's token is never sent to another (W-08, W-35, W-36).
 */
export function mcpRoute(server: McpServer, { options, links }: McpRouteOptions): CallRoute {
  return {
    kind: 'mcp',
    name: server.name,
    policy: { method: 'POST', headers: 'any', placeholder: PI_PLACEHOLDER },
    requestBytes: limits.PI_MCP_BYTES,
    answerBytes: limits.PI_MCP_BYTES,
    idleMs: options.idleMs,
    lane: 'parallel',
    unusable: 'upstream_invalid',
    run: (call) => answerMcp(server, links, call),
  }
}

async function answerMcp(server: McpServer, links: McpLinks, call: AdmittedCall): Promise<unknown> {
  const { method, params, id } = readMessage(await parseMessage(call.bytes, call.signal))
  switch (method) {
    case 'notifications/initialized':
      return new PassedAnswer({ status: 202, headers: {}, body: new Uint8Array(0) })
    case 'initialize':
      return { jsonrpc: '2.0', id: asked(id), result: welcome(server, params) }
    case 'ping':
      return { jsonrpc: '2.0', id: asked(id), result: {} }
    case 'tools/list':
      return { jsonrpc: '2.0', id: asked(id), result: await listed(server, links, call) }
    case 'tools/call':
      return { ...(await called(server, links, { call, params })), id: asked(id) }
    case 'server/discover':
      return unknownMethod(asked(id))
    default:
      throw new CallRefusal('mcp_refused')
  }
}

/** T47: the question of the newer era. A client that hears this goes on with the handshake. */
function unknownMethod(id: string | number): PassedAnswer {
  const error = { code: -32_601, message: 'Method not found' }
  return new PassedAnswer({
    status: 404,
    headers: { 'content-type': 'application/json' },
    body: jsonBytes({ jsonrpc: '2.0', id, error }),
    reason: 'mcp_refused',
  })
}

/** PB-14 and PB-15: what is asked, and how it is called. Everything else of a message is dropped. */
function readMessage(message: JsonObject): { method: unknown; params: JsonObject; id: unknown } {
  const { method, params = {}, id, jsonrpc } = message
  if (jsonrpc !== '2.0' || !isObject(params)) throw new CallRefusal('mcp_refused')
  return { method, params, id }
}

const ID_CHARS = 256

/** The id of a message that wants an answer (W-35). */
function asked(id: unknown): string | number {
  if (typeof id === 'string' && id.length <= ID_CHARS) return id
  if (Number.isSafeInteger(id)) return id as number
  throw new CallRefusal('mcp_refused')
}

/** Protocol versions of the era with a handshake. */
const VERSIONS = ['2024-11-05', '2025-03-26', '2025-06-18', '2025-11-25'] as const

function welcome({ name }: McpServer, { protocolVersion }: JsonObject): JsonObject {
  const known = VERSIONS.find((version) => version === protocolVersion)
  return {
    protocolVersion: known ?? VERSIONS.at(-1),
    capabilities: { tools: {} },
    serverInfo: { name, version: '1' },
  }
}

async function listed(server: McpServer, links: McpLinks, call: AdmittedCall): Promise<JsonObject> {
  const tools = await links.of(call.turn, server).list(await useOf(server, call))
  const { specs, missing } = shownTools(server.tools, tools, call.turn.matcher)
  call.record.droppedFields = missing
  return {
    tools: specs.map(({ name, description, parameters }) => ({ name, description, inputSchema: parameters })),
  }
}

async function called(
  server: McpServer,
  links: McpLinks,
  { call, params }: { readonly call: AdmittedCall; readonly params: JsonObject },
): Promise<JsonObject> {
  const { name, arguments: input = {} } = params
  const isListed = typeof name === 'string' && server.tools.includes(name)
  if (!isListed || !isObject(input)) throw new CallRefusal('mcp_refused')
  call.record.name = `${server.name}/${name}`
  const outcome = await links.of(call.turn, server).call(name, input, await useOf(server, call))
  return mcpAnswer(outcome, call.turn.matcher)
}

/** The token is asked for last: a call that is refused spends none. */
async function useOf(server: McpServer, call: AdmittedCall): Promise<McpUse> {
  await reserveCredit(call)
  const secret = await mcpSecret(server, call)
  return {
    ...(secret === undefined ? {} : { secret }),
    signal: call.signal,
    onStatus: (status) => {
      call.record.upstreamStatus = status
    },
  }
}

function isObject(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
