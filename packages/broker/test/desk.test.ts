import { limits, WORKER_NONCE_HEADER } from '@sandbox/protocol'
import { describe, expect, test } from 'vitest'
import { callHeaders, type Guest } from './support/guest.ts'
import { deskTurn, greet, helloBody, modelCall, openRig, turnInput } from './support/rig.ts'

const later = () => ({ deadline: performance.now() + 60_000 })
const code = (name: string) => expect.objectContaining({ code: name })
const next = (guest: Guest, headers: Record<string, string>) =>
  guest.call({ method: 'GET', path: '/worker/next', headers })
const ack = (guest: Guest, headers: Record<string, string>, turnId: unknown = 't-1') =>
  guest.call({ path: '/worker/ack', headers, body: { turnId } })
const post = (guest: Guest, headers: Record<string, string>, body: unknown) =>
  guest.call({ path: '/worker/result', headers, body })
const RESULT = { turnId: 't-1', result: { ok: true, text: 'done' } }

describe('decision 2 and W-53 hello [turn:own-result-only]', () => {
  test('answers with a nonce of its own and wakes every waiter, early and late', async () => {
    await using rig = await openRig()
    const early = rig.broker.desk.hello()
    using guest = rig.guest()
    const answer = await guest.call({ path: '/worker/hello', body: helloBody() })
    expect(answer.status).toBe(200)
    expect(answer.json).toEqual({ protocol: 1, workerNonce: expect.stringMatching(/^[0-9a-f]{64}$/) })
    const bound = rig.broker.bind(turnInput())
    expect(answer.json.workerNonce).not.toBe(bound.nonce)
    expect(await early).toEqual(helloBody())
    expect(await rig.broker.desk.hello()).toEqual(helloBody())
  })

  test.each([
    ['another version', helloBody({ protocol: 2 }), 426, 'protocol_mismatch'],
    ['another version of another shape', { protocol: 9, hi: true }, 426, 'protocol_mismatch'],
    ['no posture', { protocol: 1, mode: 'sealed' }, 400, 'hello_invalid'],
    ['another mode', helloBody({ mode: 'pi' }), 400, 'hello_invalid'],
    ['no JSON', 'hello', 400, 'hello_invalid'],
    ['too much', { ...helloBody(), x: 'x'.repeat(limits.WORKER_MESSAGE_BYTES) }, 400, 'hello_invalid'],
  ])('with %s is refused, and the worker is over', async (_, body, status, failure) => {
    await using rig = await openRig()
    const waiting = rig.broker.desk.hello()
    const outcome = expect(waiting).rejects.toEqual(code(failure))
    using guest = rig.guest()
    const answer = await guest.call({ path: '/worker/hello', body })
    expect([answer.status, answer.json.error.code]).toEqual([status, failure])
    await outcome
    await expect(rig.broker.desk.deliver(deskTurn(), later())).rejects.toEqual(code(failure))
    expect(() => rig.broker.bind(turnInput())).toThrow(code(failure))
    using again = rig.guest()
    expect((await again.call({ path: '/worker/hello', body: helloBody() })).status).toBe(410)
  })

  test('a mismatch names both versions and the command that mends it', async () => {
    await using rig = await openRig()
    using guest = rig.guest()
    const answer = await guest.call({ path: '/worker/hello', body: helloBody({ protocol: 7 }) })
    expect(answer.json.error.message).toMatch(/7.*1.*sandbox-worker build/)
    await expect(rig.broker.desk.hello()).rejects.toThrow(/7.*1.*sandbox-worker build/)
  })

  test.each([
    ['good', helloBody()],
    ['bad', 'hello'],
  ])('a second, %s one discards the worker: its turn ends, every later call is 410', async (_, body) => {
    await using rig = await openRig()
    using guest = rig.guest()
    const worker = await greet(guest)
    await rig.broker.desk.hello()
    const bound = rig.broker.bind(turnInput())
    const delivered = expect(rig.broker.desk.deliver(deskTurn(), later())).rejects.toEqual(
      code('second_hello'),
    )
    expect((await modelCall(rig, bound.nonce)).status).toBe(200)
    using other = rig.guest()
    const second = await other.call({ path: '/worker/hello', body })
    expect([second.status, second.json.error.code]).toEqual([409, 'second_hello'])
    await delivered
    await expect(rig.broker.desk.hello()).rejects.toEqual(code('second_hello'))
    expect((await modelCall(rig, bound.nonce)).status).toBe(410)
    expect((await next(guest, worker)).status).toBe(410)
    expect((await ack(guest, worker)).status).toBe(410)
    expect((await post(guest, worker, RESULT)).status).toBe(410)
    expect((await guest.call({ path: '/worker/hello', body: helloBody() })).status).toBe(410)
  })

  test('two at the same time: one is the worker, the other discards it', async () => {
    await using rig = await openRig()
    const [one, two] = [rig.guest(), rig.guest()]
    one.send({ path: '/worker/hello', body: helloBody() })
    two.send({ path: '/worker/hello', body: helloBody() })
    const answers = await Promise.all([one.answer(), two.answer()])
    expect(answers.map((answer) => answer?.status).sort()).toEqual([200, 409])
    await expect(rig.broker.desk.hello()).rejects.toEqual(code('second_hello'))
  })

  test('the host’s wait ends with its signal and with stop', async () => {
    await using rig = await openRig()
    await expect(rig.broker.desk.hello(AbortSignal.abort())).rejects.toEqual(code('aborted'))
    const control = new AbortController()
    const waiting = expect(rig.broker.desk.hello(control.signal)).rejects.toEqual(code('aborted'))
    control.abort()
    await waiting
    const other = expect(rig.broker.desk.hello()).rejects.toEqual(code('closed'))
    await rig.broker.stop()
    await other
  })
})

describe('W-53 the worker nonce', () => {
  test('every worker route but hello is 403 without it, before hello too, and reveals no turn', async () => {
    await using rig = await openRig()
    using guest = rig.guest()
    expect((await next(guest, {})).status).toBe(403)
    await greet(guest)
    const bound = rig.broker.bind(turnInput())
    const delivered = rig.broker.desk.deliver(deskTurn({ nonce: bound.nonce }), later()).catch(() => {})
    for (const headers of [
      {},
      { [WORKER_NONCE_HEADER]: 'f'.repeat(64) },
      { [WORKER_NONCE_HEADER]: bound.nonce },
    ]) {
      for (const call of [next(guest, headers)]) expect((await call).status).toBe(403)
      expect((await ack(guest, headers)).status).toBe(403)
      expect((await post(guest, headers, RESULT)).status).toBe(403)
    }
    expect(guest.received.toString()).not.toContain(bound.nonce)
    await rig.broker.stop()
    await delivered
  })
  test('the turn’s nonce header is not admitted on worker routes, nor the worker’s on calls', async () => {
    await using rig = await openRig()
    using guest = rig.guest()
    const worker = await greet(guest)
    expect((await next(guest, { ...worker, 'x-sandbox-turn': 'x' })).json.error.code).toBe('header_refused')
    const call = { ...callHeaders('x'), ...worker }
    expect((await guest.call({ path: '/model', headers: call })).json.error.code).toBe('header_refused')
  })
})

describe('W-50 fetching the turn', () => {
  test('408 when there is none in time; a turn that comes while a poll waits is handed out at once', async () => {
    await using rig = await openRig({}, { pollMs: 60 })
    using guest = rig.guest()
    const worker = await greet(guest)
    const empty = await next(guest, worker)
    expect([empty.status, empty.json.error.code, empty.headers['x-should-retry']]).toEqual([
      408,
      'no_turn',
      undefined,
    ])
    await using patient = await openRig()
    using waiting = patient.guest()
    const headers = await greet(waiting)
    waiting.send({ method: 'GET', path: '/worker/next', headers })
    const outcome = patient.broker.desk.deliver(deskTurn(), later())
    expect((await waiting.answer())?.json.turnId).toBe('t-1')
    expect((await post(waiting, headers, RESULT)).status).toBe(200)
    expect(await outcome).toEqual(RESULT.result)
  })

  test('one waiter; a second one is 429', async () => {
    await using rig = await openRig()
    using first = rig.guest()
    const worker = await greet(first)
    using second = rig.guest()
    first.send({ method: 'GET', path: '/worker/next', headers: worker })
    second.send({ method: 'GET', path: '/worker/next', headers: worker })
    const answer = await Promise.race([first.answer(), second.answer()])
    expect(answer?.status).toBe(429)
    const outcome = rig.broker.desk.deliver(deskTurn(), later())
    const both = await Promise.race([first.answer(), second.answer()])
    expect(both?.json.turnId).toBe('t-1')
    await rig.broker.stop()
    await outcome.catch(() => {})
  })

  test('remainingMs is what is left at the delivery, never below zero', async () => {
    await using rig = await openRig()
    using guest = rig.guest()
    const worker = await greet(guest)
    const outcome = rig.broker.desk.deliver(deskTurn(), { deadline: performance.now() - 5 }).catch(() => {})
    expect((await next(guest, worker)).json.remainingMs).toBe(0)
    await rig.broker.stop()
    await outcome
  })

  test('while a delivery is on lease, a poll does not get it again', async () => {
    await using rig = await openRig({}, { pollMs: 60 })
    using guest = rig.guest()
    const worker = await greet(guest)
    const outcome = rig.broker.desk.deliver(deskTurn(), later()).catch(() => {})
    expect((await next(guest, worker)).status).toBe(200)
    expect((await next(guest, worker)).status).toBe(408)
    await rig.broker.stop()
    await outcome
  })

  test('without an acknowledgement it is delivered again after the lease, the same turn', async () => {
    await using rig = await openRig({}, { leaseMs: 50 })
    using guest = rig.guest()
    const worker = await greet(guest)
    const outcome = rig.broker.desk.deliver(deskTurn(), later())
    const first = await next(guest, worker)
    const second = await next(guest, worker)
    expect({ ...second.json, remainingMs: 0 }).toEqual({ ...first.json, remainingMs: 0 })
    expect((await ack(guest, worker)).status).toBe(200)
    expect((await post(guest, worker, RESULT)).status).toBe(200)
    expect(await outcome).toEqual(RESULT.result)
  })

  test('an acknowledgement ends that: 409, also for a poll that waits for the lease', async () => {
    await using rig = await openRig()
    using guest = rig.guest()
    using other = rig.guest()
    const worker = await greet(guest)
    const outcome = rig.broker.desk.deliver(deskTurn(), later())
    await next(guest, worker)
    other.send({ method: 'GET', path: '/worker/next', headers: worker })
    expect((await ack(guest, worker)).status).toBe(200)
    expect((await other.answer())?.json.error.code).toBe('turn_taken')
    expect((await next(guest, worker)).status).toBe(409)
    // Its answer may have been lost.
    expect((await ack(guest, worker)).status).toBe(200)
    await rig.broker.stop()
    await expect(outcome).rejects.toEqual(code('closed'))
  })

  test('an acknowledgement of another turn, of none, or before the delivery is 409', async () => {
    await using rig = await openRig()
    using guest = rig.guest()
    const worker = await greet(guest)
    expect((await ack(guest, worker)).json.error.code).toBe('turn_unknown')
    const outcome = rig.broker.desk.deliver(deskTurn(), later()).catch(() => {})
    expect((await ack(guest, worker)).status).toBe(409)
    await next(guest, worker)
    for (const turnId of ['t-2', '', 1, null, ['t-1']]) {
      expect((await ack(guest, worker, turnId)).status).toBe(409)
    }
    await rig.broker.stop()
    await outcome
  })
})

describe('PB-35 to PB-39 the result [turn:own-result-only]', () => {
  test('before a turn, before its delivery, and a second time: 409', async () => {
    await using rig = await openRig()
    using guest = rig.guest()
    const worker = await greet(guest)
    expect((await post(guest, worker, RESULT)).json.error.code).toBe('result_refused')
    const outcome = rig.broker.desk.deliver(deskTurn(), later())
    expect((await post(guest, worker, RESULT)).status).toBe(409)
    await next(guest, worker)
    expect((await post(guest, worker, RESULT)).status).toBe(200)
    expect((await post(guest, worker, { ...RESULT, result: { ok: true, text: 'other' } })).status).toBe(409)
    expect(await outcome).toEqual(RESULT.result)
    expect((await next(guest, worker)).status).toBe(410)
  })

  test('of another turn 409, of a wrong shape 400: the turn stays pending; unknown fields are dropped', async () => {
    await using rig = await openRig()
    using guest = rig.guest()
    const worker = await greet(guest)
    const outcome = rig.broker.desk.deliver(deskTurn(), later())
    await next(guest, worker)
    expect((await post(guest, worker, { ...RESULT, turnId: 't-2' })).json.error.code).toBe('result_refused')
    for (const body of [
      {},
      'x',
      [],
      { turnId: 't-1' },
      { turnId: 't-1', result: { ok: 'yes', text: '' } },
      { turnId: 't-1', result: { ok: true, text: 'x'.repeat(limits.REPLY_TEXT_CHARS + 1) } },
      { turnId: 't-1', result: { ok: false, text: '', code: 'made_up' } },
    ]) {
      expect([JSON.stringify(body).slice(0, 60), (await post(guest, worker, body)).status]).toEqual([
        JSON.stringify(body).slice(0, 60),
        400,
      ])
    }
    const result = { ok: false, text: 'no', code: 'deadline', extra: 1 }
    expect((await post(guest, worker, { turnId: 't-1', result, extra: 2 })).status).toBe(200)
    expect(await outcome).toEqual({ ok: false, text: 'no', code: 'deadline' })
  })

  test('a second one while the first is being read is 429; over 1 MiB is 413', async () => {
    await using rig = await openRig()
    using guest = rig.guest()
    const worker = await greet(guest)
    const outcome = rig.broker.desk.deliver(deskTurn(), later())
    await next(guest, worker)
    using slow = rig.guest()
    const text = JSON.stringify(RESULT)
    slow.write(
      `POST /worker/result HTTP/1.1\r\nx-sandbox-worker: ${worker[WORKER_NONCE_HEADER]}\r\ncontent-length: ${text.length}\r\n\r\n${text.slice(0, 5)}`,
    )
    await guest.call({ path: '/nowhere' })
    await guest.call({ path: '/nowhere' })
    expect((await post(guest, worker, RESULT)).status).toBe(429)
    slow.write(text.slice(5))
    expect((await slow.answer())?.status).toBe(200)
    expect(await outcome).toEqual(RESULT.result)

    await using big = await openRig()
    using other = big.guest()
    const headers = await greet(other)
    const pending = big.broker.desk.deliver(deskTurn(), later()).catch(() => {})
    await next(other, headers)
    const large = await post(other, headers, 'x'.repeat(limits.SEALED_RESULT_BYTES + 1))
    expect(large.status).toBe(413)
    await big.broker.stop()
    await pending
  })

  test('PB-39 a turn that is aborted ends a result that is being read, and refuses one that comes later', async () => {
    await using rig = await openRig()
    using guest = rig.guest()
    const worker = await greet(guest)
    const control = new AbortController()
    const outcome = rig.broker.desk.deliver(deskTurn(), { ...later(), signal: control.signal })
    await next(guest, worker)
    using slow = rig.guest()
    slow.write(
      `POST /worker/result HTTP/1.1\r\nx-sandbox-worker: ${worker[WORKER_NONCE_HEADER]}\r\ncontent-length: 99\r\n\r\n{`,
    )
    await guest.call({ path: '/nowhere' })
    await guest.call({ path: '/nowhere' })
    control.abort()
    await expect(outcome).rejects.toEqual(code('aborted'))
    expect((await slow.answer())?.status).toBe(410)
    expect((await post(guest, worker, RESULT)).status).toBe(409)
    expect((await next(guest, worker)).status).toBe(410)
  })
})

describe('deliver', () => {
  test('W-52 a turn that the worker would not understand is refused before it is offered', async () => {
    await using rig = await openRig()
    for (const wrong of [
      { text: 'x'.repeat(limits.TURN_TEXT_CHARS + 1) },
      { nonce: 'short' },
      { turnId: '' },
      { tools: [{ name: 'Bad Name', description: '', parameters: {} }] },
      { prompt: 'x'.repeat(limits.SEALED_TURN_BYTES) },
      { speaker: undefined as never },
    ]) {
      await expect(rig.broker.desk.deliver(deskTurn(wrong), later())).rejects.toEqual(code('turn_invalid'))
    }
    const outcome = rig.broker.desk.deliver(deskTurn(), later()).catch(() => {})
    await rig.broker.stop()
    await outcome
  })
  test('CS-21 only known fields travel, and later changes of the object do not', async () => {
    await using rig = await openRig()
    using guest = rig.guest()
    const worker = await greet(guest)
    const turn = {
      ...deskTurn(),
      principal: 'p-1',
      speaker: { id: 'u-ann', name: 'Ann', principalId: 'p-1' },
    }
    const outcome = rig.broker.desk.deliver(turn, later()).catch(() => {})
    turn.speaker.id = 'u-eve'
    const answer = await next(guest, worker)
    expect(answer.json.speaker).toEqual({ id: 'u-ann', name: 'Ann' })
    expect(answer.text).not.toContain('p-1')
    await rig.broker.stop()
    await outcome
  })
  test('a second one is refused; an aborted signal offers nothing', async () => {
    await using rig = await openRig()
    const { desk } = rig.broker
    await expect(desk.deliver(deskTurn(), { ...later(), signal: AbortSignal.abort() })).rejects.toEqual(
      code('aborted'),
    )
    const first = desk.deliver(deskTurn(), later()).catch(() => {})
    await expect(desk.deliver(deskTurn(), later())).rejects.toEqual(code('already_bound'))
    await rig.broker.stop()
    await first
    await expect(desk.deliver(deskTurn(), later())).rejects.toEqual(code('closed'))
  })
  test('stop answers a waiting poll when it is gentle', async () => {
    await using rig = await openRig()
    using guest = rig.guest()
    const worker = await greet(guest)
    guest.send({ method: 'GET', path: '/worker/next', headers: worker })
    using other = rig.guest()
    await other.call({ path: '/nowhere' })
    await other.call({ path: '/nowhere' })
    const stopped = rig.broker.stop(false)
    expect((await guest.answer())?.status).toBe(410)
    await stopped
  })
})
