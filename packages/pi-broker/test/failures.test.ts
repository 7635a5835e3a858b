import { findSecret } from '@sandbox/testing'
import { describe, expect, test } from 'vitest'
import type { PiSandboxBrokerOptions } from '../src/index.ts'
import { event, fails, messageStream, streams } from './support/messages-service.ts'
import { ASK, call, context, MESSAGES, openRig } from './support/rig.ts'

/** A rig that keeps what is said about failures. */
async function open(options: Partial<PiSandboxBrokerOptions> = {}) {
  const told: { readonly reason: string; readonly words: string; readonly callId: string }[] = []
  const rig = await openRig({
    onFailure: ({ reason, callId }, words) => {
      told.push({ reason, words, callId })
      throw new TypeError('a faulty log')
    },
    ...options,
  })
  return { ...rig, told }
}

describe('PB-28 to PB-31 what the host may log about a failure', () => {
  test('PB-28 the head of an error’s body; the worker gets the whole of it', async () => {
    await using rig = await open()
    const text = `prompt is too long: ${'x'.repeat(5000)}`
    rig.upstream.script = fails(400, 'invalid_request_error', text)
    const { nonce } = rig.broker.bind(context())
    expect((await call(rig, nonce)).json.error.message).toBe(text)
    await expect.poll(() => rig.told).toHaveLength(1)
    expect(rig.told[0]?.words).toContain('prompt is too long')
    expect(rig.told[0]?.words.length).toBeLessThanOrEqual(2000)
    const [told] = rig.events
    expect(told).toMatchObject({
      callId: rig.told[0]?.callId,
      reason: 'upstream_status',
      upstreamStatus: 400,
      scope: { channel: 'web:room' },
      durationMs: expect.any(Number),
    })
    expect(JSON.stringify(told)).not.toContain('too long')
  })

  test('T30 of a 401 too, with the token masked; the guest reads nothing of it [secret:not-in-host-output]', async () => {
    await using rig = await open()
    rig.upstream.script = fails(401, 'authentication_error', `token ${rig.secret} was revoked`)
    const { nonce } = rig.broker.bind(context())
    expect((await call(rig, nonce)).text).not.toContain('revoked')
    await expect.poll(() => rig.told).toHaveLength(1)
    expect(rig.told[0]?.words).toContain('was revoked')
    expect(findSecret(JSON.stringify([rig.told, rig.events]), rig.secret)).toEqual([])
  })

  test('PB-30 the first error event of a stream, once', async () => {
    await using rig = await open()
    const failure = (message: string) =>
      event({ type: 'error', error: { type: 'overloaded_error', message } })
    const start = messageStream([{ type: 'text', text: 'x' }]).slice(0, 4)
    rig.upstream.script = streams([...start, failure('first'), failure('second')])
    const { nonce } = rig.broker.bind(context())
    using guest = rig.guest()
    guest.send({ path: MESSAGES, headers: { 'x-sandbox-turn': nonce }, body: { ...ASK, stream: true } })
    await expect.poll(() => rig.told).toHaveLength(1)
    expect(rig.told[0]).toMatchObject({ reason: 'upstream_error', words: expect.stringContaining('first') })
  })

  test('PB-29 PB-31 what was thrown, with its causes: by the network, a getter, a tool', async () => {
    await using rig = await open({
      upstream: 'http://127.0.0.1:9',
      tools: [
        {
          name: 'look',
          description: '',
          parameters: { type: 'object' },
          execute: () => {
            throw new TypeError('no tree', { cause: new Error('no garden') })
          },
        },
      ],
    })
    const { nonce } = rig.broker.bind(context())
    await call(rig, nonce)
    await call(rig, nonce, { path: '/tools/look', body: { input: {} } })
    await expect.poll(() => rig.told).toHaveLength(2)
    expect(rig.told[0]).toMatchObject({ reason: 'upstream_network' })
    expect(rig.told[1]).toMatchObject({
      reason: 'tool_failed',
      words: 'TypeError: no tree < Error: no garden',
    })
  })

  test('a call that went well, or was refused by us, has nothing to say', async () => {
    await using rig = await open()
    const { nonce } = rig.broker.bind(context())
    await call(rig, nonce)
    await call(rig, nonce, { body: '{' })
    await rig.reported(({ reason }) => reason === 'body_invalid' || reason === 'input_refused')
    expect(rig.told).toEqual([])
  })
})

test('T37 T40 without credit a model call is 402, and no token is asked for', async () => {
  let asked = 0
  const calls: object[] = []
  await using rig = await openRig({
    oauthToken: () => {
      asked += 1
      return 'sk-ant-oat01-0123456789'
    },
    credit: {
      reserve: (one) => {
        calls.push(one)
        return { granted: false }
      },
    },
  })
  const { nonce } = rig.broker.bind(context())
  const answer = await call(rig, nonce)
  expect([answer.status, answer.json.error.type, asked]).toEqual([402, 'billing_error', 0])
  await call(rig, nonce, { path: `${MESSAGES}/count_tokens` })
  expect(calls.pop()).toMatchObject({ name: 'anthropic/count_tokens', outputTokens: 0 })
  expect(calls).toMatchObject([
    {
      scope: { channel: 'web:room', speaker: { id: 'u-ann' } },
      route: 'model',
      model: 'host-model',
      outputTokens: 100,
    },
  ])
})

test('T37 nor does a tool run without credit', async () => {
  let ran = 0
  const tool = {
    name: 'tide',
    description: 'd',
    parameters: { type: 'object' },
    execute: () => {
      ran += 1
      return { ok: true, text: 'noon' }
    },
  }
  const names: unknown[] = []
  await using rig = await openRig({
    tools: [tool],
    credit: {
      reserve: ({ route, name }) => {
        names.push([route, name])
        return { granted: false }
      },
    },
  })
  const { nonce } = rig.broker.bind(context())
  const answer = await call(rig, nonce, { path: '/tools/tide', body: { input: {} } })
  expect([answer.status, answer.json.error.code, ran]).toEqual([402, 'credit_spent', 0])
  expect(names).toEqual([['tool', 'tide']])
})

test('decision 35 each token that was asked for has a receipt', async () => {
  const receipts: string[] = []
  await using rig = await openRig({ onReceipt: (_, { callId }) => receipts.push(callId) })
  const { nonce } = rig.broker.bind(context())
  await call(rig, nonce)
  const told = await rig.reported(({ reason }) => reason === 'ok')
  expect(receipts).toEqual([told.callId])
})
