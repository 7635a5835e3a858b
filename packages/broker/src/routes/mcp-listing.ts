import { limits, type McpSpec, type ToolSpec } from '@sandbox/protocol'
import { type CallEvent, type CallReason, CallRecord } from '../engine/call/call-event.ts'
import { linkCallSignal } from '../engine/call/call-signal.ts'
import { CallRefusal } from '../engine/call/refusal.ts'
import { carriesSecret } from '../engine/reflection/scan-json.ts'
import type { Turn } from '../engine/turn/turn-binding.ts'
import type { McpServer } from '../mcp/mcp-port.ts'
import { type ShownTools, shownTools } from '../mcp/tool-specs.ts'
import type { McpLinks } from './mcp-links.ts'
import { mcpSecret } from './mcp-route.ts'

/** What the listing of a turn needs. */
export interface McpListing {
  readonly servers: readonly McpServer[]
  readonly links: McpLinks
  readonly turn: Turn
  /** Ends the listing early. */
  readonly signal: AbortSignal
  /** Time for all servers together, in milliseconds. */
  readonly limitMs: number
  /** The host's own tools: they and those of the servers must fit into one turn. */
  readonly hostTools: readonly ToolSpec[]
  onCall?(event: CallEvent): void
}

/** Tools that a worker brings itself. */
const OWN_TOOLS = 8

/**
 * Asks every server for its tools, at once and as the turn's speaker. What the worker is shown are the operator's
 * tools only (W-35), as far as they fit into a turn; a server that fails, or whose list carries a secret, is left
 * out. One event per server says what became of it. Rejects only with the signal's reason.
 */
export async function listMcp(listing: McpListing): Promise<McpSpec[]> {
  const answers = await Promise.all(listing.servers.map((server) => ask(server, listing)))
  listing.signal.throwIfAborted()
  const room = {
    bytes: limits.TOOL_SPECS_BYTES - sum(listing.hostTools),
    tools: limits.MODEL_TOOLS - OWN_TOOLS - listing.hostTools.length,
  }
  return answers.flatMap(({ server, record, shown, reason }) => {
    const tools = shown.specs.filter((spec) => fits(spec, room))
    const left = shown.specs.filter((spec) => !tools.includes(spec)).map(({ name }) => name)
    record.droppedFields = [...shown.missing, ...left]
    report(listing, record.toEvent({ status: reason === 'ok' ? 200 : 502, reason }))
    return tools.length === 0 ? [] : [{ name: server.name, tools }]
  })
}

interface Asked {
  readonly server: McpServer
  readonly record: CallRecord
  readonly shown: ShownTools
  readonly reason: CallReason
}

async function ask(server: McpServer, { links, turn, signal: guest, limitMs }: McpListing): Promise<Asked> {
  const record = new CallRecord()
  record.route = 'mcp'
  record.name = server.name
  record.turn = turn
  const { signal, refusal, detach } = linkCallSignal({ turn: turn.signal, guest, limitMs })
  try {
    const secret = await mcpSecret(server, { turn, signal, record })
    const onStatus = (status: number) => {
      record.upstreamStatus = status
    }
    const listed = await links.of(turn, server).list({ ...(secret && { secret }), signal, onStatus })
    const shown = shownTools(server.tools, listed)
    if (carriesSecret(shown.specs, turn.matcher)) throw new CallRefusal('reflection')
    return { server, record, shown, reason: 'ok' }
  } catch (error) {
    const { reason } = refusal() ?? (error instanceof CallRefusal ? error : new CallRefusal('internal'))
    return { server, record, shown: { specs: [], missing: server.tools }, reason }
  } finally {
    detach()
  }
}

function fits(spec: ToolSpec, room: { bytes: number; tools: number }): boolean {
  const bytes = sum([spec])
  if (bytes > room.bytes || room.tools < 1) return false
  room.bytes -= bytes
  room.tools -= 1
  return true
}

function sum(specs: readonly ToolSpec[]): number {
  return specs.reduce((total, spec) => total + Buffer.byteLength(JSON.stringify(spec)), 0)
}

function report({ onCall }: McpListing, event: CallEvent): void {
  try {
    onCall?.(event)
  } catch {}
}
