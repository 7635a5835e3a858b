import { join } from 'node:path'
import { tempDir } from '@sandbox/testing'
import type { CallEvent } from '../../src/index.ts'
import { type McpServer, mcpServer, type PrecheckOptions, precheckBroker } from '../../src/mcp/index.ts'
import { Guest, type GuestRequest } from './guest.ts'
import type { TestMcpServer } from './mcp-servers.ts'

/** Whose schedule it is. */
export const CONTEXT = { channel: 'web:room', speaker: { id: 'u-ann', name: 'Ann' } }
/** What was approved with the script. */
export const APPROVED = [{ server: 'My-Notes', tools: ['echo', 'fail', 'other'] }]
/** A call of a tool that is granted and approved. */
export const CALL = { method: 'tools/call', params: { name: 'echo', arguments: { text: 'x' } } }

/** A server that is granted, though not all of its tools. */
export function granted(
  server: TestMcpServer,
  more: Partial<Parameters<typeof mcpServer>[0]> = {},
): McpServer {
  return mcpServer({ name: 'My-Notes', url: server.url, tools: ['echo', 'hidden'], allowHttp: true, ...more })
}

/** A run on a real socket. */
export async function openRun(options: Partial<PrecheckOptions> & Pick<PrecheckOptions, 'grant'>) {
  const dir = tempDir()
  const events: CallEvent[] = []
  const broker = await precheckBroker({
    context: CONTEXT,
    signal: new AbortController().signal,
    approved: APPROVED,
    onCall: (event) => events.push(event),
    ...options,
  })
  const path = join(dir.path, 'run.sock')
  await broker.listen(path)
  const call = async (request: Partial<GuestRequest> = {}) => {
    using guest = new Guest(path)
    const headers = { 'content-type': 'application/json' }
    return await guest.call({ path: '/mcp/My-Notes', headers, body: CALL, ...request })
  }
  return {
    broker,
    path,
    events,
    call,
    [Symbol.asyncDispose]: async () => {
      await broker.stop()
      dir[Symbol.dispose]()
    },
  }
}
