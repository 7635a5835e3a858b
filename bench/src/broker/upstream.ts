import { createServer, type ServerResponse } from 'node:http'
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
/** Between the events of a stream. */
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
  if (incoming.url?.startsWith('/v1/messages')) return sendMessage(response, ends)
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
/** As the Messages API does it: as many pieces of text as there may be tokens. */
async function sendMessage(response: ServerResponse, request: string): Promise<void> {
  const send = (data: { readonly type: string } & Record<string, unknown>) =>
    response.write(`event: ${data.type}\ndata: ${JSON.stringify(data)}\n\n`)
  const usage = { input_tokens: 5, output_tokens: 3 }
  const message = { id: 'm', type: 'message', role: 'assistant', model: 'bench', content: [], usage }
  send({ type: 'message_start', message: { ...message, stop_reason: null } })
  send({ type: 'content_block_start', index: 0, content_block: { type: 'text', text: '' } })
  const tokens = Number(/"max_tokens":(\d+)/.exec(request)?.[1])
  for (let at = 0; at < tokens && !response.destroyed; at += 1) {
    const text = `${performance.timeOrigin + performance.now()} some words `
    send({ type: 'content_block_delta', index: 0, delta: { type: 'text_delta', text } })
    await sleep(GAP_MS)
  }
  send({ type: 'content_block_stop', index: 0 })
  send({ type: 'message_delta', delta: { stop_reason: 'end_turn', stop_sequence: null }, usage })
  send({ type: 'message_stop' })
  response.end()
}

server.keepAliveTimeout = 60_000
server.listen(0, '127.0.0.1', () => process.send?.({ port: (server.address() as AddressInfo).port }))
process.on('disconnect', () => process.exit(0))
