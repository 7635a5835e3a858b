import { limits, PI_PLACEHOLDER, type PiProgress } from '@sandbox/protocol'
import type { Guest } from '@sandbox/testing'
import { describe, expect, test } from 'vitest'
import { unchunked } from './support/messages-service.ts'
import { call, context, deskTurn, greet, helloBody, openRig } from './support/rig.ts'

const later = () => ({ deadline: performance.now() + 60_000 })
const code = (name: string) => expect.objectContaining({ code: name })
const next = (guest: Guest, headers: Record<string, string>) =>
  guest.call({ method: 'GET', path: '/worker/next', headers })
const post = (guest: Guest, headers: Record<string, string>, path: string, body: unknown) =>
  guest.call({ path: `/worker/${path}`, headers, body })
const result = (turnId = 't-1', changes: object = {}) => ({
  turnId,
  result: { ok: true, text: 'done', files: [], ...changes },
})
const TOOL = {
  name: 'Clock-2',
  description: 'The time.',
  parameters: { type: 'object' },
  execute: () => ({ ok: true }),
}

describe('decision 2 hello', () => {
  test('PB-21 the answer carries the host’s tools and the names of MCP servers, and no URL or token', async () => {
    await using rig = await openRig({ tools: [TOOL] })
    using guest = rig.guest()
    const answer = await guest.call({ path: '/worker/hello', body: helloBody() })
    expect(answer.json).toEqual({
      protocol: 1,
      workerNonce: expect.stringMatching(/^[0-9a-f]{64}$/),
      tools: [{ name: 'Clock-2', description: 'The time.', parameters: { type: 'object' } }],
      mcp: [],
    })
    expect(await rig.broker.desk.hello()).toEqual(helloBody())
  })
  test('of a sealed worker is refused, and so is a second one; then nothing can be bound', async () => {
    await using sealed = await openRig()
    using one = sealed.guest()
    expect((await one.call({ path: '/worker/hello', body: helloBody({ mode: 'sealed' }) })).status).toBe(400)
    await using rig = await openRig()
    using guest = rig.guest()
    const worker = await greet(guest)
    const bound = rig.broker.bind(context())
    expect((await guest.call({ path: '/worker/hello', body: helloBody() })).status).toBe(409)
    expect((await next(guest, worker)).status).toBe(410)
    expect((await call(rig, bound.nonce)).status).toBe(410)
    expect(() => rig.broker.bind(context())).toThrow(code('second_hello'))
    expect(rig.broker.desk.state).toBe('over')
  })
})

describe('PB-41 worker routes need no turn and no budget', () => {
  test('PB-40 config; unknown ones are 404', async () => {
    await using rig = await openRig()
    using guest = rig.guest()
    const worker = await greet(guest)
    const config = { method: 'GET', path: '/worker/config' }
    expect((await guest.call({ ...config, headers: worker })).json).toEqual({})
    expect((await guest.call(config)).status).toBe(403)
    await using compacting = await openRig({
      compaction: { engine: 'pi-jev-compaction', compact: () => undefined },
    })
    using other = compacting.guest()
    const answer = await other.call({ ...config, headers: await greet(other) })
    expect(answer.json).toEqual({ compaction: { engine: 'pi-jev-compaction' } })
    for (const path of ['/worker/ready', '/worker/', '/worker/nexts']) {
      expect((await other.call({ path, headers: worker, body: {} })).status).toBe(404)
    }
  })
  test('PB-09 headers of a client are no reason to refuse', async () => {
    await using rig = await openRig()
    using guest = rig.guest()
    const headers = { ...(await greet(guest)), 'x-more': '1', authorization: `Bearer ${PI_PLACEHOLDER}` }
    expect((await post(guest, headers, 'heartbeat', {})).json).toEqual({ over: false })
  })
  test('W-33 a worker that asks without end is slowed down', async () => {
    await using rig = await openRig()
    using guest = rig.guest()
    const worker = await greet(guest)
    let answer = await post(guest, worker, 'heartbeat', {})
    for (let count = 0; count < 1000 && answer.status === 200; count += 1) {
      answer = await post(guest, worker, 'heartbeat', {})
    }
    expect([answer.status, answer.json.error.code]).toEqual([429, 'too_fast'])
  })
})

describe('W-50 turn after turn', () => {
  test('PB-33 PB-34 each is fetched, acknowledged and answered once; several per worker', async () => {
    await using rig = await openRig({}, { pollMs: 60 })
    using guest = rig.guest()
    const worker = await greet(guest)
    expect((await next(guest, worker)).status).toBe(408)
    for (const turnId of ['t-1', 't-2', 't-3']) {
      const outcome = rig.broker.desk.deliver(deskTurn({ turnId, nonce: `nonce-of-turn-${turnId}` }), later())
      const turn = await next(guest, worker)
      expect([turn.status, turn.json.turnId, turn.json.nonce]).toEqual([
        200,
        turnId,
        `nonce-of-turn-${turnId}`,
      ])
      expect(turn.json.remainingMs).toBeGreaterThan(0)
      expect((await post(guest, worker, 'ack', { turnId })).status).toBe(200)
      expect((await next(guest, worker)).json.error.code).toBe('turn_taken')
      expect(rig.broker.desk.state).toBe('working')
      const text = `answer of ${turnId}`
      expect((await post(guest, worker, 'result', result(turnId, { text }))).status).toBe(200)
      expect(await outcome).toEqual({ ok: true, text, files: [] })
      expect((await post(guest, worker, 'result', result(turnId))).status).toBe(409)
      expect(rig.broker.desk.state).toBe('ready')
    }
  })

  test('PB-34 a second turn at a time is refused; an aborted one makes room', async () => {
    await using rig = await openRig()
    using guest = rig.guest()
    const worker = await greet(guest)
    const control = new AbortController()
    const first = rig.broker.desk.deliver(deskTurn(), { ...later(), signal: control.signal })
    const outcome = expect(first).rejects.toThrow(/cancelled/)
    await expect(rig.broker.desk.deliver(deskTurn({ turnId: 't-2' }), later())).rejects.toThrow(
      'Worker is busy',
    )
    expect((await next(guest, worker)).json.turnId).toBe('t-1')
    expect((await post(guest, worker, 'ack', { turnId: 't-1' })).status).toBe(200)
    expect((await post(guest, worker, 'heartbeat', { turnId: 't-1' })).json).toEqual({ over: false })
    control.abort()
    await outcome
    // PB-35 and the worker learns that nobody waits any more.
    expect((await post(guest, worker, 'heartbeat', { turnId: 't-1' })).json).toEqual({ over: true })
    expect((await post(guest, worker, 'progress', { turnId: 't-1', seq: 0, at: 0, text: 'x' })).status).toBe(
      409,
    )
    expect((await post(guest, worker, 'result', result())).status).toBe(409)
    const second = rig.broker.desk.deliver(deskTurn({ turnId: 't-2' }), later())
    expect((await next(guest, worker)).json.turnId).toBe('t-2')
    expect((await post(guest, worker, 'ack', { turnId: 't-1' })).status).toBe(409)
    expect((await post(guest, worker, 'result', result())).status).toBe(409)
    await post(guest, worker, 'result', result('t-2'))
    expect((await second).ok).toBe(true)
  })

  test.each([
    ['comes again after the lease', { leaseMs: 80 }, 200],
    ['does not come before', { leaseMs: 60_000, pollMs: 60 }, 408],
  ])('a poll that was dropped with the turn in it: the same turn %s', async (_what, times, status) => {
    await using rig = await openRig({}, times)
    using first = rig.guest()
    const worker = await greet(first)
    const outcome = rig.broker.desk.deliver(deskTurn(), later())
    first.send({ method: 'GET', path: '/worker/next', headers: worker })
    await first.until('t-1')
    first.socket.destroy()
    using second = rig.guest()
    const again = await next(second, worker)
    expect([again.status, again.json.turnId]).toEqual([status, status === 200 ? 't-1' : undefined])
    await post(second, worker, 'result', result())
    expect((await outcome).ok).toBe(true)
  })

  test('the lease and the longest pause of a worker’s polls together are under 3 s', () => {
    expect(limits.ACK_LEASE_MS + limits.PI_POLL_RETRY_MS).toBeLessThan(3000)
  })

  test('PB-33 one waiter only', async () => {
    await using rig = await openRig()
    const [one, two] = [rig.guest(), rig.guest()]
    const worker = await greet(one)
    one.send({ method: 'GET', path: '/worker/next', headers: worker })
    await rig.broker.desk.ready()
    expect((await next(two, worker)).status).toBe(429)
    const outcome = rig.broker.desk.deliver(deskTurn(), later())
    expect((await one.answer())?.json.turnId).toBe('t-1')
    await post(two, worker, 'result', result())
    await outcome
  })
})

describe('PB-36 to PB-39 results', () => {
  async function delivered(options: { signal?: AbortSignal } = {}) {
    const rig = await openRig()
    const guest = rig.guest()
    const worker = await greet(guest)
    const outcome = rig.broker.desk.deliver(deskTurn(), { ...later(), ...options })
    await next(guest, worker)
    return { rig, guest, worker, outcome, [Symbol.asyncDispose]: () => rig[Symbol.asyncDispose]() }
  }

  test('PB-38 a wrong shape is 400 and leaves the turn pending; only known fields are kept [turn:own-result-only]', async () => {
    await using desk = await delivered()
    const { guest, worker, outcome } = desk
    for (const bad of [
      result('t-1', { text: '' }),
      result('t-1', { files: [{ name: '../x', data: 'AAAA' }] }),
      { turnId: 't-1', result: { ok: false, code: 'nope', error: '' } },
      {},
    ]) {
      expect((await post(guest, worker, 'result', bad)).status).toBe(400)
    }
    expect((await post(guest, worker, 'result', result('t-9'))).status).toBe(409)
    const files = [{ name: 'a.png', data: 'AAAA', path: '/etc' }]
    expect((await post(guest, worker, 'result', result('t-1', { files, key: 'x' }))).status).toBe(200)
    expect(await outcome).toEqual({ ok: true, text: 'done', files: [{ name: 'a.png', data: 'AAAA' }] })
  })

  test('PB-37 W-31 large files come whole, and others run meanwhile', async () => {
    await using desk = await delivered()
    const { guest, worker, outcome } = desk
    const data = Buffer.alloc(limits.REPLY_FILE_BYTES, 7).toString('base64')
    const files = [
      { name: 'a.bin', data },
      { name: 'b.bin', data },
    ]
    expect((await post(guest, worker, 'result', result('t-1', { files }))).status).toBe(200)
    const got = await outcome
    expect(got.ok && got.files.map((file) => file.data === data)).toEqual([true, true])
  })

  test('PB-37 over 72 MiB is 413 before it is read', async () => {
    await using desk = await delivered()
    const { rig, worker } = desk
    using guest = rig.guest()
    const size = limits.PI_RESULT_BYTES + 1
    guest.write(
      `POST /worker/result HTTP/1.1\r\nhost: broker\r\nx-sandbox-worker: ${worker['x-sandbox-worker']}\r\ncontent-length: ${size}\r\n\r\n`,
    )
    expect((await guest.answer())?.status).toBe(413)
    await post(desk.guest, worker, 'result', result())
    await desk.outcome
  })

  test('PB-36 PB-39 a second one while one is read; an abort ends the reading', async () => {
    const control = new AbortController()
    await using desk = await delivered({ signal: control.signal })
    const { rig, guest, worker } = desk
    const outcome = expect(desk.outcome).rejects.toEqual(code('aborted'))
    using slow = rig.guest()
    slow.write(
      `POST /worker/result HTTP/1.1\r\nhost: broker\r\nx-sandbox-worker: ${worker['x-sandbox-worker']}\r\ncontent-length: 100\r\n\r\n{`,
    )
    let second = await post(guest, worker, 'result', {})
    while (second.status === 400) second = await post(guest, worker, 'result', {})
    expect(second.status).toBe(429)
    control.abort()
    await outcome
    expect((await slow.answer())?.status).toBe(410)
  })

  test('a failure of the worker is an outcome, with its code', async () => {
    await using desk = await delivered()
    const failed = { ok: false, code: 'model_failed', error: 'overloaded' }
    await post(desk.guest, desk.worker, 'result', { turnId: 't-1', result: failed })
    expect(await desk.outcome).toEqual(failed)
  })
})

test('W-31 a turn with large images is handed out whole, in pieces; the desk is taken while it is checked', async () => {
  await using rig = await openRig()
  using guest = rig.guest()
  const worker = await greet(guest)
  const data = Buffer.alloc(8 * 1024 * 1024, 9).toString('base64')
  const images = [
    { mimeType: 'image/png', data },
    { mimeType: 'image/jpeg', data: 'AAAA' },
  ]
  const outcome = rig.broker.desk.deliver(deskTurn({ images }), later())
  await expect(rig.broker.desk.deliver(deskTurn({ turnId: 't-2' }), later())).rejects.toEqual(
    code('worker_busy'),
  )
  using poller = rig.guest()
  poller.send({ method: 'GET', path: '/worker/next', headers: worker })
  const received = await poller.until(']}')
  expect(received.split('\r\n').filter((line) => /^[0-9a-f]{1,6}$/.test(line)).length).toBeGreaterThan(10)
  const turn = JSON.parse(unchunked(received.slice(received.indexOf('\r\n\r\n') + 4)))
  expect(turn).toMatchObject({ turnId: 't-1', text: 'hi', images: [{ mimeType: 'image/png' }, images[1]] })
  expect(turn.images[0].data === data).toBe(true)
  using other = rig.guest()
  await post(other, worker, 'result', result())
  expect((await outcome).ok).toBe(true)
})

test('W-52 a turn that is larger than a worker reads is refused, and leaves the desk free', async () => {
  await using rig = await openRig()
  const parameters = { description: 'x'.repeat(limits.PI_TURN_BYTES) }
  const mcp = [{ name: 'wiki', tools: [{ name: 'find', description: '', parameters }] }]
  await expect(rig.broker.desk.deliver(deskTurn({ mcp }), later())).rejects.toMatchObject({
    code: 'turn_invalid',
    message: `The turn is over ${limits.PI_TURN_BYTES} bytes as JSON.`,
  })
  expect(rig.broker.desk.state).toBe('starting')
})

test('progress comes in order, late and doubled pieces are dropped, and a faulty listener ends no turn', async () => {
  await using rig = await openRig()
  using guest = rig.guest()
  const worker = await greet(guest)
  const pieces: PiProgress[] = []
  const outcome = rig.broker.desk.deliver(deskTurn(), {
    ...later(),
    onProgress: (piece) => {
      pieces.push(piece)
      throw new TypeError('faulty')
    },
  })
  await next(guest, worker)
  const send = (seq: number, text: string, more: object = {}) =>
    post(guest, worker, 'progress', { turnId: 't-1', seq, at: seq, text, ...more })
  for (const [seq, text] of [
    [0, 'a'],
    [2, 'c'],
    [1, 'late'],
    [2, 'again'],
    [3, 'd'],
  ] as const) {
    expect((await send(seq, text)).status).toBe(200)
  }
  expect((await send(4, 'x'.repeat(limits.PI_PROGRESS_CHARS + 1))).status).toBe(400)
  expect((await send(4, 'x', { turnId: 't-2' })).status).toBe(409)
  await post(guest, worker, 'result', result())
  await outcome
  expect(pieces.map(({ text }) => text)).toEqual(['a', 'c', 'd'])
  expect((await send(5, 'x')).status).toBe(409)
})

describe('W-51 ready and silent', () => {
  test('PB-32 ready from the first poll on, not from the hello; it expires without a sign of life', async () => {
    await using rig = await openRig({}, { pollMs: 20, silenceMs: 120 })
    const ready = rig.broker.desk.ready()
    using guest = rig.guest()
    const worker = await greet(guest)
    expect(rig.broker.desk.state).toBe('starting')
    await next(guest, worker)
    await ready
    expect(rig.broker.desk.state).toBe('ready')
    await expect.poll(() => rig.broker.desk.state).toBe('silent')
    await post(guest, worker, 'heartbeat', {})
    expect(rig.broker.desk.state).toBe('ready')
  })

  test('a poll that is held is a sign of life', async () => {
    await using rig = await openRig({}, { pollMs: 400, silenceMs: 50 })
    using guest = rig.guest()
    const worker = await greet(guest)
    const states = new Set<string>()
    const polling = next(guest, worker)
    await rig.broker.desk.ready()
    const looking = setInterval(() => states.add(rig.broker.desk.state), 10)
    await polling
    clearInterval(looking)
    expect([...states]).toEqual(['ready'])
  })

  test('a turn whose worker falls silent fails; heartbeats keep one that works', async () => {
    await using rig = await openRig({}, { silenceMs: 150 })
    using guest = rig.guest()
    const worker = await greet(guest)
    const kept = rig.broker.desk.deliver(deskTurn(), later())
    await next(guest, worker)
    await post(guest, worker, 'ack', { turnId: 't-1' })
    const startedMs = performance.now()
    while (performance.now() - startedMs < 400) {
      await post(guest, worker, 'heartbeat', { turnId: 't-1' })
      await new Promise((wake) => setTimeout(wake, 40))
    }
    await post(guest, worker, 'result', result())
    expect((await kept).ok).toBe(true)
    const lost = rig.broker.desk.deliver(deskTurn({ turnId: 't-2' }), later())
    const outcome = expect(lost).rejects.toEqual(code('worker_lost'))
    await next(guest, worker)
    await outcome
    expect(rig.broker.desk.state).toBe('silent')
  })

  test('the waits of the host end with its signal and with stop', async () => {
    await using rig = await openRig()
    const control = new AbortController()
    const ready = expect(rig.broker.desk.ready(control.signal)).rejects.toEqual(code('aborted'))
    control.abort()
    await ready
    const waiting = expect(rig.broker.desk.ready()).rejects.toEqual(code('closed'))
    const turn = expect(rig.broker.desk.deliver(deskTurn(), later())).rejects.toEqual(code('closed'))
    await rig.broker.stop()
    await Promise.all([waiting, turn])
  })
})

test.each([
  ['thinking', { thinking: 'max' as never }],
  ['text', { text: 'x'.repeat(limits.PI_TEXT_CHARS + 1) }],
  ['images', { images: [{ mimeType: 'image/png', data: 'x' }] }],
  ['attachments', { attachments: [{ name: '../x', bytes: 1 }] }],
])('W-52 a turn with a wrong %s is never handed out', async (field, changes) => {
  await using rig = await openRig()
  await expect(rig.broker.desk.deliver(deskTurn(changes), later())).rejects.toMatchObject({
    code: 'turn_invalid',
    message: expect.stringContaining(field),
  })
  expect(rig.broker.desk.state).toBe('starting')
})

test('W-53 without the worker’s nonce every worker route is 403, and reveals no turn', async () => {
  await using rig = await openRig()
  using guest = rig.guest()
  await greet(guest)
  const bound = rig.broker.bind(context())
  const turn = rig.broker.desk.deliver(deskTurn({ nonce: bound.nonce }), later()).catch(() => {})
  for (const nonce of ['', 'f'.repeat(64), bound.nonce]) {
    const headers = { 'x-sandbox-worker': nonce }
    expect((await next(guest, headers)).status).toBe(403)
    for (const path of ['ack', 'heartbeat', 'progress', 'result']) {
      expect((await post(guest, headers, path, {})).status).toBe(403)
    }
  }
  expect(guest.received.toString()).not.toContain(bound.nonce)
  await rig.broker.stop()
  await turn
})
