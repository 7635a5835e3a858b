import type { McpSpec, ToolSpec } from '@sandbox/protocol'
import type { CallEvent, CallReason, ReceiptSink } from '../call/call-event.ts'
import { CallRecord } from '../call/call-record.ts'
import { linkCallSignal } from '../call/call-signal.ts'
import { CallRefusal } from '../call/refusal.ts'
import { largeCarriesSecret } from '../reflection/scan-json.ts'
import type { Turn } from '../turn/turn-binding.ts'
import type { McpLinks } from './mcp-links.ts'
import type { McpServer } from './mcp-port.ts'
import { mcpSecret } from './mcp-secret.ts'
import { type ShownTools, shownTools } from './tool-specs.ts'

/** What the listing of a turn needs. */
export interface McpListing {
  readonly servers: readonly McpServer[]
  readonly links: McpLinks
  readonly turn: Turn
  /** Ends the listing early. */
  readonly signal: AbortSignal
  /** Time for all servers together, in milliseconds. */
  readonly limitMs: number
  /** What a turn has left for the tools of servers: this many, of so many bytes as JSON. */
  readonly room: { readonly bytes: number; readonly tools: number }
  readonly onReceipt?: ReceiptSink
  onCall?(event: CallEvent): void
}

/**
 * Asks every server for its tools, at once and as the turn's speaker. What the worker is shown are the operator's
 * tools only (W-35), as far as they fit into a turn; a server that fails, or whose list carries a secret, is left
 * out. One event per server says what became of it. Rejects only with the signal's reason.
 */
export async function listMcp(listing: McpListing): Promise<McpSpec[]> {
  const answers = await Promise.all(listing.servers.map((server) => ask(server, listing)))
  listing.signal.throwIfAborted()
  const room = { ...listing.room }
  return answers.flatMap(({ server, record, shown, reason }) => {
    const tools = shown.specs.filter((spec) => fits(spec, room))
    const left = shown.specs.filter((spec) => !tools.includes(spec)).map(({ name }) => name)
    record.droppedFields = [...shown.missing, ...left]
    void report(listing, record.toEvent({ status: reason === 'ok' ? 200 : 502, reason }))
    return tools.length === 0 ? [] : [{ name: server.name, tools }]
  })
}

/** How much of a turn's room a tool takes, in bytes. */
export function specBytes(spec: ToolSpec): number {
  return Buffer.byteLength(JSON.stringify(spec))
}

interface Asked {
  readonly server: McpServer
  readonly record: CallRecord
  readonly shown: ShownTools
  readonly reason: CallReason
}

async function ask(
  server: McpServer,
  { links, turn, signal: guest, limitMs, onReceipt }: McpListing,
): Promise<Asked> {
  const record = new CallRecord()
  record.route = 'mcp'
  record.name = server.name
  record.turn = turn
  record.onReceipt = onReceipt
  const { signal, refusal, detach } = linkCallSignal({ turn: turn.signal, guest, limitMs })
  try {
    const secret = await mcpSecret(server, { turn, signal, record })
    const onStatus = (status: number) => {
      record.upstreamStatus = status
    }
    const listed = await links.of(turn, server).list({ ...(secret && { secret }), signal, onStatus })
    const shown = shownTools(server.tools, listed, turn.matcher)
    if (await largeCarriesSecret(shown.specs, turn.matcher, signal)) throw new CallRefusal('reflection')
    return { server, record, shown, reason: 'ok' }
  } catch (error) {
    const { reason } = refusal() ?? (error instanceof CallRefusal ? error : new CallRefusal('internal'))
    return { server, record, shown: { specs: [], missing: server.tools }, reason }
  } finally {
    detach()
  }
}

function fits(spec: ToolSpec, room: { bytes: number; tools: number }): boolean {
  const bytes = specBytes(spec)
  if (bytes > room.bytes || room.tools < 1) return false
  room.bytes -= bytes
  room.tools -= 1
  return true
}

async function report({ onCall }: McpListing, event: CallEvent): Promise<void> {
  try {
    await onCall?.(event)
  } catch {}
}
