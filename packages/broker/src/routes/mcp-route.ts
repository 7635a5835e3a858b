import { limits } from '@sandbox/protocol'
import { parseObject } from '../engine/call/read-body.ts'
import { CallRefusal } from '../engine/call/refusal.ts'
import type { HeadPolicy } from '../engine/call/request-head.ts'
import { reserveCredit } from '../engine/call/reserve-credit.ts'
import type { AdmittedCall, CallRoute } from '../engine/call/route.ts'
import { mcpAnswer } from '../engine/mcp/mcp-answer.ts'
import type { McpLinks } from '../engine/mcp/mcp-links.ts'
import type { McpServer } from '../engine/mcp/mcp-port.ts'
import { mcpSecret } from '../engine/mcp/mcp-secret.ts'

/** What a route to an MCP server is made of. */
export interface McpRouteOptions {
  readonly server: McpServer
  readonly links: McpLinks
  readonly policy: HeadPolicy
  readonly requestBytes: number
  /** In milliseconds. */
  readonly callMs: number
  /** Whether a call may leave out its arguments. */
  readonly bareCalls?: boolean
}

/** `/mcp/<server>`: one call of a listed tool as a JSON-RPC message, rebuilt in both directions. */
export function mcpRoute(options: McpRouteOptions): CallRoute {
  const { server, policy, requestBytes, callMs } = options
  return {
    kind: 'mcp',
    name: server.name,
    policy,
    requestBytes,
    answerBytes: limits.SEALED_CALL_ANSWER_BYTES,
    callMs,
    unusable: 'upstream_invalid',
    run: (call) => callMcp(options, call),
  }
}

/** The token is asked for last: a call that is refused spends none. */
async function callMcp({ server, links, bareCalls = false }: McpRouteOptions, call: AdmittedCall) {
  const { tool, input } = readCall(parseObject(call.bytes), { server, bareCalls })
  const { turn, signal, record } = call
  record.name = `${server.name}/${tool}`
  await reserveCredit(call)
  const secret = await mcpSecret(server, call)
  const outcome = await links.of(turn, server).call(tool, input, {
    ...(secret && { secret }),
    signal,
    onStatus: (status) => {
      record.upstreamStatus = status
    },
  })
  return mcpAnswer(outcome, turn.matcher)
}

/**
 * SB-19 and SB-20: which listed tool is called, and with what. Everything else of the message is dropped.
 * @throws CallRefusal `mcp_refused`
 */
function readCall(
  message: Readonly<Record<string, unknown>>,
  { server, bareCalls }: { readonly server: McpServer; readonly bareCalls: boolean },
): { tool: string; input: Readonly<Record<string, unknown>> } {
  const { method, params } = message
  if (method !== 'tools/call' || !isObject(params)) throw new CallRefusal('mcp_refused')
  const { name, arguments: given } = params
  if (typeof name !== 'string' || !server.tools.includes(name)) throw new CallRefusal('mcp_refused')
  const input = given === undefined && bareCalls ? {} : given
  if (!isObject(input)) throw new CallRefusal('mcp_refused')
  return { tool: name, input }
}

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
