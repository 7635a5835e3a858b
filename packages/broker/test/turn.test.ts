import { SEALED_PLACEHOLDER } from '@sandbox/protocol'
import { chatText, findSecret } from '@sandbox/testing'
import { expect, test } from 'vitest'
import { callHeaders } from './support/guest.ts'
import { deskTurn, greet, helloBody, MODEL_BODY, openRig, turnInput } from './support/rig.ts'

test('CS-15 a whole turn: hello, next, ack, model call, result; no byte of the key reaches guest or events [secret:not-in-guest-bytes] [secret:not-in-host-output]', async () => {
  await using rig = await openRig()
  using guest = rig.guest()
  const worker = await greet(guest)
  expect(await rig.broker.desk.hello()).toEqual(helloBody())

  const bound = rig.broker.bind(turnInput())
  const outcome = rig.broker.desk.deliver(deskTurn({ nonce: bound.nonce }), {
    deadline: performance.now() + 60_000,
  })
  const next = await guest.call({ method: 'GET', path: '/worker/next', headers: worker })
  expect(next.status).toBe(200)
  expect(next.json).toMatchObject({ protocol: 1, turnId: 't-1', nonce: bound.nonce, text: 'hi' })
  expect(next.json.remainingMs).toBeGreaterThan(50_000)
  const ack = await guest.call({ path: '/worker/ack', headers: worker, body: { turnId: 't-1' } })
  expect(ack.status).toBe(200)

  const model = await guest.call({ path: '/model', headers: callHeaders(next.json.nonce), body: MODEL_BODY })
  expect(model.status).toBe(200)
  expect(model.json).toEqual(chatText('hello'))

  const result = { ok: true, text: 'an answer' }
  const posted = await guest.call({
    path: '/worker/result',
    headers: worker,
    body: { turnId: 't-1', result },
  })
  expect(posted.status).toBe(200)
  expect(await outcome).toEqual(result)

  const [seen] = rig.upstream.seen
  expect(seen?.headers.authorization).toBe(`Bearer ${rig.secret}`)
  expect(JSON.stringify(seen)).not.toContain(SEALED_PLACEHOLDER)
  expect(findSecret(guest.received, rig.secret)).toEqual([])
  expect(rig.events.map((event) => [event.route, event.name, event.reason])).toEqual([
    ['worker', 'hello', 'ok'],
    ['worker', 'next', 'ok'],
    ['worker', 'ack', 'ok'],
    ['model', undefined, 'ok'],
    ['worker', 'result', 'ok'],
  ])
  expect(findSecret(JSON.stringify(rig.events), rig.secret)).toEqual([])
})
