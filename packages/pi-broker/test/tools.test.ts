import { limits } from '@sandbox/protocol'
import { describe, expect, test } from 'vitest'
import type { PiHostContext, PiHostTool, PiToolAnswer } from '../src/index.ts'
import { call, context, openRig } from './support/rig.ts'

const tool = (execute: PiHostTool['execute'], changes: Partial<PiHostTool> = {}): PiHostTool => ({
  name: 'look',
  description: 'Looks.',
  parameters: { type: 'object', properties: { at: { type: 'string' } } },
  execute,
  ...changes,
})
const LOOK = '/tools/look'

describe('PB-11 to PB-13 host tools', () => {
  test('the context is the host’s; fields of the same name in a body are plain data [call:host-chooses-identity]', async () => {
    const seen: { input: object; context: Required<PiHostContext> }[] = []
    await using rig = await openRig({
      tools: [
        tool((input, given) => {
          seen.push({ input, context: given })
          return { ok: true, text: 'a tree' }
        }),
      ],
    })
    const deadline = performance.now() + 9000
    const { nonce } = rig.broker.bind(context({ profile: 'team', thinking: 'high', deadline }))
    const input = { at: 'it', speaker: { id: 'u-bob' }, channel: 'web:other' }
    const answer = await call(rig, nonce, { path: LOOK, body: { input, author: 'x', channel: 'web:other' } })
    expect([answer.status, answer.json]).toEqual([200, { ok: true, text: 'a tree' }])
    expect(seen[0]?.input).toEqual(input)
    expect({ ...seen[0]?.context, signal: 0 }).toEqual({
      channel: 'web:room',
      speaker: { id: 'u-ann', name: 'Ann' },
      profile: 'team',
      thinking: 'high',
      deadline,
      signal: 0,
    })
    expect(await rig.reported(({ route }) => route === 'tool')).toMatchObject({ name: 'look', reason: 'ok' })
  })

  test('CS-21 a Pi turn’s scope has no principalId, neither for a tool nor for the one who pays', async () => {
    const seen: unknown[] = []
    await using rig = await openRig({
      oauthToken: ({ speaker }) => {
        seen.push(speaker)
        return 'sk-ant-oat01-0123456789'
      },
      tools: [
        tool((_, { speaker }) => {
          seen.push(speaker)
          return { ok: true }
        }),
      ],
    })
    const ann = { id: 'u-ann', name: 'Ann' }
    const { nonce, scope } = rig.broker.bind(context({ speaker: { ...ann, principalId: 'p-1' } }))
    await call(rig, nonce, { path: LOOK, body: { input: {} } })
    await call(rig, nonce)
    expect([scope.speaker, ...seen]).toEqual([ann, ann, ann])
  })

  test('W-03 a tool that writes into its context changes nothing for others, nor who pays', async () => {
    const scopes: object[] = []
    await using rig = await openRig({
      oauthToken: (scope) => {
        scopes.push(structuredClone(scope))
        return 'sk-ant-oat01-0123456789'
      },
      tools: [
        tool((_, given) => {
          Object.assign(given.speaker, { id: 'u-bob' })
          return { ok: true }
        }),
      ],
    })
    const { nonce } = rig.broker.bind(context())
    expect((await call(rig, nonce, { path: LOOK, body: { input: {} } })).status).toBe(502)
    await call(rig, nonce)
    expect(scopes).toEqual([{ channel: 'web:room', speaker: { id: 'u-ann', name: 'Ann' } }])
  })

  test.each([{}, { input: null }, { input: [] }, { input: 'x' }, { at: 'x' }, { input: { at: 5 } }])(
    'PB-11 %j is 400 and runs nothing',
    async (body) => {
      let ran = 0
      await using rig = await openRig({
        tools: [
          tool(() => {
            ran += 1
            return { ok: true }
          }),
        ],
      })
      const { nonce } = rig.broker.bind(context())
      const answer = await call(rig, nonce, { path: LOOK, body })
      expect([answer.status, answer.json.error.code, ran]).toEqual([400, 'input_refused', 0])
    },
  )

  test('W-41 only the known fields of an answer reach the guest', async () => {
    const image = { mimeType: 'image/png', data: 'AAAA', path: '/srv/x.png' }
    const answer = { ok: false, text: 'x', error: 'not there', image, debug: 'token', privateTo: 'u-1' }
    await using rig = await openRig({ tools: [tool(() => answer as PiToolAnswer)] })
    const { nonce } = rig.broker.bind(context())
    expect((await call(rig, nonce, { path: LOOK, body: { input: {} } })).json).toEqual({
      ok: false,
      text: 'x',
      error: 'not there',
      image: { mimeType: 'image/png', data: 'AAAA' },
    })
  })

  test.each([
    ['no object', 'text'],
    ['no ok', { text: 'x' }],
    ['a text that is none', { ok: true, text: 5 }],
    ['a text that is too long', { ok: true, text: 'x'.repeat(limits.PI_TOOL_TEXT_CHARS + 1) }],
    ['an error that is too long', { ok: false, error: 'x'.repeat(limits.PI_ERROR_CHARS + 1) }],
    ['an image of another kind', { ok: true, image: { mimeType: 'image/svg+xml', data: 'AAAA' } }],
    ['an image that is no base64', { ok: true, image: { mimeType: 'image/png', data: 'A' } }],
    ['null for an image', { ok: true, image: null }],
  ])('PB-13 an answer with %s fails', async (_what, answer) => {
    await using rig = await openRig({ tools: [tool(() => answer as never)] })
    const { nonce } = rig.broker.bind(context())
    const got = await call(rig, nonce, { path: LOOK, body: { input: {} } })
    expect([got.status, got.json.error.code]).toEqual([502, 'tool_failed'])
  })

  test('PB-29 what a tool throws stays on the host [call:generic-errors]', async () => {
    await using rig = await openRig({
      tools: [
        tool(() => {
          throw new TypeError('no such file: /srv/secret')
        }),
      ],
    })
    const { nonce } = rig.broker.bind(context())
    const answer = await call(rig, nonce, { path: LOOK, body: { input: {} } })
    expect([answer.status, answer.json]).toEqual([
      502,
      { error: { code: 'tool_failed', message: 'The tool failed.' } },
    ])
  })

  test('PB-12 PB-13 the signal fires with the turn; a tool that ran on has failed', async () => {
    const started = Promise.withResolvers<AbortSignal>()
    await using rig = await openRig({
      tools: [
        tool((_, { signal }) => {
          started.resolve(signal)
          return new Promise(() => {})
        }),
      ],
    })
    const bound = rig.broker.bind(context())
    const answer = call(rig, bound.nonce, { path: LOOK, body: { input: {} } })
    const signal = await started.promise
    bound.release()
    expect(signal.aborted).toBe(true)
    expect((await answer).status).toBe(410)
  })

  test('CS-04 W-22 a tool’s call asks for no token, and its answer carries none that the turn spent [reflect:stopped]', async () => {
    let asked = 0
    const secret = 'sk-ant-oat01-0123456789abcdef'
    await using rig = await openRig({
      oauthToken: () => {
        asked += 1
        return secret
      },
      tools: [tool(() => ({ ok: true, text: `it is ${secret}` }))],
    })
    const { nonce } = rig.broker.bind(context())
    expect((await call(rig, nonce, { path: LOOK, body: { input: {} } })).status).toBe(200)
    expect(asked).toBe(0)
    await call(rig, nonce)
    const answer = await call(rig, nonce, { path: LOOK, body: { input: {} } })
    expect([answer.status, answer.text.includes(secret)]).toEqual([502, false])
    expect(asked).toBe(1)
  })

  test('several at once, each with its own input', async () => {
    await using rig = await openRig({
      tools: [tool(async ({ at }) => ({ ok: true, text: String(at) }), { name: 'Look-2' })],
    })
    const { nonce } = rig.broker.bind(context())
    const answers = await Promise.all(
      ['a', 'b', 'c'].map((at) => call(rig, nonce, { path: '/tools/Look-2', body: { input: { at } } })),
    )
    expect(answers.map(({ json }) => json.text)).toEqual(['a', 'b', 'c'])
    expect((await call(rig, nonce, { path: '/tools/look-2', body: { input: {} } })).status).toBe(404)
  })
})
