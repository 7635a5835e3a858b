import { createHash } from 'node:crypto'
import { Server } from '@modelcontextprotocol/sdk/server/index.js'
import { StdioServerTransport } from '@modelcontextprotocol/sdk/server/stdio.js'
import { CallToolRequestSchema, ListToolsRequestSchema } from '@modelcontextprotocol/sdk/types.js'
import { fromJsonSchema, McpServer } from '@modelcontextprotocol/server'
import { serveStdio } from '@modelcontextprotocol/server/stdio'

// A program that speaks MCP on its standard input and output: `node stdio-server.ts new|old`.

const inputSchema = { type: 'object', properties: {} } as const

/** What the process knows of itself. The token's digest, since the token would be stopped on its way. */
function self() {
  const token = process.env.NOTES_TOKEN
  const digest = token === undefined ? null : createHash('sha256').update(token).digest('hex')
  const text = JSON.stringify({
    pid: process.pid,
    digest,
    names: Object.keys(process.env),
    args: process.argv.slice(2),
  })
  process.stderr.write(`token: ${token}\n`)
  return { content: [{ type: 'text' as const, text }] }
}

if (process.argv[2] === 'new') {
  serveStdio(() => {
    const server = new McpServer({ name: 'new', version: '1' })
    server.registerTool('self', { inputSchema: fromJsonSchema(inputSchema) }, self)
    server.registerTool('exit', { inputSchema: fromJsonSchema(inputSchema) }, () => process.exit(3))
    return server
  })
} else {
  const server = new Server({ name: 'old', version: '1' }, { capabilities: { tools: {} } })
  server.setRequestHandler(ListToolsRequestSchema, () => ({
    tools: [
      { name: 'self', inputSchema },
      { name: 'exit', inputSchema },
    ],
  }))
  server.setRequestHandler(CallToolRequestSchema, ({ params }) =>
    params.name === 'exit' ? process.exit(3) : self(),
  )
  await server.connect(new StdioServerTransport())
}
