import { findSecret } from '@sandbox/testing'
import { describe, expect, test } from 'vitest'
import { event, messageStream, startStream, streams, unchunked } from './support/messages-service.ts'
import { ASK, context, MESSAGES, openRig } from './support/rig.ts'

const STREAM = { ...ASK, stream: true }

test('W-95 a long thought in silence is not cut: comments keep the guest’s side alive', async () => {
  await using rig = await openRig({ idleMs: 1000 }, { keepAliveMs: 30 })
  const think = Promise.withResolvers<void>()
  rig.upstream.script = async (_, response) => {
    startStream(response)
    const [first = '', ...rest] = messageStream([{ type: 'text', text: 'So.' }])
    response.write(first)
    await think.promise
    response.end(rest.join(''))
  }
  const { nonce } = rig.broker.bind(context())
  using guest = rig.guest()
  guest.send({ path: MESSAGES, headers: { 'x-sandbox-turn': nonce }, body: STREAM })
  const comments = () => guest.received.toString().split(': keep-alive\n\n').length - 1
  // As many as are longer than the worker's own idle limit.
  await expect.poll(comments, { timeout: 30_000 }).toBeGreaterThan(40)
  think.resolve()
  await guest.until('message_stop')
  expect((await rig.reported(() => true)).reason).toBe('ok')
})

test('W-95 nor is a silence before the first byte of an answer', async () => {
  await using rig = await openRig({ idleMs: 1000 })
  rig.upstream.script = async (_, response) => {
    await new Promise((wake) => setTimeout(wake, 1200))
    startStream(response)
    response.end(messageStream([{ type: 'text', text: 'So.' }]).join(''))
  }
  const { nonce } = rig.broker.bind(context())
  using guest = rig.guest()
  guest.send({ path: MESSAGES, headers: { 'x-sandbox-turn': nonce }, body: STREAM })
  expect(await guest.until('message_stop')).toContain('200 OK')
})

test('LS-05 W-32 a body that stops arriving ends the call', async () => {
  await using rig = await openRig({ idleMs: 1000 })
  const { nonce } = rig.broker.bind(context())
  using guest = rig.guest()
  guest.write(
    `POST ${MESSAGES} HTTP/1.1\r\nhost: broker\r\nx-sandbox-turn: ${nonce}\r\ncontent-length: 100\r\n\r\n{"messages"`,
  )
  expect((await guest.answer())?.json).toMatchObject({ type: 'error', error: { code: 'timeout' } })
  expect((await rig.reported(() => true)).reason).toBe('timeout')
})

describe('events as they come', () => {
  test('each goes out before the next one is there, whole and unchanged (W-16)', async () => {
    await using rig = await openRig()
    const events = messageStream([
      { type: 'thinking', thinking: 'Hm é😀', signature: 'c2ln' },
      { type: 'text', text: 'So it is. 🕛' },
    ])
    let next: () => void = () => {}
    rig.upstream.script = async (_, response) => {
      startStream(response)
      for (const one of events) {
        response.write(one)
        await new Promise<void>((wake) => {
          next = wake
        })
      }
      response.end()
    }
    const { nonce } = rig.broker.bind(context())
    using guest = rig.guest()
    guest.send({ path: MESSAGES, headers: { 'x-sandbox-turn': nonce }, body: STREAM })
    let passed = ''
    for (const one of events) {
      passed += one
      await guest.until(one)
      next()
    }
    await rig.reported(({ reason }) => reason === 'ok')
    const body = guest.received.toString().split('\r\n\r\n').slice(1).join('\r\n\r\n')
    expect(unchunked(body)).toBe(passed)
  })

  test('T22 cut at every byte, a stream arrives the same', async () => {
    await using rig = await openRig()
    const whole = Buffer.from(messageStream([{ type: 'text', text: '今何時 🕛' }]).join(''))
    rig.upstream.script = async (_, response) => {
      startStream(response)
      for (const byte of whole) {
        response.write(Buffer.of(byte))
        await new Promise((wake) => setImmediate(wake))
      }
      response.end()
    }
    const { nonce } = rig.broker.bind(context())
    using guest = rig.guest()
    guest.send({ path: MESSAGES, headers: { 'x-sandbox-turn': nonce }, body: STREAM })
    await rig.reported(({ reason }) => reason === 'ok')
    const received = await guest.until('0\r\n\r\n')
    expect(unchunked(received.split('\r\n\r\n').slice(1).join('\r\n\r\n'))).toBe(whole.toString())
  })
})

describe('PB-30 failures of the provider within a stream', () => {
  test('its error event passes unchanged and ends the stream; the host hears of it once (W-26)', async () => {
    await using rig = await openRig()
    const failure = event({ type: 'error', error: { type: 'overloaded_error', message: 'Overloaded' } })
    const start = messageStream([{ type: 'text', text: 'x' }]).slice(0, 3)
    rig.upstream.script = streams([...start, failure, event({ type: 'message_stop' })])
    const { nonce } = rig.broker.bind(context())
    using guest = rig.guest()
    guest.send({ path: MESSAGES, headers: { 'x-sandbox-turn': nonce }, body: STREAM })
    const received = await guest.until('overloaded_error')
    expect(received).toContain(failure)
    const told = await rig.reported(() => true)
    expect(told).toMatchObject({ reason: 'upstream_error', status: 200, upstreamStatus: 200 })
    expect(rig.events).toHaveLength(1)
    expect(guest.received.toString()).not.toContain('message_stop')
  })

  test('T35 a token over the edges of chunks and events is stopped before it is whole', async () => {
    for (const pieces of [2, 3, 17]) {
      await using rig = await openRig()
      const size = Math.ceil(rig.secret.length / pieces)
      const deltas = Array.from({ length: pieces }, (_, at) => rig.secret.slice(at * size, (at + 1) * size))
      rig.upstream.script = streams([
        ...messageStream([{ type: 'text', text: '' }]).slice(0, 3),
        ...deltas.map((text) =>
          event({ type: 'content_block_delta', index: 0, delta: { type: 'text_delta', text } }),
        ),
      ])
      const { nonce } = rig.broker.bind(context())
      using guest = rig.guest()
      guest.send({ path: MESSAGES, headers: { 'x-sandbox-turn': nonce }, body: STREAM })
      await rig.reported(({ reason }) => reason === 'reflection')
      const received = await guest.until('event: error')
      const texts = [...received.matchAll(/"text":"((?:[^"\\]|\\.)*)"/g)].map(([, text]) =>
        JSON.parse(`"${text}"`),
      )
      expect(findSecret(texts.join(''), rig.secret)).toEqual([])
    }
  })
})
