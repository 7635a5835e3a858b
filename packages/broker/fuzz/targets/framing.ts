import { mkdtempSync, rmSync } from 'node:fs'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { UnixListener } from '../../src/engine/listener/unix-listener.ts'
import type { Random } from '../random.ts'
import { type FuzzTarget, hold } from '../target.ts'

const LINES = [
  ...[
    'host: broker',
    'Host: evil',
    'content-length: 5',
    'content-length: 0',
    'Content-Length: 6',
    'x: a\u0000b',
  ],
  ...[
    'transfer-encoding: chunked',
    'transfer-encoding : chunked',
    'Transfer-Encoding: xchunked',
    ' folded',
    ':',
  ],
  ...[
    'content-length: 5, 5',
    'content-length: +5',
    'expect: 100-continue',
    'connection: close',
    'upgrade: h2c',
  ],
]
const STARTS = [
  'POST /model HTTP/1.1',
  'GET http://x/ HTTP/1.1',
  'POST /model HTTP/1.0',
  'PRI * HTTP/2.0',
  'POST  /',
]
const BODIES = [
  '',
  'hello',
  '5\r\nhello\r\n0\r\n\r\n',
  '0\r\n\r\nPOST /x HTTP/1.1\r\n\r\n',
  'ffffffffff\r\n',
  '\r\n\r\n',
]

let open: { path: string; dir: string; listener: UnixListener; bodies: Uint8Array[] } | undefined

/** Bytes on a real socket: what the handler sees is what one request can be, and every connection ends. */
export const framing: FuzzTarget = {
  name: 'framing',
  about: 'bytes on a real socket: each connection ends, with answers and nothing else',
  async run(random) {
    open ??= await listening()
    const bytes = random.mutated(Buffer.from(made(random), 'latin1'))
    open.bodies.length = 0
    const answer = await exchange(open.path, random.pieces(bytes))
    hold(answer === '' || /^HTTP\/1\.1 \d{3} /.test(answer), 'this is no answer', {
      answer,
      bytes: text(bytes),
    })
    const answers = answer.split(/HTTP\/1\.1 200 OK\r\n/).length - 1
    hold(answers <= open.bodies.length, 'an answer to no request', { answer, bytes: text(bytes) })
    for (const body of open.bodies)
      hold(text(bytes).length >= body.length, 'a body of more than was sent', body)
  },
  async stop() {
    await open?.listener.stop()
    if (open !== undefined) rmSync(open.dir, { recursive: true })
    open = undefined
  },
}

const text = (bytes: Uint8Array) => Buffer.from(bytes).toString('latin1')

function made(random: Random): string {
  const one = () => {
    const end = random.once(8) ? '\n' : '\r\n'
    const lines = [random.pick(STARTS), ...random.list(4, () => random.pick(LINES))]
    return `${lines.join(end)}${end}${end}${random.pick(BODIES)}`
  }
  return random.once(4) ? one() + one() : one()
}

async function listening() {
  const dir = mkdtempSync(join(tmpdir(), 'fuzz-'))
  const bodies: Uint8Array[] = []
  const listener = new UnixListener(async ({ body }) => {
    const chunks: Uint8Array[] = []
    try {
      for await (const chunk of body) chunks.push(chunk)
    } catch {}
    bodies.push(Buffer.concat(chunks))
    return { status: 200, headers: {}, body: new Uint8Array(0), ended: () => {} }
  })
  const path = join(dir, 'w.sock')
  await listener.listen(path)
  return { path, dir, listener, bodies }
}

/** Sends all, says that nothing follows, and reads to the end. */
function exchange(path: string, pieces: readonly Uint8Array[]): Promise<string> {
  return new Promise((resolve) => {
    const chunks: Buffer[] = []
    const socket = connect(path)
    socket.on('data', (chunk: Buffer) => chunks.push(chunk))
    socket.on('error', () => {})
    socket.on('close', () => resolve(Buffer.concat(chunks).toString('latin1')))
    for (const piece of pieces) socket.write(piece)
    socket.end()
  })
}
