import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'

// A model service of its own process: answers each call at once, or with a stream whose events say when they left.

const ANSWER = JSON.stringify({
  id: 'chatcmpl-1',
  object: 'chat.completion',
  model: 'bench',
  choices: [
    { index: 0, finish_reason: 'stop', message: { role: 'assistant', content: 'An answer. '.repeat(60) } },
  ],
  usage: { prompt_tokens: 5, completion_tokens: 3, total_tokens: 8 },
})
const EVENTS = 500
const GAP_MS = 2

const server = createServer(async (incoming, response) => {
  let first: Buffer | undefined
  let last: Buffer | undefined
  for await (const chunk of incoming) {
    first ??= chunk as Buffer
    last = chunk as Buffer
  }
  const ends = `${first?.toString('latin1', 0, 400)}${last?.toString('latin1', Math.max(0, last.length - 400))}`
  if (!ends.includes('"stream":true')) {
    response
      .writeHead(200, { 'content-type': 'application/json', 'content-length': ANSWER.length })
      .end(ANSWER)
    return
  }
  response.writeHead(200, { 'content-type': 'text/event-stream' })
  for (let at = 0; at < EVENTS && !response.destroyed; at += 1) {
    const content = `${performance.timeOrigin + performance.now()} some words `
    const choice = { index: 0, delta: { content }, finish_reason: null }
    response.write(
      `data: ${JSON.stringify({ id: 'c', object: 'chat.completion.chunk', choices: [choice] })}\n\n`,
    )
    await sleep(GAP_MS)
  }
  response.end('data: {"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}\n\ndata: [DONE]\n\n')
})
server.keepAliveTimeout = 60_000
server.listen(0, '127.0.0.1', () => process.send?.({ port: (server.address() as AddressInfo).port }))
process.on('disconnect', () => process.exit(0))
