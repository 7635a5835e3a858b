import { findSecret } from '@sandbox/testing'
import { describe, expect, test } from 'vitest'
import type { HostTool } from '../src/index.ts'
import { callHeaders } from './support/guest.ts'
import { modelCall, openRig, turnInput } from './support/rig.ts'

function tool(execute: HostTool['execute'], name = 'lookup'): HostTool {
  return { name, description: 'Looks up.', parameters: { type: 'object' }, execute }
}

async function run(execute: HostTool['execute'], body: unknown = { q: 1 }) {
  await using rig = await openRig({ tools: [tool(execute)] })
  const { nonce } = rig.broker.bind(turnInput())
  using guest = rig.guest()
  const answer = await guest.call({ path: '/tools/lookup', headers: callHeaders(nonce), body })
  return { answer, event: await rig.reported(() => true), received: guest.received.toString() }
}

describe('SB-17 host tools [call:host-chooses-identity]', () => {
  test('the body is the input; who asks comes from the turn, whatever the body says', async () => {
    let seen: unknown[] = []
    const body = { q: 'x', speaker: { id: 'u-owner' }, channel: 'web:private', signal: 1 }
    const { answer, event } = await run((input, context) => {
      seen = [
        input,
        context.channel,
        context.speaker,
        context.signal instanceof AbortSignal,
        Object.keys(context),
      ]
      return 'found'
    }, body)
    expect(answer.json).toEqual({ text: 'found' })
    expect(seen).toEqual([
      body,
      'web:room',
      { id: 'u-ann', name: 'Ann' },
      true,
      ['channel', 'speaker', 'signal'],
    ])
    expect(event).toMatchObject({ route: 'tool', name: 'lookup', reason: 'ok', turnId: 't-1' })
    expect(event.fingerprint).toBeUndefined()
  })

  test('CS-21 a principalId of the bound turn reaches tools and getters, not a host’s other fields', async () => {
    const seen: unknown[] = []
    await using rig = await openRig({
      apiKey: ({ speaker }) => {
        seen.push(speaker)
        return 'k'.repeat(20)
      },
      tools: [tool((_, { speaker }) => `${seen.push(speaker)}`)],
    })
    const speaker = { id: 'u-ann', name: 'Ann', principalId: 'p-1' }
    const context = { channel: 'web:room', speaker: { ...speaker, tier: 'owner' } }
    const { nonce, scope } = rig.broker.bind(turnInput({ context }))
    using guest = rig.guest()
    await guest.call({ path: '/tools/lookup', headers: callHeaders(nonce), body: { principalId: 'p-eve' } })
    await modelCall(rig, nonce)
    expect([scope.speaker, ...seen]).toEqual([speaker, speaker, speaker])
    expect(rig.upstream.seen[0]?.body).not.toContain('p-1')
  })

  test('W-03 each call gets its own frozen copy: a tool cannot change whose key is spent next', async () => {
    const speakers: string[] = []
    const contexts: object[] = []
    await using rig = await openRig({
      apiKey: (scope) => {
        speakers.push(scope.speaker.id)
        return 'k'.repeat(20)
      },
      tools: [
        tool((_, context) => {
          contexts.push(context)
          try {
            ;(context.speaker as { id: string }).id = 'u-owner'
          } catch {
            return 'frozen'
          }
          return 'changed'
        }),
      ],
    })
    const { nonce } = rig.broker.bind(turnInput())
    using guest = rig.guest()
    for (let count = 0; count < 2; count += 1) {
      const answer = await guest.call({ path: '/tools/lookup', headers: callHeaders(nonce), body: {} })
      expect(answer.json).toEqual({ text: 'frozen' })
    }
    await modelCall(rig, nonce)
    expect(speakers).toEqual(['u-ann'])
    expect(contexts[0]).not.toBe(contexts[1])
  })

  test('CS-04 in spirit: a tool call asks for no credential', async () => {
    let asked = 0
    await using rig = await openRig({ apiKey: () => `${++asked}`.repeat(20), tools: [tool(() => 'x')] })
    const { nonce } = rig.broker.bind(turnInput())
    using guest = rig.guest()
    await guest.call({ path: '/tools/lookup', headers: callHeaders(nonce), body: {} })
    expect(asked).toBe(0)
  })
})

describe('MI-07 inputs are held against their schema', () => {
  const parameters = {
    type: 'object',
    properties: { city: { type: 'string' }, days: { type: 'array', items: { type: 'integer' } } },
    required: ['city'],
    additionalProperties: false,
  }
  async function ask(body: unknown) {
    let ran = 0
    const weather = { ...tool(() => `${++ran}`, 'weather'), parameters }
    await using rig = await openRig({ tools: [weather], maxCalls: 1 })
    const { nonce } = rig.broker.bind(turnInput())
    using guest = rig.guest()
    const call = { path: '/tools/weather', headers: callHeaders(nonce), body }
    const answer = await guest.call(call)
    const second = await guest.call(call)
    return { answer, second, ran, event: await rig.reported(() => true), received: guest.received.toString() }
  }
  test.each<[string, unknown, string]>([
    ['a missing field', { days: [] }, 'the input: required'],
    ['a field of another type', { city: 7 }, '/city: type'],
    ['an item deep inside', { city: 'Oslo', days: [1, 'two'] }, '/days/1: type'],
    ['a field too many', { city: 'Oslo', speaker: 'u-owner' }, 'the input: additionalProperties'],
  ])('%s is 400, the tool does not run, and where it was wrong is for the host', async (_, body, problem) => {
    const { answer, ran, second, event, received } = await ask(body)
    expect([answer.status, answer.json.error.code, ran]).toEqual([400, 'input_refused', 0])
    expect(event).toMatchObject({ reason: 'input_refused', problem, name: 'weather' })
    expect(received).not.toContain(problem.slice(-8))
    expect(second.json.error.code).toBe('budget_spent')
  })
  test('what fits runs', async () => {
    const { answer, event } = await ask({ city: 'Oslo', days: [1] })
    expect(answer.json).toEqual({ text: '1' })
    expect(event).not.toHaveProperty('problem')
  })
})

describe('SB-18 and SB-30 what a tool gives back [call:generic-errors]', () => {
  const failing: [string, HostTool['execute']][] = [
    [
      'a throw',
      () => {
        throw new TypeError('at /srv/host/secret-path')
      },
    ],
    ['a rejection', () => Promise.reject(new TypeError('at /srv/host/secret-path'))],
    ['nothing', () => undefined as never],
    ['an object', () => ({ text: 'x', debug: '/srv/host/secret-path' }) as never],
    ['a number', () => 1 as never],
    ['a String object', () => new String('x') as never],
    ['over 1 MiB as JSON', () => '"'.repeat(600_000)],
    ['itself aborting', () => Promise.reject(new DOMException('x', 'AbortError'))],
  ]
  test.each(failing)('%s is 502 without a word of it', async (_, execute) => {
    const { answer, event, received } = await run(execute)
    expect([answer.status, answer.json.error.code, event.reason]).toEqual([502, 'tool_failed', 'tool_failed'])
    expect(received).not.toContain('secret-path')
  })
  test('1 MiB as JSON passes', async () => {
    const { answer } = await run(() => 'x'.repeat(1024 * 1024 - '{"text":""}'.length))
    expect(answer.status).toBe(200)
  })
})

test('W-06 a tool that never settles ends with the call, and its signal fires', async () => {
  let fired = () => {}
  const aborted = new Promise<void>((done) => {
    fired = done
  })
  await using rig = await openRig(
    {
      tools: [
        tool((_, { signal }) => {
          signal.addEventListener('abort', () => fired())
          return new Promise(() => {})
        }),
        tool(() => 'next', 'other'),
      ],
    },
    { callMs: 80 },
  )
  const { nonce } = rig.broker.bind(turnInput())
  using guest = rig.guest()
  const answer = await guest.call({ path: '/tools/lookup', headers: callHeaders(nonce), body: {} })
  expect(answer.json.error.code).toBe('timeout')
  await aborted
  expect((await guest.call({ path: '/tools/other', headers: callHeaders(nonce), body: {} })).status).toBe(200)
})

test('W-22 [reflect:stopped] a tool that gives back the turn’s key is refused', async () => {
  let known = ''
  await using rig = await openRig({ tools: [tool(() => `the key is ${known}`)] })
  known = rig.secret
  const { nonce } = rig.broker.bind(turnInput())
  await modelCall(rig, nonce)
  using guest = rig.guest()
  const answer = await guest.call({ path: '/tools/lookup', headers: callHeaders(nonce), body: {} })
  expect(answer.status).toBe(502)
  expect(findSecret(guest.received, rig.secret)).toEqual([])
  expect(rig.events.at(-1)).toMatchObject({ route: 'tool', reason: 'reflection' })
})
