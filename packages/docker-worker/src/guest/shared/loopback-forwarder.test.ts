import { once } from 'node:events'
import { createServer, type IncomingMessage, request, type Server, type ServerResponse } from 'node:http'
import { connect, createServer as createTcpServer } from 'node:net'
import { tempDir } from '@sandbox/testing'
import { describe, expect, test } from 'vitest'
import { type LoopbackForwarder, openLoopbackForwarder } from './loopback-forwarder.ts'

const NONCE = 'turn-nonce-of-ann-0123456789'

/** A host on a Unix socket, a forwarder in front of it, and one turn. */
async function openBench(serve: (incoming: IncomingMessage, response: ServerResponse) => void) {
  const dir = tempDir()
  const socketPath = `${dir.path}/worker.sock`
  const host: Server = createServer(serve)
  let connections = 0
  host.on('connection', () => {
    connections += 1
  })
  host.listen(socketPath)
  await once(host, 'listening')
  const forwarder = await openLoopbackForwarder({ socketPath })
  return {
    forwarder,
    host,
    turn: forwarder.open(NONCE),
    connections: () => connections,
    [Symbol.asyncDispose]: async () => {
      await forwarder[Symbol.asyncDispose]()
      host.closeAllConnections()
      await new Promise((resolve) => host.close(resolve))
      dir[Symbol.dispose]()
    },
  }
}

/** Answers with what arrived. */
async function echo(incoming: IncomingMessage, response: ServerResponse): Promise<void> {
  const chunks: Buffer[] = []
  for await (const chunk of incoming) chunks.push(chunk)
  const { method, url, rawHeaders } = incoming
  response.setHeader('x-of-host', 'kept')
  response.end(JSON.stringify({ method, url, rawHeaders, body: Buffer.concat(chunks).toString() }))
}

/** One request of bytes, and all that came back until the other end closed. */
async function raw(forwarder: LoopbackForwarder, text: string): Promise<string> {
  const socket = connect(forwarder.port, '127.0.0.1')
  socket.write(text)
  let got = ''
  socket.on('data', (chunk) => {
    got += chunk.toString()
  })
  await once(socket, 'close')
  return got
}

function values(rawHeaders: readonly string[], name: string): string[] {
  return rawHeaders.filter((_, at) => at % 2 === 1 && rawHeaders[at - 1]?.toLowerCase() === name)
}

describe('loopback forwarder', () => {
  test('decision 3: the path is the turn, the nonce is the path’s, whatever the guest says; the host is "broker"', async () => {
    await using bench = await openBench(echo)
    expect(bench.turn.baseUrl).toMatch(
      new RegExp(`^http://127\\.0\\.0\\.1:${bench.forwarder.port}/t/[\\w-]{22}$`),
    )
    const answer = await fetch(`${bench.turn.baseUrl}/v1/messages?beta=true`, {
      method: 'POST',
      headers: { 'x-sandbox-turn': 'another', authorization: 'Bearer placeholder', 'x-odd': 'kept' },
      body: 'Grüße',
    })
    expect(answer.headers.get('x-of-host')).toBe('kept')
    const seen = (await answer.json()) as {
      method: string
      url: string
      rawHeaders: string[]
      body: string
    }
    expect(seen).toMatchObject({ method: 'POST', url: '/v1/messages?beta=true', body: 'Grüße' })
    expect(values(seen.rawHeaders, 'x-sandbox-turn')).toEqual([NONCE])
    expect(values(seen.rawHeaders, 'host')).toEqual(['broker'])
    expect(values(seen.rawHeaders, 'authorization')).toEqual(['Bearer placeholder'])
    expect(values(seen.rawHeaders, 'x-odd')).toEqual(['kept'])
    expect(values(seen.rawHeaders, 'connection')).toEqual([])
  })

  test('a turn that is over answers 410, a path that never was 404; neither reaches the host', async () => {
    let calls = 0
    await using bench = await openBench((_, response) => {
      calls += 1
      response.end('{}')
    })
    const other = bench.forwarder.open('turn-nonce-of-ben-0123456789')
    expect(other.baseUrl).not.toBe(bench.turn.baseUrl)
    bench.turn.close()
    bench.turn.close()
    const over = await fetch(`${bench.turn.baseUrl}/model`, { method: 'POST', body: 'x'.repeat(100_000) })
    expect([over.status, over.headers.get('x-should-retry'), await over.json()]).toEqual([
      410,
      'false',
      { error: { code: 'turn_over', message: 'This turn is over.' } },
    ])
    const origin = `http://127.0.0.1:${bench.forwarder.port}`
    for (const path of [
      '/',
      '/model',
      '/t/',
      `/t/${'A'.repeat(22)}/model`,
      `${new URL(other.baseUrl).pathname}x/model`,
    ]) {
      expect((await fetch(origin + path)).status, path).toBe(404)
    }
    const absolute = await raw(
      bench.forwarder,
      `GET ${other.baseUrl}/model HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n`,
    )
    expect(absolute).toMatch(/^HTTP\/1\.1 404 /)
    expect(calls).toBe(0)
    expect((await fetch(`${other.baseUrl}/model`)).status).toBe(200)
    expect(calls).toBe(1)
  })

  test('what the host has to see arrives: repeated and hop-by-hop headers, an expectation, strange names', async () => {
    await using bench = await openBench(echo)
    bench.host.on('checkContinue', echo)
    const path = new URL(bench.turn.baseUrl).pathname
    const lines = [
      `POST ${path}/a%2f..//b HTTP/1.1`,
      'Host: one',
      'Connection: close',
      'Authorization: Bearer a',
      'Authorization: Bearer b',
      'TE: trailers',
      '__proto__: x',
      'Expect: 100-continue',
      'Content-Length: 2',
    ]
    const got = await raw(bench.forwarder, `${lines.join('\r\n')}\r\n\r\nhi`)
    expect(got).toMatch(/^HTTP\/1\.1 200 /)
    const seen = JSON.parse(got.slice(got.indexOf('{'), got.lastIndexOf('}') + 1))
    expect(seen).toMatchObject({ url: '/a%2f..//b', body: 'hi' })
    expect(values(seen.rawHeaders, 'authorization')).toEqual(['Bearer a', 'Bearer b'])
    expect(values(seen.rawHeaders, 'te')).toEqual(['trailers'])
    expect(values(seen.rawHeaders, '__proto__')).toEqual(['x'])
    expect(values(seen.rawHeaders, 'expect')).toEqual(['100-continue'])
    expect(values(seen.rawHeaders, 'content-length')).toEqual(['2'])
  })

  test('WP-03 bodies stream in both directions: each piece arrives before the next is sent', async () => {
    await using bench = await openBench(async (incoming, response) => {
      response.writeHead(200, { 'content-type': 'text/event-stream' })
      response.flushHeaders()
      for await (const chunk of incoming) response.write(`got ${chunk}`)
      response.end(' end')
    })
    const { hostname, port, pathname } = new URL(bench.turn.baseUrl)
    const call = request({ hostname, port, path: `${pathname}/v1`, method: 'POST' })
    call.flushHeaders()
    const [answer] = (await once(call, 'response')) as [IncomingMessage]
    const pieces = answer.setEncoding('utf8')[Symbol.asyncIterator]()
    for (const piece of ['one', 'two']) {
      call.write(piece)
      expect(await pieces.next()).toEqual({ value: `got ${piece}`, done: false })
    }
    call.end()
    expect(await pieces.next()).toEqual({ value: ' end', done: false })
    expect((await pieces.next()).done).toBe(true)
  })

  test('an abort of the guest reaches the host, before and after the answer’s head', async () => {
    for (const early of [true, false]) {
      const { promise: closed, resolve: tell } = Promise.withResolvers<void>()
      const { promise: arrived, resolve: begin } = Promise.withResolvers<void>()
      await using bench = await openBench((incoming, response) => {
        incoming.resume()
        response.on('close', () => tell())
        if (!early) response.write('head')
        begin()
      })
      const stop = new AbortController()
      const call = fetch(`${bench.turn.baseUrl}/model`, { method: 'POST', body: '{}', signal: stop.signal })
      call.catch(() => {})
      await arrived
      if (!early) await call
      stop.abort()
      await closed
    }
  })

  test('a break of the host reaches the guest as a break, never as an end; without an answer it is 502', async () => {
    await using bench = await openBench((incoming, response) => {
      incoming.resume()
      if (incoming.url === '/early') return response.destroy()
      response.write('half', () => response.destroy())
      return
    })
    const early = await fetch(`${bench.turn.baseUrl}/early`, { method: 'POST', body: '{}' })
    expect([early.status, await early.json()]).toMatchObject([502, { error: { code: 'broker_unreachable' } }])
    const half = await fetch(`${bench.turn.baseUrl}/half`, { method: 'POST', body: '{}' })
    expect(half.status).toBe(200)
    await expect(half.text()).rejects.toThrow()
  })

  test.each(['099 Odd', '101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: x'])(
    'a host that answers %j has not answered: 502, and the next call goes on',
    async (status) => {
      using dir = tempDir()
      let connections = 0
      const host = createTcpServer((socket) => {
        connections += 1
        const first = connections === 1
        socket.on('error', () => {})
        socket.once('data', () =>
          socket.write(
            first ? `HTTP/1.1 ${status}\r\n\r\n` : 'HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok',
          ),
        )
      })
      host.listen(`${dir.path}/worker.sock`)
      await once(host, 'listening')
      await using forwarder = await openLoopbackForwarder({ socketPath: `${dir.path}/worker.sock` })
      const turn = forwarder.open(NONCE)
      expect((await fetch(`${turn.baseUrl}/v1/messages`)).status).toBe(502)
      expect(await (await fetch(`${turn.baseUrl}/v1/messages`)).text()).toBe('ok')
      await forwarder[Symbol.asyncDispose]()
      await new Promise((resolve) => host.close(resolve))
    },
  )

  test('the turn tells whether its last answer was a refusal for good', async () => {
    const headers = [
      {},
      { 'x-should-retry': 'false' },
      { 'x-should-retry': 'true' },
      { 'x-should-retry': 'false' },
      {},
    ]
    await using bench = await openBench((_, response) => {
      response.writeHead(502, headers.shift()).end()
    })
    const told: boolean[] = []
    for (let count = 0; count < 5; count += 1) {
      await fetch(`${bench.turn.baseUrl}/x`)
      told.push(bench.turn.refusedForGood)
    }
    expect(told).toEqual([false, true, false, true, false])
  })

  test('closing a turn cuts its calls on both sides and leaves another’s alone', async () => {
    const { promise: closed, resolve: tell } = Promise.withResolvers<string>()
    const answers: ServerResponse[] = []
    const { promise: both, resolve: begin } = Promise.withResolvers<void>()
    await using bench = await openBench((incoming, response) => {
      incoming.resume()
      response.on('close', () => tell(String(incoming.headers['x-sandbox-turn'])))
      response.write('head')
      answers.push(response)
      if (answers.length === 2) begin()
    })
    const other = bench.forwarder.open('turn-nonce-of-ben-0123456789')
    const ours = await fetch(`${bench.turn.baseUrl}/model`)
    const theirs = await fetch(`${other.baseUrl}/model`)
    await both
    bench.turn.close()
    expect(await closed).toBe(NONCE)
    await expect(ours.text()).rejects.toThrow()
    for (const answer of answers) answer.end('.')
    expect(await theirs.text()).toBe('head.')
  })

  test('a refusal before the body was read reaches the guest', async () => {
    await using bench = await openBench((incoming, response) => {
      response.writeHead(413, { connection: 'close', 'content-length': '9' })
      response.write('too large')
      incoming.resume()
      incoming.on('end', () => response.end())
    })
    const answer = await fetch(`${bench.turn.baseUrl}/model`, { method: 'POST', body: 'x'.repeat(2 ** 20) })
    expect([answer.status, await answer.text()]).toEqual([413, 'too large'])
  })

  test('connections to the host are kept and are 12 at most; more calls wait', async () => {
    const waiting: ServerResponse[] = []
    let wake = () => {}
    await using bench = await openBench((incoming, response) => {
      incoming.resume()
      waiting.push(response)
      wake()
    })
    const calls = Array.from({ length: 20 }, () => fetch(`${bench.turn.baseUrl}/model`))
    let most = 0
    for (let answered = 0; answered < 20; answered++) {
      while (waiting.length === 0 || (answered === 0 && waiting.length < 12)) {
        await new Promise<void>((resolve) => {
          wake = resolve
        })
      }
      most = Math.max(most, waiting.length)
      waiting.shift()?.end('ok')
    }
    for (const call of calls) expect(await (await call).text()).toBe('ok')
    expect(most).toBe(12)
    expect(bench.connections()).toBe(12)
  })

  test('listens on the loopback alone, on a given port; one that is taken and a bad nonce are refused', async () => {
    await using bench = await openBench(echo)
    const { port } = bench.forwarder
    await expect(openLoopbackForwarder({ port })).rejects.toMatchObject({ code: 'EADDRINUSE' })
    for (const nonce of ['', 'a\r\nb', 'ü'.repeat(20), 'x'.repeat(300)]) {
      expect(() => bench.forwarder.open(nonce)).toThrow(TypeError)
    }
  })
})
