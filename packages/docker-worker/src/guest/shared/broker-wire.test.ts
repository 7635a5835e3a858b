import { once } from 'node:events'
import { createServer, type Socket } from 'node:net'
import { tempDir } from '@sandbox/testing'
import { expect, test } from 'vitest'
import { BrokerWire, REFUSED_BODY, type WireCall } from './broker-wire.ts'

const get: WireCall = { method: 'GET', path: '/worker/next', answerBytes: 100 }

/** A raw server: what arrives on each connection, and what is written back for every chunk. */
async function rawHost(answer: (socket: Socket, received: string) => void) {
  const directory = tempDir()
  const received: string[] = []
  const sockets: Socket[] = []
  const server = createServer((socket) => {
    sockets.push(socket)
    socket.on('error', () => {})
    socket.on('data', (chunk) => {
      received.push(chunk.toString())
      answer(socket, chunk.toString())
    })
  })
  const path = `${directory.path}/s`
  server.listen(path)
  await once(server, 'listening')
  const wire = new BrokerWire(path)
  return {
    wire,
    received,
    sockets,
    [Symbol.asyncDispose]: async () => {
      wire.close()
      for (const socket of sockets) socket.destroy()
      await new Promise((resolve) => server.close(resolve))
      directory[Symbol.dispose]()
    },
  }
}

function http(status: number, body: string): string {
  return `HTTP/1.1 ${status} X\r\ncontent-length: ${Buffer.byteLength(body)}\r\n\r\n${body}`
}

test('WT-01 the bytes of a request are exactly these, on one connection that stays open', async () => {
  await using host = await rawHost((socket) => socket.write(http(200, '{}')))
  await host.wire.call(get)
  await host.wire.call({
    ...get,
    method: 'POST',
    path: '/model',
    body: '{"ü":1}',
    headers: { 'x-sandbox-turn': 'n' },
  })
  expect(host.received).toEqual([
    'GET /worker/next HTTP/1.1\r\nhost: broker\r\n\r\n',
    'POST /model HTTP/1.1\r\nhost: broker\r\ncontent-type: application/json\r\ncontent-length: 8\r\n' +
      'x-sandbox-turn: n\r\n\r\n{"ü":1}',
  ])
  expect(host.sockets).toHaveLength(1)
})

test('WT-02 a refusal keeps its status; its body is a fixed object, its words are for the log only', async () => {
  const refusal = JSON.stringify({ error: { code: 'busy', message: 'one\r\ntwo\u001b[0m' }, choices: [] })
  await using host = await rawHost((socket) => socket.write(http(429, refusal)))
  expect(await host.wire.call({ ...get, answerBytes: 1000 })).toEqual({
    status: 429,
    body: REFUSED_BODY,
    refusal: 'one  two [0m',
  })
})

test('WT-02 a refusal in plain text is not data either', async () => {
  await using host = await rawHost((socket) => socket.write(http(404, 'not here')))
  expect(await host.wire.call(get)).toEqual({ status: 404, body: REFUSED_BODY })
})

test('WT-02 a 200 that is no JSON fails', async () => {
  await using host = await rawHost((socket) => socket.write(http(200, 'fine')))
  await expect(host.wire.call(get)).rejects.toMatchObject({ code: 'answer_invalid' })
})

test('WT-02 an answer over the limit fails at once, announced or not, also one that never ends', async () => {
  const endless = 'HTTP/1.1 200 X\r\ntransfer-encoding: chunked\r\n\r\n65\r\n'
  for (const bytes of [http(200, `"${'x'.repeat(99)}"`), `${endless}${'x'.repeat(101)}`]) {
    await using host = await rawHost((socket) => socket.write(bytes))
    await expect(host.wire.call(get)).rejects.toMatchObject({ code: 'answer_too_large' })
  }
  await using host = await rawHost((socket) => socket.write(http(200, `"${'x'.repeat(98)}"`)))
  expect((await host.wire.call(get)).body).toHaveLength(98)
})

test.each([
  ['before the head', ''],
  ['inside the head', 'HTTP/1.1 200 X\r\nconte'],
  ['inside a counted body', 'HTTP/1.1 200 X\r\ncontent-length: 20\r\n\r\n{}'],
  ['inside a chunked body', 'HTTP/1.1 200 X\r\ntransfer-encoding: chunked\r\n\r\n2\r\n{}\r\n'],
])('an answer that breaks off %s is a lost connection, never data', async (_, bytes) => {
  await using host = await rawHost((socket) => socket.end(bytes))
  await expect(host.wire.call(get)).rejects.toMatchObject({ code: 'connection_lost' })
})

test('a host that is not there is a lost connection', async () => {
  const wire = new BrokerWire('/nowhere/s')
  await expect(wire.call(get)).rejects.toMatchObject({ code: 'connection_lost' })
})

test('WT-02 a host that is silent, or stops in mid-answer, is a timeout; the connection is closed', async () => {
  for (const bytes of ['', 'HTTP/1.1 200 X\r\ncontent-length: 20\r\n\r\n{']) {
    await using host = await rawHost((socket) => socket.write(bytes))
    await expect(host.wire.call({ ...get, timeoutMs: 50 })).rejects.toMatchObject({ code: 'timeout' })
    const [socket] = host.sockets
    if (socket !== undefined && !socket.destroyed) await once(socket, 'close')
  }
})

test('an abort ends the call and its connection; the next call has a new one', async () => {
  const abort = new AbortController()
  await using host = await rawHost((socket, text) => {
    if (text.startsWith('POST')) abort.abort()
    else socket.write(http(200, '{}'))
  })
  const call = host.wire.call({ ...get, method: 'POST', body: '{}', signal: abort.signal })
  await expect(call).rejects.toMatchObject({ code: 'aborted' })
  await expect(host.wire.call({ ...get, signal: abort.signal })).rejects.toMatchObject({ code: 'aborted' })
  expect((await host.wire.call(get)).status).toBe(200)
  expect(host.sockets).toHaveLength(2)
  expect(host.received).toHaveLength(2)
})

test('WT-01 bytes that nobody asked for end the connection; they are never the answer to a later call', async () => {
  await using host = await rawHost((socket, text) => {
    if (text.startsWith('POST')) socket.write(http(200, '{"second":true}'))
    else socket.write(http(200, '{}'), () => setImmediate(() => socket.write(http(200, '{"stray":true}'))))
  })
  await host.wire.call(get)
  const [first] = host.sockets
  if (first !== undefined && !first.destroyed) await once(first, 'close')
  const { body } = await host.wire.call({ ...get, method: 'POST', body: '{}' })
  expect(body).toEqual({ second: true })
  expect(host.sockets).toHaveLength(2)
})

test('calls at the same time have connections of their own, and later ones take these', async () => {
  const waiting: Socket[] = []
  await using host = await rawHost((socket) => {
    waiting.push(socket)
    if (waiting.length === 3) for (const one of waiting) one.write(http(200, '{}'))
    if (waiting.length > 3) socket.write(http(200, '{}'))
  })
  await Promise.all([host.wire.call(get), host.wire.call(get), host.wire.call(get)])
  await host.wire.call(get)
  expect(host.sockets).toHaveLength(3)
})

test.each([
  { path: '/a b' },
  { path: 'model' },
  { path: '/a\r\nx: y' },
  { headers: { 'x-sandbox-turn': 'a\r\nx: y' } },
])('what no request can carry is refused before a byte is sent: %j', async (change) => {
  await using host = await rawHost((socket) => socket.write(http(200, '{}')))
  await expect(host.wire.call({ ...get, ...change })).rejects.toThrow(TypeError)
  expect(host.received).toEqual([])
})
