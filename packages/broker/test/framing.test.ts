import { describe, expect, test } from 'vitest'
import { MODEL_BODY, openRig, turnInput } from './support/rig.ts'

const body = JSON.stringify(MODEL_BODY)

/** A good call, to be bent: `${head}\r\n\r\n${body}`. */
function head(nonce: string, changes: { first?: string; length?: string; extra?: string } = {}): string {
  const { first = 'POST /model HTTP/1.1', length = `content-length: ${body.length}`, extra = '' } = changes
  return `${first}\r\nhost: broker\r\nx-sandbox-turn: ${nonce}\r\n${length}\r\n${extra}`
}

/** Every one ends in 400, 403 or 404, or a close: never in an upstream request. */
const BENT: [title: string, bytes: (nonce: string) => string | Uint8Array][] = [
  ['absolute URI', (n) => `${head(n, { first: 'POST http://broker/model HTTP/1.1' })}\r\n${body}`],
  [
    'absolute URI of elsewhere',
    (n) => `${head(n, { first: 'POST https://evil.example/model HTTP/1.1' })}\r\n${body}`,
  ],
  ['authority form', (n) => `${head(n, { first: 'POST broker:80 HTTP/1.1' })}\r\n${body}`],
  ['user info', (n) => `${head(n, { first: 'POST @evil/model HTTP/1.1' })}\r\n${body}`],
  ['asterisk form', (n) => `${head(n, { first: 'POST * HTTP/1.1' })}\r\n${body}`],
  ['CONNECT', () => 'CONNECT evil.example:443 HTTP/1.1\r\nhost: broker\r\n\r\n'],
  ['second host, the same', (n) => `${head(n, { extra: 'host: broker\r\n' })}\r\n${body}`],
  ['second host, another', (n) => `${head(n, { extra: 'Host: evil\r\n' })}\r\n${body}`],
  [
    'second authorization',
    (n) =>
      `${head(n, { extra: 'authorization: Bearer sandbox-dummy-key\r\nAuthorization: Bearer x\r\n' })}\r\n${body}`,
  ],
  ['two lengths', (n) => `${head(n, { extra: 'content-length: 3\r\n' })}\r\n${body}`],
  ['two equal lengths', (n) => `${head(n, { extra: `content-length: ${body.length}\r\n` })}\r\n${body}`],
  [
    'length list',
    (n) => `${head(n, { length: `content-length: ${body.length}, ${body.length}` })}\r\n${body}`,
  ],
  ['signed length', (n) => `${head(n, { length: `content-length: +${body.length}` })}\r\n${body}`],
  ['negative length', (n) => `${head(n, { length: 'content-length: -1' })}\r\n${body}`],
  ['hex length', (n) => `${head(n, { length: 'content-length: 0x2f' })}\r\n${body}`],
  ['huge length', (n) => `${head(n, { length: 'content-length: 99999999999999999999999' })}\r\n${body}`],
  [
    'length and chunked',
    (n) =>
      `${head(n, { extra: 'transfer-encoding: chunked\r\n' })}\r\n${body.length.toString(16)}\r\n${body}\r\n0\r\n\r\n`,
  ],
  ['chunked not last', (n) => `${head(n, { length: 'transfer-encoding: chunked, gzip' })}\r\n0\r\n\r\n`],
  ['space before colon', (n) => `${head(n, { length: `content-length : ${body.length}` })}\r\n${body}`],
  ['folded header', (n) => `${head(n, { extra: 'accept: a\r\n b\r\n' })}\r\n${body}`],
  ['NUL in a header', (n) => `${head(n, { extra: 'accept: a\0b\r\n' })}\r\n${body}`],
  ['NUL in the target', (n) => `${head(n, { first: 'POST /model\0 HTTP/1.1' })}\r\n${body}`],
  ['bare CR', (n) => `${head(n, { extra: 'accept: a\rb\r\n' })}\r\n${body}`],
  ['bare LF', (n) => `${head(n).replaceAll('\r\n', '\n')}\n${body}`],
  ['space in the target', (n) => `${head(n, { first: 'POST /model x HTTP/1.1' })}\r\n${body}`],
  [
    'eight-bit target',
    (n) => Buffer.from(`${head(n, { first: 'POST /mod\xe9l HTTP/1.1' })}\r\n${body}`, 'latin1'),
  ],
  ['HTTP/1.0', (n) => `${head(n, { first: 'POST /model HTTP/1.0' })}\r\n${body}`],
  ['HTTP/0.9', () => 'POST /model\r\n\r\n'],
  ['HTTP/2 preface', () => 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n'],
  ['TLS hello', () => Uint8Array.from([0x16, 0x03, 0x01, 0x02, 0x00, 0x01, 0x00])],
  ['header name with a space', (n) => `${head(n, { extra: 'a b: c\r\n' })}\r\n${body}`],
  ['empty header name', (n) => `${head(n, { extra: ': c\r\n' })}\r\n${body}`],
  ['head over 16 KiB', (n) => `${head(n, { extra: `accept: ${'a'.repeat(20_000)}\r\n` })}\r\n${body}`],
  ['three thousand headers', (n) => `${head(n, { extra: 'a:\r\n'.repeat(3000) })}\r\n${body}`],
  ['upgrade', (n) => `${head(n, { extra: 'connection: upgrade\r\nupgrade: websocket\r\n' })}\r\n${body}`],
  ['expect: 100-continue', (n) => `${head(n, { extra: 'expect: 100-continue\r\n' })}\r\n${body}`],
  ['expect: else', (n) => `${head(n, { extra: 'expect: tea\r\n' })}\r\n${body}`],
  ['length of no digits', (n) => `${head(n, { length: 'content-length:' })}\r\n${body}`],
]

describe('LS-11 and decision 9: bent requests never reach the upstream', () => {
  test.each(BENT)('%s', async (_, bytes) => {
    let asked = 0
    await using rig = await openRig({ apiKey: () => `${++asked}`.repeat(20) }, { headersMs: 500 })
    const { nonce } = rig.broker.bind(turnInput())
    using guest = rig.guest()
    guest.write(bytes(nonce))
    const answer = await guest.answer()
    if (answer !== undefined) expect([400, 403, 404, 413]).toContain(answer.status)
    expect(asked).toBe(0)
    expect(rig.upstream.seen).toEqual([])
    expect(guest.received.toString()).not.toContain('100 Continue')
  })

  test('the same request unbent does', async () => {
    await using rig = await openRig()
    const { nonce } = rig.broker.bind(turnInput())
    using guest = rig.guest()
    guest.write(`${head(nonce)}\r\n${body}`)
    expect((await guest.answer())?.status).toBe(200)
    expect(rig.upstream.seen).toHaveLength(1)
  })
})

describe('pipelining', () => {
  test('a request before the last answer costs the connection, and is never forwarded', async () => {
    await using rig = await openRig()
    rig.upstream.script = (request) => (request.body.includes('second') ? {} : undefined)
    const { nonce } = rig.broker.bind(turnInput())
    using guest = rig.guest()
    guest.write(`${head(nonce)}\r\n${body}`)
    const second = body.replace('hi', 'second')
    guest.write(`${head(nonce, { length: `content-length: ${second.length}` })}\r\n${second}`)
    await guest.closed
    expect(guest.received.byteLength).toBe(0)
    await rig.reported((event) => event.reason === 'aborted')
    expect(rig.upstream.seen.filter((seen) => seen.body.includes('second'))).toEqual([])
  })

  test('both in one write, the first of which is refused', async () => {
    await using rig = await openRig()
    const { nonce } = rig.broker.bind(turnInput())
    using guest = rig.guest()
    const bad = 'POST /nowhere HTTP/1.1\r\nhost: broker\r\ncontent-length: 0\r\n\r\n'
    guest.write(`${bad}${head(nonce)}\r\n${body}`)
    await guest.closed
    expect(rig.upstream.seen).toEqual([])
  })

  test('one after another on one connection is fine (decision 10)', async () => {
    await using rig = await openRig()
    const { nonce } = rig.broker.bind(turnInput())
    using guest = rig.guest()
    for (let count = 0; count < 3; count += 1) {
      guest.write(`${head(nonce)}\r\n${body}`)
      expect((await guest.answer())?.status).toBe(200)
    }
  })

  test('bytes after the announced body are no second chance', async () => {
    await using rig = await openRig()
    const { nonce } = rig.broker.bind(turnInput())
    using guest = rig.guest()
    guest.write(`${head(nonce)}\r\n${body}XXXX`)
    await guest.closed
    expect(rig.upstream.seen.length).toBeLessThanOrEqual(1)
  })
})

describe('LS-03 slow and half-open connections', () => {
  test('a head that does not end costs the connection', async () => {
    await using rig = await openRig({}, { headersMs: 200 })
    using guest = rig.guest()
    guest.write('POST /model HTTP/1.1\r\nhost: bro')
    await guest.closed
    expect(rig.events).toEqual([])
  })
  test('trickling bytes do not prolong it', async () => {
    await using rig = await openRig({}, { headersMs: 200 })
    using guest = rig.guest()
    guest.write('POST /model HTTP/1.1\r\n')
    const drip = setInterval(() => guest.write('a'), 20)
    await guest.closed
    clearInterval(drip)
  })
  test('a silent connection is closed', async () => {
    await using rig = await openRig({}, { headersMs: 200 })
    using guest = rig.guest()
    await guest.closed
  })
  test('a second head on a kept connection is timed too', async () => {
    await using rig = await openRig({}, { headersMs: 200 })
    using guest = rig.guest()
    await guest.call({ path: '/nowhere' })
    guest.write('POST /model HTTP/1.1\r\nhost: bro')
    await guest.closed
  })
  test('a body that breaks off is 400 or a close, and is reported', async () => {
    await using rig = await openRig()
    const { nonce } = rig.broker.bind(turnInput())
    const guest = rig.guest()
    guest.write(`${head(nonce)}\r\n${body.slice(0, 5)}`)
    await new Promise((done) => guest.socket.once('connect', done))
    guest.socket.end()
    const event = await rig.reported(() => true)
    expect(['aborted', 'body_invalid']).toContain(event.reason)
    expect(rig.upstream.seen).toEqual([])
  })
})
