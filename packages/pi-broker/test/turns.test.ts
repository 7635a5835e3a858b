import { canary, findSecret } from '@sandbox/testing'
import { describe, expect, test } from 'vitest'
import { answers, messageStream, startStream } from './support/messages-service.ts'
import { ASK, call, context, MESSAGES, openRig } from './support/rig.ts'

const ANN = { id: 'u-ann', name: 'Ann' }
const BOB = { id: 'u-bob', name: 'Bob' }

/** A token for each speaker. */
function tokens() {
  const keys: Record<string, string> = {
    'u-ann': canary('sk-ant-oat01-ann'),
    'u-bob': canary('sk-ant-oat01-bob'),
  }
  return { keys, oauthToken: ({ speaker }: { speaker: { id: string } }) => keys[speaker.id] }
}

describe('W-01 whose call it is', () => {
  test('T3 two speakers take 20 turns each, interleaved: each pays for their own [scope:own-key-only]', async () => {
    const { keys, oauthToken } = tokens()
    await using rig = await openRig({ oauthToken })
    const paid: string[] = []
    for (let turn = 0; turn < 40; turn += 1) {
      const speaker = turn % 2 === 0 ? ANN : BOB
      const bound = rig.broker.bind(context({ speaker }))
      const body = { ...ASK, messages: [{ role: 'user', content: speaker.id }] }
      expect((await call(rig, bound.nonce, { body })).status).toBe(200)
      bound.release()
      paid.push(speaker.id)
    }
    expect(rig.upstream.seen.map(({ headers }) => headers.authorization)).toEqual(
      paid.map((id) => `Bearer ${keys[id]}`),
    )
  })

  test('a leftover of an earlier turn is 410 while another is bound, and asks for no token', async () => {
    let asked = 0
    await using rig = await openRig({
      oauthToken: () => {
        asked += 1
        return 'sk-ant-oat01-0123456789'
      },
      tools: [
        {
          name: 'whoami',
          description: '',
          parameters: {},
          execute: (_, { speaker }) => ({ ok: true, text: speaker.id }),
        },
      ],
    })
    const first = rig.broker.bind(context({ speaker: ANN }))
    first.release()
    const second = rig.broker.bind(context({ speaker: BOB }))
    for (const path of [
      MESSAGES,
      `${MESSAGES}/count_tokens`,
      '/tools/whoami',
      '/compaction/compact',
      '/compaction/report',
    ]) {
      expect([path, (await call(rig, first.nonce, { path, body: { input: {} } })).status]).toEqual([
        path,
        410,
      ])
    }
    expect(asked).toBe(0)
    const own = await call(rig, second.nonce, {
      path: '/tools/whoami',
      body: { input: { speaker: ANN }, speaker: ANN },
    })
    expect(own.json).toEqual({ ok: true, text: 'u-bob' })
  })

  test('CS-12 a body that is still on its way keeps the scope it was admitted under [scope:fixed-at-admission]', async () => {
    const { keys, oauthToken } = tokens()
    await using rig = await openRig({ oauthToken })
    const first = rig.broker.bind(context({ speaker: ANN }))
    const body = JSON.stringify(ASK)
    using slow = rig.guest()
    slow.write(
      `POST ${MESSAGES} HTTP/1.1\r\nhost: broker\r\nx-sandbox-turn: ${first.nonce}\r\ncontent-length: ${body.length}\r\n\r\n${body.slice(0, 10)}`,
    )
    // Another call on the same broker was answered after those bytes were read.
    expect((await call(rig, first.nonce)).status).toBe(200)
    first.release({ abort: false })
    const second = rig.broker.bind(context({ speaker: BOB }))
    slow.write(body.slice(10))
    expect((await slow.answer())?.status).toBe(200)
    expect((await call(rig, second.nonce)).status).toBe(200)
    expect(rig.upstream.seen.map(({ headers }) => headers.authorization)).toEqual([
      `Bearer ${keys['u-ann']}`,
      `Bearer ${keys['u-ann']}`,
      `Bearer ${keys['u-bob']}`,
    ])
    expect((await call(rig, first.nonce)).status).toBe(410)
  })

  test('W-47 T18 a release cuts the calls in flight: the upstream’s connection goes with them', async () => {
    await using rig = await openRig()
    const gone = Promise.withResolvers<void>()
    rig.upstream.script = (_, response) => {
      startStream(response)
      response.write(messageStream([{ type: 'text', text: 'x' }])[0])
      response.on('close', () => gone.resolve())
    }
    const bound = rig.broker.bind(context())
    using guest = rig.guest()
    guest.send({ path: MESSAGES, headers: { 'x-sandbox-turn': bound.nonce }, body: { ...ASK, stream: true } })
    await guest.until('message_start')
    bound.release()
    await gone.promise
    await guest.closed
    expect((await rig.reported(() => true)).reason).toBe('turn_over')
  })

  test('T17 a guest that leaves ends the call at the upstream', async () => {
    await using rig = await openRig()
    const arrived = Promise.withResolvers<void>()
    const gone = Promise.withResolvers<void>()
    rig.upstream.script = (_, response) => {
      response.on('close', () => gone.resolve())
      arrived.resolve()
    }
    const { nonce } = rig.broker.bind(context())
    using guest = rig.guest()
    guest.send({ path: MESSAGES, headers: { 'x-sandbox-turn': nonce }, body: ASK })
    await arrived.promise
    guest.socket.destroy()
    await gone.promise
    expect((await rig.reported(() => true)).reason).toBe('aborted')
  })
})

describe('PB-04 and CS-13 bind', () => {
  test('one turn at a time; a late release ends only its own', async () => {
    await using rig = await openRig()
    const first = rig.broker.bind(context())
    expect(() => rig.broker.bind(context())).toThrow(expect.objectContaining({ code: 'already_bound' }))
    first.release()
    const second = rig.broker.bind(context())
    first.release()
    expect((await call(rig, second.nonce)).status).toBe(200)
    expect(second.turnId).not.toBe(first.turnId)
  })

  test('W-04 the context is copied: what the caller writes afterwards changes nothing', async () => {
    const scopes: object[] = []
    await using rig = await openRig({
      oauthToken: (scope) => {
        scopes.push(structuredClone(scope))
        return 'sk-ant-oat01-0123456789'
      },
    })
    const given = { ...context({ thinking: 'low' }), speaker: { ...ANN } }
    const bound = rig.broker.bind(given)
    given.speaker.id = 'u-bob'
    Object.assign(given, { channel: 'web:other', thinking: 'xhigh' })
    await call(rig, bound.nonce, { body: { ...ASK, output_config: { effort: 'max' } } })
    expect(scopes).toEqual([{ channel: 'web:room', speaker: ANN }])
    expect(JSON.parse(String(rig.upstream.seen[0]?.body)).output_config).toEqual({ effort: 'low' })
  })

  test.each([
    ['profile', { profile: 'a b' }],
    ['thinking', { thinking: 'max' as never }],
    ['deadline', { deadline: Number.NaN }],
    ['signal', { signal: undefined as never }],
  ])('W-52 a wrong %s is refused', async (field, changes) => {
    await using rig = await openRig()
    expect(() => rig.broker.bind(context(changes))).toThrow(
      expect.objectContaining({ code: 'turn_invalid', message: expect.stringContaining(field) }),
    )
    expect(() => rig.broker.bind(context(), { turnId: '..' })).toThrow(
      expect.objectContaining({ code: 'turn_invalid' }),
    )
  })

  test('PM-24 without a level it is low, and each turn has its own', async () => {
    await using rig = await openRig()
    const body = { ...ASK, output_config: { effort: 'max' } }
    const levels = [undefined, 'high', 'low', 'xhigh'] as const
    for (const thinking of levels) {
      const bound = rig.broker.bind(context(thinking === undefined ? {} : { thinking }))
      await call(rig, bound.nonce, { body })
      bound.release()
    }
    expect(rig.upstream.seen.map(({ body: sent }) => JSON.parse(sent).output_config.effort)).toEqual([
      'low',
      'high',
      'low',
      'max',
    ])
  })
})

describe('W-28 slots', () => {
  test('PB-08 four calls at once, held until their bodies have ended', async () => {
    await using rig = await openRig({ maxQueuedCalls: 0 })
    const open: (() => void)[] = []
    rig.upstream.script = (request, response, incoming) => {
      if (JSON.parse(request.body).stream !== true)
        return answers([{ type: 'text', text: 'x' }])(request, response, incoming)
      startStream(response)
      const [first = '', ...rest] = messageStream([{ type: 'text', text: 'x' }])
      response.write(first)
      open.push(() => response.end(rest.join('')))
      return undefined
    }
    const { nonce } = rig.broker.bind(context())
    const headers = { 'x-sandbox-turn': nonce }
    const guests = [rig.guest(), rig.guest(), rig.guest(), rig.guest()]
    for (const guest of guests) {
      guest.send({ path: MESSAGES, headers, body: { ...ASK, stream: true } })
      await guest.until('message_start')
    }
    const refused = await call(rig, nonce)
    expect([refused.status, refused.json.error.type, refused.headers['retry-after']]).toEqual([
      429,
      'rate_limit_error',
      '1',
    ])
    open[0]?.()
    await rig.reported(({ reason }) => reason === 'ok')
    expect((await call(rig, nonce)).status).toBe(200)
  })
})

test('CS-15 and CS-16 the token is in one header of the upstream’s request, and nowhere on the guest’s side [secret:not-in-guest-bytes]', async () => {
  await using rig = await openRig()
  const { nonce } = rig.broker.bind(context())
  using guest = rig.guest()
  for (const body of [ASK, '{', { ...ASK, stream: true }]) {
    guest.send({ path: MESSAGES, headers: { 'x-sandbox-turn': nonce }, body })
    await rig.reported(() => rig.events.length > 0)
    rig.events.length = 0
  }
  expect(findSecret(guest.received, rig.secret)).toEqual([])
  for (const { headers, url, body } of rig.upstream.seen) {
    const { authorization, ...rest } = headers
    expect(authorization).toBe(`Bearer ${rig.secret}`)
    expect(findSecret(JSON.stringify([rest, url]) + body, rig.secret)).toEqual([])
  }
})
