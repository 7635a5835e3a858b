import { createServer, request } from 'node:http'
import { connect, type Socket } from 'node:net'
import { join } from 'node:path'
import { tempDir } from '@sandbox/testing'

/** A real engine behind a socket of the test's, which can refuse calls and cut connections. */
export interface EngineProxy extends AsyncDisposable {
  readonly path: string
  /** Answers 500 to calls whose method and path match, in place of the engine. `undefined` ends it. */
  refuse(calls: RegExp | undefined): void
  /** Cuts every connection and takes no new one, as an engine that died; `up` takes them again. */
  down(): void
  up(): void
}

/** Passes everything on to the engine at `target`, attached streams included. */
export async function engineProxy(target: string): Promise<EngineProxy> {
  const dir = tempDir()
  const path = join(dir.path, 'engine.sock')
  const sockets = new Set<Socket>()
  let refused: RegExp | undefined
  let dead = false
  const track = (socket: Socket) => {
    sockets.add(socket)
    socket.on('error', () => socket.destroy()).on('close', () => sockets.delete(socket))
  }
  const server = createServer((inbound, answer) => {
    if (refused?.test(`${inbound.method} ${inbound.url}`)) {
      inbound.resume()
      answer.writeHead(500, { 'content-type': 'application/json' }).end('{"message":"chaos"}')
      return
    }
    const { method, url, headers } = inbound
    const outbound = request({ socketPath: target, method, path: url, headers, agent: false }, (reply) => {
      answer.writeHead(reply.statusCode ?? 502, reply.headers)
      reply.on('error', () => answer.destroy()).pipe(answer)
      answer.flushHeaders()
    })
    outbound.on('socket', track).on('error', () => answer.destroy())
    answer.on('close', () => outbound.destroy())
    inbound.pipe(outbound)
  })
  server.on('connection', (socket) => {
    track(socket)
    if (dead) socket.destroy()
  })
  // An attached stream: the bytes go through as they are.
  server.on('upgrade', (inbound, socket, head) => {
    if (refused?.test(`${inbound.method} ${inbound.url}`)) {
      socket.end('HTTP/1.1 500 Chaos\r\ncontent-length: 0\r\nconnection: close\r\n\r\n')
      return
    }
    const engine = connect(target)
    track(engine)
    const lines = inbound.rawHeaders.flatMap((name, index, all) =>
      index % 2 === 0 ? [`${name}: ${all[index + 1]}`] : [],
    )
    engine.write(`${inbound.method} ${inbound.url} HTTP/1.1\r\n${lines.join('\r\n')}\r\n\r\n`)
    engine.write(head)
    engine.pipe(socket).pipe(engine)
    engine.on('close', () => socket.destroy())
    socket.on('close', () => engine.destroy())
  })
  await new Promise<void>((resolve) => server.listen(path, resolve))
  const cut = () => {
    for (const socket of sockets) socket.destroy()
  }
  return {
    path,
    refuse: (calls) => {
      refused = calls
    },
    down: () => {
      dead = true
      cut()
    },
    up: () => {
      dead = false
    },
    async [Symbol.asyncDispose]() {
      cut()
      await new Promise((resolve) => server.close(resolve))
      dir[Symbol.dispose]()
    },
  }
}
