import type { ServerResponse } from 'node:http'
import * as zlib from 'node:zlib'
import { openForwarder, type UpstreamScript } from '@sandbox/testing'
import { describe, expect, test } from 'vitest'
import type { BoundTurn } from '../src/index.ts'
import { gate } from './support/gate.ts'
import { callHeaders, type Guest } from './support/guest.ts'
import { openRig, type Rig, turnInput } from './support/rig.ts'
import { chatDelta, chatStream, event, startStream, streams } from './support/sse.ts'

const PATH = '/v1/chat/completions'
const ASK = { messages: [{ role: 'user', content: 'hi' }], stream: true }
/** A stream whose guest asked for everything that it has. */
const ASK_ALL = { ...ASK, stream_options: { include_usage: true } }

/** Reads an answer as any HTTP client would, from behind a forwarder. */
async function fetchStream(rig: Rig, nonce: string, body: unknown = ASK_ALL) {
  await using forwarder = await openForwarder(rig.path)
  const response = await fetch(`${forwarder.url}${PATH}`, {
    method: 'POST',
    headers: callHeaders(nonce),
    body: JSON.stringify(body),
  })
  return {
    status: response.status,
    headers: response.headers,
    bytes: Buffer.from(await response.arrayBuffer()),
  }
}

async function once(script: UpstreamScript) {
  await using rig = await openRig()
  rig.upstream.script = script
  const { nonce } = rig.broker.bind(turnInput())
  const answer = await fetchStream(rig, nonce)
  return { ...answer, text: answer.bytes.toString(), report: await rig.reported(() => true) }
}

const failure = (message: string) =>
  event({ error: { message, type: 'server_error', param: null, code: 'upstream_failed' } })
const BROKEN = failure('Connection closed before the upstream service gave a usable answer.')

test('W-24 a call that waits in line when its route is closed is refused, and nothing is sent', async () => {
  await using rig = await openRig({ maxParallelCalls: 1 })
  const isWaiting = gate<void>()
  rig.upstream.script = async (_, response) => {
    startStream(response)
    response.write(chatDelta({ content: 'x' }))
    await isWaiting.promise
    response.end(chatDelta({ content: rig.secret }))
  }
  const { nonce } = rig.broker.bind(turnInput())
  const request = { path: PATH, headers: callHeaders(nonce), body: ASK }
  const first = rig.guest()
  first.send(request)
  await first.until('"x"')
  const others = [1, 2, 3, 4, 5].map(() => rig.guest())
  for (const guest of others) guest.send(request)
  // Four wait; the one too many is told so at once, whichever it is.
  await rig.reported(({ reason }) => reason === 'busy')
  isWaiting.resolve()
  const codes = await Promise.all(others.map(async (guest) => (await guest.answer())?.json.error.code))
  expect(codes.sort()).toEqual(['busy', ...Array(4).fill('route_closed')])
  expect(rig.upstream.seen).toHaveLength(1)
})

describe('endings that a client can trust', () => {
  const three = chatStream(['a', 'b']).slice(0, 3).join('')
  test('a whole stream is passed on byte by byte', async () => {
    const events = chatStream(['Grüße ', '日本', '語 🎉'])
    const { text, headers, report } = await once(streams(events))
    expect(text).toBe(events.join(''))
    expect(headers.get('content-type')).toBe('text/event-stream; charset=utf-8')
    expect(report).toMatchObject({
      status: 200,
      reason: 'ok',
      answerBytes: Buffer.byteLength(events.join('')),
    })
  })
  test('T22 in pieces of one byte it arrives the same', async () => {
    const whole = Buffer.from(chatStream(['日本語', '🎉 é']).join(''))
    const { bytes } = await once(async (_, response) => {
      startStream(response)
      for (const byte of whole) {
        response.write(Uint8Array.of(byte))
        await new Promise((next) => setImmediate(next))
      }
      response.end()
    })
    expect(bytes.equals(whole)).toBe(true)
  })
  test.each<[what: string, end: (response: ServerResponse) => void]>([
    ['T16 a connection that dies', (response) => response.destroy()],
    ['T29 a clean close without an end', (response) => response.end()],
    ['T29 an event that is not complete', (response) => response.end('data: [DONE]\n')],
  ])('%s: the family’s error event, and no invented end', async (_, end) => {
    const { text, report } = await once((_, response) => {
      startStream(response)
      response.write(three, () => setImmediate(end, response))
    })
    expect(text).toBe(three + BROKEN)
    expect(report).toMatchObject({ status: 200, reason: 'upstream_network', upstreamStatus: 200 })
  })
  test('T16 a compressed stream that breaks off', async () => {
    await using rig = await openRig()
    const seen = gate<void>()
    rig.upstream.script = async (_, response) => {
      response.writeHead(200, { 'content-type': 'text/event-stream', 'content-encoding': 'gzip' })
      const gzip = zlib.createGzip()
      gzip.pipe(response, { end: false })
      gzip.write(three)
      gzip.flush()
      await seen.promise
      response.end()
    }
    const { nonce } = rig.broker.bind(turnInput())
    const guest = rig.guest()
    guest.send({ path: PATH, headers: callHeaders(nonce), body: ASK })
    await guest.until('"content":"b"')
    seen.resolve()
    expect(await guest.until('\r\n0\r\n')).toContain(BROKEN)
  })
  test('a finish reason and a clean close are an end; nothing is added to it', async () => {
    const events = [chatDelta({ content: 'a' }), chatDelta({}, 'stop')].join('')
    const { text, report } = await once(streams([events]))
    expect(text).toBe(events)
    expect(report.reason).toBe('ok')
  })
  test('T23 an error of the provider inside of a stream is passed on and counts as a failure', async () => {
    for (const type of [undefined, 'error']) {
      const events = three + event({ error: { message: 'overloaded', type: 'server_error' } }, type)
      const { text, report } = await once(streams([events]))
      expect(text).toBe(events)
      expect(report.reason).toBe('upstream_error')
    }
  })
  test('what comes after the end is not passed on, and does not hold up the end', async () => {
    await using rig = await openRig()
    rig.upstream.script = (_, response) => {
      startStream(response)
      response.write(
        `${chatDelta({ content: 'a' }, 'stop')}${event('[DONE]')}${chatDelta({ content: 'more' })}`,
      )
      // Never ended by the provider.
    }
    const { nonce } = rig.broker.bind(turnInput())
    const { bytes } = await fetchStream(rig, nonce)
    expect(bytes.toString()).toBe(`${chatDelta({ content: 'a' }, 'stop')}${event('[DONE]')}`)
  })
  test('a provider that closes a little after the end keeps its connection for the next stream', async () => {
    await using rig = await openRig()
    const ports = new Set<unknown>()
    let ended = gate<void>()
    rig.upstream.script = (_, response) => {
      ports.add(response.socket?.remotePort)
      startStream(response)
      response.write(chatStream(['a']).join(''))
      setTimeout(() => response.end(() => ended.resolve()), 20)
    }
    const { nonce } = rig.broker.bind(turnInput())
    for (let count = 0; count < 4; count += 1) {
      ended = gate<void>()
      await fetchStream(rig, nonce)
      await ended.promise
      await new Promise((next) => setTimeout(next, 20))
    }
    expect(ports.size).toBeLessThan(4)
  })
  test('an answer that is neither JSON nor a stream is refused', async () => {
    const { status, text } = await once((_, response) => {
      response.writeHead(200, { 'content-type': 'text/html' }).end('<html>')
    })
    expect(status).toBe(502)
    expect(JSON.parse(text).error).toMatchObject({ code: 'upstream_failed', type: 'server_error' })
  })
})

describe('T17 and T18 an abort reaches the provider', () => {
  const phases: [name: string, start: (response: ServerResponse) => void, seen: string | undefined][] = [
    ['before headers', () => {}, undefined],
    ['before the first token', startStream, 'HTTP/1.1 200'],
    [
      'in mid-stream',
      (response) => {
        startStream(response)
        response.write(chatDelta({ content: 'a' }))
      },
      '"content":"a"',
    ],
  ]
  const causes: [name: string, act: (guest: Guest, rig: Rig, turn: BoundTurn) => void, reason: string][] = [
    ['the guest leaves', (guest) => guest.socket.destroy(), 'aborted'],
    ['the turn is released', (_, __, turn) => turn.release(), 'turn_over'],
    ['the turn is revoked', (_, __, turn) => turn.revoke(), 'revoked'],
    ['the host stops', (_, rig) => void rig.broker.stop(), 'turn_over'],
  ]
  const cases = causes.flatMap(([cause, act, reason]) =>
    phases.map(([phase, start, seen]) => ({ cause, act, reason, phase, start, seen })),
  )
  test.each(cases)('$cause, $phase', async ({ act, reason, start, seen }) => {
    await using rig = await openRig()
    const arrived = gate<void>()
    const closed = gate<void>()
    rig.upstream.script = (_, response) => {
      response.on('close', () => closed.resolve())
      start(response)
      arrived.resolve()
    }
    const turn = rig.broker.bind(turnInput())
    const guest = rig.guest()
    guest.send({ path: PATH, headers: callHeaders(turn.nonce), body: ASK })
    await arrived.promise
    if (seen !== undefined) await guest.until(seen)
    act(guest, rig, turn)
    await closed.promise
    expect((await rig.reported(() => true)).reason).toBe(reason)
    expect(guest.received.toString()).not.toContain('[DONE]')
  })
})

describe('what a stream holds, and for how long', () => {
  test('W-28 its slot, until its body has ended', async () => {
    await using rig = await openRig({ maxParallelCalls: 1, maxQueuedCalls: 0 })
    const go = gate<void>()
    rig.upstream.script = async (_, response) => {
      startStream(response)
      response.write(chatDelta({ content: 'a' }))
      await go.promise
      response.end(chatDelta({}, 'stop') + event('[DONE]'))
    }
    const { nonce } = rig.broker.bind(turnInput())
    const first = rig.guest()
    const request = { path: PATH, headers: callHeaders(nonce), body: ASK }
    first.send(request)
    await first.until('"content":"a"')
    const busy = await rig.guest().call(request)
    expect(busy).toMatchObject({ status: 429, headers: { 'retry-after': '1' } })
    expect(busy.headers).not.toHaveProperty('x-should-retry')
    expect(busy.json.error).toMatchObject({ code: 'busy', type: 'rate_limit_error' })
    go.resolve()
    await first.until('[DONE]')
    await rig.reported(({ reason }) => reason === 'ok')
    const second = rig.guest()
    second.send(request)
    expect(await second.until('[DONE]')).toContain('[DONE]')
  })
  test('a long stream does not stand in the way of a short call', async () => {
    await using rig = await openRig({ maxParallelCalls: 1, maxQueuedCalls: 0 })
    rig.upstream.script = (_, response) => {
      if (rig.upstream.seen.length > 1) return { choices: [] }
      startStream(response)
      response.write(chatDelta({ content: 'a' }))
      return undefined
    }
    const { nonce } = rig.broker.bind(turnInput())
    const first = rig.guest()
    first.send({ path: PATH, headers: callHeaders(nonce), body: ASK })
    await first.until('"content":"a"')
    const short = await rig
      .guest()
      .call({ path: '/model', headers: callHeaders(nonce), body: { messages: [] } })
    expect(short.status).toBe(200)
  })
  test('W-95 silence of the provider is bridged by comments, and does not end the stream', async () => {
    await using rig = await openRig({}, { keepAliveMs: 20, callMs: 50, drainMs: 50 })
    const go = gate<void>()
    rig.upstream.script = async (_, response) => {
      startStream(response)
      await go.promise
      response.end(chatDelta({ content: 'late' }, 'stop') + event('[DONE]'))
    }
    const { nonce } = rig.broker.bind(turnInput())
    const guest = rig.guest()
    guest.send({ path: PATH, headers: callHeaders(nonce), body: ASK })
    // More of them than fit into the time of a short call.
    while (guest.received.toString().split(': keep-alive\n\n').length <= 8) {
      await new Promise((next) => guest.socket.once('data', next))
    }
    go.resolve()
    expect(await guest.until('[DONE]')).toContain('late')
    expect((await rig.reported(() => true)).reason).toBe('ok')
  })
  test('W-95 a provider that says nothing but comments is silent too', async () => {
    await using rig = await openRig({}, { keepAliveMs: 500 })
    let ticking: NodeJS.Timeout | undefined
    rig.upstream.script = (_, response) => {
      startStream(response)
      ticking = setInterval(() => response.write(': PROCESSING\n\n'), 10)
      response.on('close', () => clearInterval(ticking))
    }
    const { nonce } = rig.broker.bind(turnInput())
    const guest = rig.guest()
    guest.send({ path: PATH, headers: callHeaders(nonce), body: ASK })
    const received = await guest.until(': keep-alive\n\n')
    expect(received).toContain(': keep-alive\n\n')
    expect(received).not.toContain('PROCESSING')
  })
  test('LS-05 and LS-06 a guest that does not read holds up the provider, and is cut off', async () => {
    await using rig = await openRig({}, { drainMs: 200 })
    const megabyte = chatDelta({ content: 'x'.repeat(1024 * 1024) })
    let written = 0
    rig.upstream.script = async (_, response) => {
      startStream(response)
      for (; written < 64 && !response.destroyed; written += 1) {
        if (response.write(megabyte)) continue
        await new Promise<void>((next) => {
          response.once('drain', next)
          response.once('close', next)
        })
      }
    }
    const { nonce } = rig.broker.bind(turnInput())
    const guest = rig.guest({ reading: false })
    guest.send({ path: PATH, headers: callHeaders(nonce), body: ASK })
    expect((await rig.reported(() => true)).reason).toBe('aborted')
    expect(written).toBeLessThan(32)
  })
  test('LS-06 one that reads late gets everything', async () => {
    await using rig = await openRig()
    const events = chatStream(Array.from({ length: 40 }, (_, at) => String(at).repeat(100_000)))
    rig.upstream.script = streams(events)
    const { nonce } = rig.broker.bind(turnInput())
    await using forwarder = await openForwarder(rig.path)
    const response = await fetch(`${forwarder.url}${PATH}`, {
      method: 'POST',
      headers: callHeaders(nonce),
      body: JSON.stringify(ASK_ALL),
    })
    await new Promise((next) => setTimeout(next, 50))
    expect(await response.text()).toBe(events.join(''))
  })
})

describe('T48b and W-25 compressed answers', () => {
  const codings: [string, (text: string) => Uint8Array][] = [
    ['gzip', zlib.gzipSync],
    ['br', zlib.brotliCompressSync],
    ['zstd', zlib.zstdCompressSync],
    ['deflate', zlib.deflateSync],
  ]
  const json = '{"choices":[],"日本":1}'
  const kinds: [what: string, status: number, type: string, text: string][] = [
    ['200 JSON', 200, 'application/json', json],
    ['200 stream', 200, 'text/event-stream', chatStream(['日本']).join('')],
    ['404', 404, 'application/json', json],
    ['429', 429, 'application/json; charset=utf-8', json],
  ]
  const cases = codings.flatMap(([coding, pack]) =>
    kinds.map(([what, status, type, text]) => ({ coding, pack, what, status, type, text })),
  )
  test.each(cases)(
    '$coding on $what: plain, and no header that says otherwise',
    async ({ coding, pack, ...one }) => {
      const packed = pack(one.text)
      const { status, text, headers } = await once((_, response) => {
        response.writeHead(one.status, { 'content-type': one.type, 'content-encoding': coding }).end(packed)
      })
      expect({ status, text }).toEqual({ status: one.status, text: one.text })
      expect(headers.get('content-encoding')).toBeNull()
      const length = headers.get('content-length')
      if (one.type !== 'text/event-stream') expect(Number(length)).toBe(Buffer.byteLength(one.text))
    },
  )
  test('a bomb ends at the limit of what it expands to', async () => {
    const { status, report } = await once((_, response) => {
      response.writeHead(200, { 'content-type': 'application/json', 'content-encoding': 'gzip' })
      response.end(zlib.gzipSync(Buffer.alloc(64 * 1024 * 1024, ' ')))
    })
    expect(status).toBe(502)
    expect(report.reason).toBe('upstream_invalid')
  })
  test('a bomb in a stream ends at the limit of an event', async () => {
    const { text, report } = await once((_, response) => {
      response.writeHead(200, { 'content-type': 'text/event-stream', 'content-encoding': 'gzip' })
      response.end(zlib.gzipSync(Buffer.alloc(64 * 1024 * 1024, 'x')))
    })
    expect(text).toBe(failure('The upstream service did not give a usable answer.'))
    expect(report.reason).toBe('upstream_invalid')
  })
})
