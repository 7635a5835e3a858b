import { createServer } from 'node:http'
import { pipeline } from 'node:stream'
import { Agent } from 'undici/index.js'

// The peer that checks nothing: node:http on a Unix socket, undici behind it, one header written over.

const [path = '', upstream = ''] = process.argv.slice(2)
const agent = new Agent({ headersTimeout: 0, bodyTimeout: 0, pipelining: 1 })

const server = createServer(async (incoming, response) => {
  const chunks: Buffer[] = []
  for await (const chunk of incoming) chunks.push(chunk as Buffer)
  const answer = await agent.request({
    origin: upstream,
    path: incoming.url ?? '/',
    method: 'POST',
    headers: { 'content-type': 'application/json', authorization: 'Bearer sk-bench' },
    body: Buffer.concat(chunks),
  })
  const type = String(answer.headers['content-type'])
  const length = answer.headers['content-length']
  response.writeHead(answer.statusCode, {
    'content-type': type,
    ...(length === undefined ? {} : { 'content-length': String(length) }),
  })
  pipeline(answer.body, response, () => {})
})
server.keepAliveTimeout = 0
server.listen(path, () => process.send?.({ ready: true }))
process.on('message', () => process.send?.({ cpuUs: cpuUs(), rssBytes: process.memoryUsage.rss() }))
process.on('disconnect', () => process.exit(0))

function cpuUs(): number {
  const { user, system } = process.cpuUsage()
  return user + system
}
