import type { UpstreamScript } from '@sandbox/testing'

/** An MCP server of the older era, as small as one can be. */
export const notes: UpstreamScript = ({ method, body }, response) => {
  if (method !== 'POST') return void response.writeHead(200).end()
  const { id, method: asked, params } = JSON.parse(body)
  if (id === undefined) return void response.writeHead(202).end()
  const answers: Record<string, object> = {
    initialize: {
      protocolVersion: '2025-11-25',
      capabilities: { tools: {} },
      serverInfo: { name: 'notes', version: '1' },
    },
    'tools/list': {
      tools: ['find', 'erase'].map((name) => ({
        name,
        description: `${name} notes`,
        inputSchema: { type: 'object' },
      })),
    },
    'tools/call': { content: [{ type: 'text', text: `found ${params?.arguments?.what}` }] },
  }
  const result = answers[asked]
  if (result !== undefined) return { jsonrpc: '2.0', id, result }
  return { jsonrpc: '2.0', id, error: { code: -32601, message: 'no such method' } }
}
