import { chatText } from '@sandbox/testing'
import { describe, expect, test } from 'vitest'
import { callHeaders } from './support/guest.ts'
import { MODEL_BODY, modelCall, openRig, type Rig, turnInput } from './support/rig.ts'

const call = (nonce: string, text = 'hi') => ({
  path: '/model',
  headers: callHeaders(nonce),
  body: { messages: [{ role: 'user', content: text }] },
})

/** Once two later requests were answered, the broker has looked at everything that was sent before. */
async function seen(rig: Rig): Promise<void> {
  using guest = rig.guest()
  for (let count = 0; count < 2; count += 1) await guest.call({ path: '/nowhere' })
}

/** An upstream that answers each call when it is told to, in order of arrival. */
function heldUpstream() {
  const held: (() => void)[] = []
  const arrivals: string[] = []
  let wake = () => {}
  return {
    arrivals,
    script: async (request: { body: string }) => {
      arrivals.push(JSON.parse(request.body).messages[0].content)
      const answered = new Promise<void>((done) => held.push(done))
      wake()
      await answered
      return chatText('ok')
    },
    arrived: async (count: number) => {
      while (arrivals.length < count) {
        await new Promise<void>((done) => {
          wake = done
        })
      }
    },
    answer: () => held.shift()?.(),
  }
}

describe('SB-12 and W-29 one call at a time, a short line behind it [call:bounded]', () => {
  test('four wait in order of arrival, the sixth is 429 and spends nothing', async () => {
    await using rig = await openRig({ maxCalls: 6 })
    const upstream = heldUpstream()
    rig.upstream.script = upstream.script
    const { nonce } = rig.broker.bind(turnInput())
    const guests = [0, 1, 2, 3, 4].map(() => rig.guest())
    for (const [at, guest] of guests.entries()) {
      guest.send(call(nonce, String(at)))
      await seen(rig)
    }
    const sixth = await modelCall(rig, nonce)
    expect(sixth.status).toBe(429)
    expect(sixth.json.error.code).toBe('busy')
    expect(sixth.headers['retry-after']).toBe('1')
    expect(sixth.headers['x-should-retry']).toBeUndefined()
    expect(upstream.arrivals).toEqual(['0'])
    for (const [at, guest] of guests.entries()) {
      await upstream.arrived(at + 1)
      upstream.answer()
      expect((await guest.answer())?.status).toBe(200)
    }
    expect(upstream.arrivals).toEqual(['0', '1', '2', '3', '4'])
    const last = modelCall(rig, nonce)
    await upstream.arrived(6)
    upstream.answer()
    expect((await last).status).toBe(200)
    expect((await modelCall(rig, nonce)).json.error.code).toBe('budget_spent')
  })

  test('a waiting call that leaves gives its place up', async () => {
    await using rig = await openRig({ maxQueuedCalls: 1 })
    const upstream = heldUpstream()
    rig.upstream.script = upstream.script
    const { nonce } = rig.broker.bind(turnInput())
    using first = rig.guest()
    first.send(call(nonce, 'first'))
    await upstream.arrived(1)
    const leaver = rig.guest()
    leaver.send(call(nonce, 'leaver'))
    await seen(rig)
    expect((await modelCall(rig, nonce)).status).toBe(429)
    leaver.socket.destroy()
    await rig.reported((event) => event.reason === 'aborted')
    using third = rig.guest()
    third.send(call(nonce, 'third'))
    upstream.answer()
    await upstream.arrived(2)
    upstream.answer()
    expect((await third.answer())?.status).toBe(200)
    expect(upstream.arrivals).toEqual(['first', 'third'])
  })
})

test('W-28 the slot is held until the answer was read, not until it was made', async () => {
  await using rig = await openRig({ maxQueuedCalls: 1 })
  rig.upstream.script = () => chatText('x'.repeat(900_000))
  const { nonce } = rig.broker.bind(turnInput())
  const slow = rig.guest({ reading: false })
  slow.send(call(nonce, 'slow'))
  await seen(rig)
  using waiting = rig.guest()
  waiting.send(call(nonce, 'waiting'))
  await seen(rig)
  // One call holds the slot and one waits, although the upstream has long answered.
  expect((await modelCall(rig, nonce)).status).toBe(429)
  expect(rig.upstream.seen).toHaveLength(1)
  slow.startReading()
  expect((await slow.answer())?.status).toBe(200)
  expect((await waiting.answer())?.status).toBe(200)
})

describe('CS-12 a call keeps the scope that it was admitted under', () => {
  test('released in mid-body: 410, the getter is never asked, and the line is free for the next turn', async () => {
    const scopes: string[] = []
    await using rig = await openRig({
      maxQueuedCalls: 0,
      apiKey: (scope) => {
        scopes.push(scope.speaker.id)
        return 'k'.repeat(20)
      },
    })
    const bound = rig.broker.bind(turnInput())
    using guest = rig.guest()
    const body = JSON.stringify(MODEL_BODY)
    guest.write(
      `POST /model HTTP/1.1\r\nx-sandbox-turn: ${bound.nonce}\r\ncontent-length: ${body.length}\r\n\r\n${body.slice(0, 9)}`,
    )
    await seen(rig)
    expect((await modelCall(rig, bound.nonce)).json.error.code).toBe('busy')
    bound.release()
    guest.write(body.slice(9))
    expect((await guest.answer())?.status).toBe(410)
    expect(scopes).toEqual([])
    expect(rig.upstream.seen).toEqual([])
  })

  test('T18 release ends a call that is with the upstream', async () => {
    await using rig = await openRig()
    let left = () => {}
    let arrived = () => {}
    const gone = new Promise<void>((done) => {
      left = done
    })
    const there = new Promise<void>((done) => {
      arrived = done
    })
    rig.upstream.script = (_, response) => {
      response.on('close', () => left())
      arrived()
    }
    const bound = rig.broker.bind(turnInput())
    using guest = rig.guest()
    guest.send(call(bound.nonce))
    await there
    bound.release()
    await gone
    expect((await guest.answer())?.json.error.code).toBe('turn_over')
    expect(rig.events.at(-1)).toMatchObject({ reason: 'turn_over', turnId: 't-1', status: 410 })
  })
})
