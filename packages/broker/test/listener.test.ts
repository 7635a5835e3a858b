import { existsSync, lstatSync, mkdirSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { chatText, tempDir } from '@sandbox/testing'
import { describe, expect, test } from 'vitest'
import { UnixListener } from '../src/engine/index.ts'
import { BodyBudget, openSealedBroker } from '../src/index.ts'
import { callHeaders, Guest } from './support/guest.ts'
import { greet, MODEL_BODY, openRig, turnInput } from './support/rig.ts'

const OPTIONS = { modelUrl: 'https://api.example/v1', model: 'm', apiKey: () => undefined }

/** A promise and what settles it. */
function gate<T = void>() {
  let open: (value: T) => void = () => {}
  const opened = new Promise<T>((resolve) => {
    open = resolve
  })
  return { opened, open }
}

describe('LS-01 the socket', () => {
  test('has mode 0600, whatever the umask, and goes with stop', async () => {
    const before = process.umask(0)
    try {
      await using rig = await openRig()
      expect(statSync(rig.path).mode & 0o777).toBe(0o600)
      expect(lstatSync(rig.path).isSocket()).toBe(true)
      await rig.broker.stop()
      expect(existsSync(rig.path)).toBe(false)
    } finally {
      process.umask(before)
    }
  })
  test.skipIf(process.getuid?.() !== 0)('belongs to the owner that was named', async () => {
    using dir = tempDir()
    await using broker = openSealedBroker(OPTIONS)
    const path = join(dir.path, 's')
    await broker.listen(path, { uid: 12_345, gid: 23_456 })
    expect(statSync(path)).toMatchObject({ uid: 12_345, gid: 23_456 })
  })
  test('a directory that is not there: listen_failed, and nothing is left open', async () => {
    using dir = tempDir()
    await using broker = openSealedBroker(OPTIONS)
    await expect(broker.listen(join(dir.path, 'none', 's'))).rejects.toMatchObject({ code: 'listen_failed' })
  })
  test.skipIf(process.getuid?.() === 0)(
    'a failing chown: listen_failed, and the socket is gone',
    async () => {
      using dir = tempDir()
      await using broker = openSealedBroker(OPTIONS)
      const path = join(dir.path, 's')
      await expect(broker.listen(path, { uid: 0, gid: 0 })).rejects.toMatchObject({ code: 'listen_failed' })
      expect(existsSync(path)).toBe(false)
    },
  )
  test('a taken path is refused and left as it is', async () => {
    using dir = tempDir()
    const path = join(dir.path, 's')
    writeFileSync(path, 'mine')
    await using broker = openSealedBroker(OPTIONS)
    await expect(broker.listen(path)).rejects.toMatchObject({ code: 'socket_path_invalid' })
    await broker.stop()
    expect(statSync(path).size).toBe(4)
  })
  test('RL-06 a path of 107 bytes works, one of 108 is refused, bytes not characters counted', async () => {
    using dir = tempDir()
    const deep = join(dir.path, 'd'.repeat(30))
    mkdirSync(deep)
    const fill = (bytes: number) => {
      const left = bytes - Buffer.byteLength(deep) - 1
      return join(deep, 'ä'.repeat(left >> 1) + 'x'.repeat(left % 2))
    }
    await using fits = openSealedBroker(OPTIONS)
    await fits.listen(fill(107))
    expect(statSync(fill(107)).isSocket()).toBe(true)
    await using long = openSealedBroker(OPTIONS)
    await expect(long.listen(fill(108))).rejects.toMatchObject({
      code: 'socket_path_invalid',
      message: expect.stringContaining('108 bytes, 107 at most'),
    })
  })
  test('relative paths and NUL are refused', async () => {
    await using broker = openSealedBroker(OPTIONS)
    for (const path of ['s', './s', '', '/tmp/a\0b']) {
      await expect(broker.listen(path)).rejects.toMatchObject({ code: 'socket_path_invalid' })
    }
  })
  test('a second listen is refused', async () => {
    await using rig = await openRig()
    await expect(rig.broker.listen(`${rig.path}2`)).rejects.toMatchObject({ code: 'already_listening' })
  })
})

test('LS-02 the seventeenth connection is closed, the sixteen stay, and room is given back', async () => {
  await using rig = await openRig()
  const guests = Array.from({ length: 16 }, () => rig.guest())
  for (const guest of guests) expect((await guest.call({ path: '/nowhere' })).status).toBe(404)
  using late = rig.guest()
  await late.closed
  expect(late.received.byteLength).toBe(0)
  for (const guest of guests) expect((await guest.call({ path: '/nowhere' })).status).toBe(404)
  guests[0]?.socket.destroy()
  for (;;) {
    using next = rig.guest()
    next.send({ path: '/nowhere' })
    if ((await next.answer())?.status === 404) break
  }
})

describe('LS-07 and SB-14 a guest that leaves', () => {
  test('T17 ends the upstream call, before its headers and in its body', async () => {
    for (const started of [false, true]) {
      await using rig = await openRig()
      const arrived = gate()
      const left = gate()
      rig.upstream.script = (_, response) => {
        response.on('close', () => left.open())
        if (started) response.writeHead(200, { 'content-type': 'application/json' }).write('{"a":')
        arrived.open()
      }
      const { nonce } = rig.broker.bind(turnInput())
      const guest = rig.guest()
      guest.send({ path: '/model', headers: callHeaders(nonce), body: MODEL_BODY })
      await arrived.opened
      guest.socket.destroy()
      await left.opened
      expect(await rig.reported((event) => event.route === 'model')).toMatchObject({
        status: 0,
        reason: 'aborted',
        answerBytes: 0,
      })
    }
  })
  test('frees its slot for the next call', async () => {
    await using rig = await openRig({ maxQueuedCalls: 0 })
    const arrived = gate()
    rig.upstream.script = () => arrived.open()
    const { nonce } = rig.broker.bind(turnInput())
    const guest = rig.guest()
    guest.send({ path: '/model', headers: callHeaders(nonce), body: MODEL_BODY })
    await arrived.opened
    guest.socket.destroy()
    await rig.reported((event) => event.reason === 'aborted')
    rig.upstream.script = () => chatText('next')
    using other = rig.guest()
    expect((await other.call({ path: '/model', headers: callHeaders(nonce), body: MODEL_BODY })).status).toBe(
      200,
    )
  })
  test('ends a poll, so that another connection can poll', async () => {
    await using rig = await openRig({}, { pollMs: 50 })
    using guest = rig.guest()
    const worker = await greet(guest)
    guest.send({ method: 'GET', path: '/worker/next', headers: worker })
    guest.socket.destroy()
    for (;;) {
      using other = rig.guest()
      const answer = await other.call({ method: 'GET', path: '/worker/next', headers: worker })
      if (answer.status !== 429) {
        expect(answer.status).toBe(408)
        break
      }
    }
  })
})

describe('LS-08 as decision 10 changes it', () => {
  test('a connection stays through calls, refusals and large answers', async () => {
    await using rig = await openRig({ maxCalls: 100 })
    const { nonce } = rig.broker.bind(turnInput())
    using guest = rig.guest()
    for (let count = 0; count < 30; count += 1) {
      rig.upstream.script = () => chatText('x'.repeat(count * 30_000))
      const call = { path: '/model', headers: callHeaders(nonce), body: MODEL_BODY }
      expect((await guest.call(call)).status).toBe(200)
      const refused = await guest.call({ ...call, path: '/nowhere' })
      expect(refused.status).toBe(404)
      expect(refused.headers.connection).not.toBe('close')
    }
  })
  test('who sends a large body to nowhere loses the connection', async () => {
    await using rig = await openRig()
    using guest = rig.guest()
    guest.send({ path: '/nowhere', body: 'x'.repeat(300_000) })
    const answer = await guest.answer()
    expect(answer?.status).toBe(404)
    expect(answer?.headers.connection).toBe('close')
    await guest.closed
  })
})

describe('LS-09 a handler that throws', () => {
  test('is answered with 400', async () => {
    using dir = tempDir()
    const listener = new UnixListener(() => Promise.reject(new TypeError('host detail')))
    await listener.listen(join(dir.path, 's'))
    using guest = new Guest(join(dir.path, 's'))
    const answer = await guest.call({ path: '/model' })
    expect(answer.status).toBe(400)
    expect(guest.received.toString()).not.toContain('host detail')
    await listener.stop()
  })
})

test('headers beyond the thousandth are seen too, or the request is refused unseen', async () => {
  using dir = tempDir()
  let last: string | undefined
  const listener = new UnixListener((request) => {
    last = request.rawHeaders.at(-2)
    return Promise.reject(new TypeError('enough'))
  })
  await listener.listen(join(dir.path, 's'))
  using guest = new Guest(join(dir.path, 's'))
  guest.write(`GET / HTTP/1.1\r\n${'a:\r\n'.repeat(3000)}x-last: 1\r\n\r\n`)
  expect((await guest.answer())?.status).toBe(400)
  expect(['x-last', undefined]).toContain(last)
  await listener.stop()
})

describe('LS-04 and W-44 the time of a request', () => {
  test('SB-14 the call ends first: 502 with a code, and the connection stays', async () => {
    await using rig = await openRig({}, { callMs: 80 })
    const left = gate()
    rig.upstream.script = (_, response) => {
      response.on('close', () => left.open())
    }
    const { nonce } = rig.broker.bind(turnInput())
    using guest = rig.guest()
    const answer = await guest.call({ path: '/model', headers: callHeaders(nonce), body: MODEL_BODY })
    expect(answer.status).toBe(502)
    expect(answer.json.error.code).toBe('timeout')
    await left.opened
    expect((await guest.call({ path: '/nowhere' })).status).toBe(404)
    expect(rig.events[0]).toMatchObject({ reason: 'timeout', status: 502 })
  })
  test('a guest that does not read its answer is cut off', async () => {
    await using rig = await openRig({}, { callMs: 300 })
    rig.upstream.script = () => chatText('x'.repeat(900_000))
    const { nonce } = rig.broker.bind(turnInput())
    const guest = rig.guest({ reading: false })
    guest.send({ path: '/model', headers: callHeaders(nonce), body: MODEL_BODY })
    expect(await rig.reported((event) => event.route === 'model')).toMatchObject({
      status: 0,
      reason: 'timeout',
    })
  })
  test('W-32 a body that stalls ends with the call', async () => {
    await using rig = await openRig({}, { callMs: 80 })
    const { nonce } = rig.broker.bind(turnInput())
    using guest = rig.guest()
    guest.write(`POST /model HTTP/1.1\r\nx-sandbox-turn: ${nonce}\r\ncontent-length: 100\r\n\r\n{`)
    expect((await guest.answer())?.json.error.code).toBe('timeout')
  })
})

test('LS-04 and W-32 a body that drips ends too, and its memory is given back [call:bounded]', async () => {
  const bodyBudget = new BodyBudget({ bytes: 16 * 1024 * 1024 })
  await using rig = await openRig({ bodyBudget }, { bodyMs: 150 })
  using guest = rig.guest()
  guest.send({
    path: '/v1/chat/completions',
    headers: { ...callHeaders(rig.broker.bind(turnInput()).nonce), 'content-length': '1000000' },
  })
  // Never silent for as long as the route allows.
  const drip = setInterval(() => guest.write(' '), 5)
  const answer = await guest.answer()
  clearInterval(drip)
  expect([answer?.status, answer?.json.error.code]).toEqual([502, 'timeout'])
  expect(await rig.reported(() => true)).toMatchObject({ reason: 'timeout', name: 'openai-chat' })
  expect(bodyBudget.heldBytes).toBe(0)
  expect(rig.upstream.seen).toEqual([])
})

describe('LS-10 stop', () => {
  test('force ends connections, half-open heads too', async () => {
    await using rig = await openRig()
    using idle = rig.guest()
    await idle.call({ path: '/nowhere' })
    using half = rig.guest()
    await half.call({ path: '/nowhere' })
    half.write('POST /model HTTP/1.1\r\nhost: bro')
    await rig.broker.stop()
    await Promise.all([idle.closed, half.closed])
  })
  test('without force, a call at work is answered first; idle and half-open connections go', async () => {
    await using rig = await openRig()
    const arrived = gate()
    const answered = gate()
    rig.upstream.script = async () => {
      arrived.open()
      await answered.opened
      return chatText('in time')
    }
    const { nonce } = rig.broker.bind(turnInput())
    using half = rig.guest()
    half.write('POST /model HTTP/1.1\r\nhost: bro')
    using guest = rig.guest()
    guest.send({ path: '/model', headers: callHeaders(nonce), body: MODEL_BODY })
    await arrived.opened
    const stopped = rig.broker.stop(false)
    await half.closed
    answered.open()
    expect((await guest.answer())?.status).toBe(200)
    await stopped
    expect(existsSync(rig.path)).toBe(false)
  })
  test('a forced stop ends a gentle one', async () => {
    await using rig = await openRig()
    const arrived = gate()
    rig.upstream.script = () => arrived.open()
    const { nonce } = rig.broker.bind(turnInput())
    using guest = rig.guest()
    guest.send({ path: '/model', headers: callHeaders(nonce), body: MODEL_BODY })
    await arrived.opened
    const gentle = rig.broker.stop(false)
    await rig.broker.stop()
    await gentle
    expect(await guest.answer()).toBeUndefined()
  })
  test('twice, and before listen, is fine', async () => {
    const broker = openSealedBroker(OPTIONS)
    await broker.stop()
    await broker.stop(false)
    await using rig = await openRig()
    await Promise.all([rig.broker.stop(), rig.broker.stop()])
  })
})
