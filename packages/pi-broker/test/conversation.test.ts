import { PI_PLACEHOLDER } from '@sandbox/protocol'
import { describe, expect, test } from 'vitest'
import { answers } from './support/messages-service.ts'
import { call, context, openRig, type Rig } from './support/rig.ts'

// Shaped as Pi 1.6 sends it: its first system block, a deferred tool, an effort marker before each answer.
const FLAGS =
  'claude-code-20250219,oauth-2025-04-20,mid-conversation-output-config-2026-07-01,thinking-binding-controls-2026-08-01,inline-tools-2026-09-15'
const HEADERS = {
  authorization: `Bearer ${PI_PLACEHOLDER}`,
  accept: 'application/json',
  'accept-language': '*',
  'anthropic-beta': FLAGS,
  'anthropic-dangerous-direct-browser-access': 'true',
  'anthropic-version': '2023-06-01',
  connection: 'keep-alive',
  'sec-fetch-mode': 'cors',
  'user-agent': 'claude-cli/2.1.322',
  'x-app': 'cli',
  'x-stainless-lang': 'js',
}
const CACHE = { cache_control: { type: 'ephemeral' } }
const marker = { role: 'system', content: [], output_config: { effort: 'medium' } }

/** One answer and what follows it, with thinking that is signed, empty, redacted and odd to spell. */
function round(turn: number): string {
  const thoughts = [
    {
      type: 'thinking',
      thinking: `Thought ${turn}: <&> \u2028 é 😀`,
      signature: Buffer.from(`s${turn}`).toString('base64'),
    },
    { type: 'thinking', thinking: '', signature: 'ZW1wdHk=' },
    { type: 'redacted_thinking', data: Buffer.from(`opaque ${turn}`).toString('base64') },
  ]
  const use = `{"type":"tool_use","id":"toolu_${turn}","name":"clock","input":{"zone":"\\u0055TC","big":12345678901234567890,"10":1,"2":1.50}}`
  const result = { type: 'tool_result', tool_use_id: `toolu_${turn}`, content: '12:00', is_error: false }
  return [
    `{"role":"assistant","content":[${thoughts.map((thought) => JSON.stringify(thought)).join(',')},${use}]}`,
    JSON.stringify({ role: 'user', content: [result] }),
    JSON.stringify(marker),
    JSON.stringify({ role: 'assistant', content: [{ type: 'text', text: `It is noon, ${turn} ✓.` }] }),
    JSON.stringify({
      role: 'user',
      content: [{ type: 'text', text: `[guest-${turn % 2} (${turn})] 今何時ですか 🕛` }],
    }),
    JSON.stringify(marker),
  ].join(',')
}

function request(turns: number): string {
  const rounds = Array.from({ length: turns }, (_, turn) => round(turn)).join(',')
  const first = JSON.stringify({
    role: 'user',
    content: [{ type: 'text', text: '[guest-a (1)] hi', ...CACHE }],
  })
  const tools = [
    {
      name: 'clock',
      description: 'Current time',
      eager_input_streaming: true,
      input_schema: { type: 'object', properties: { zone: { type: 'string' } }, required: ['zone'] },
      ...CACHE,
    },
    {
      name: '__pi_deferred_placeholder__',
      description: 'x',
      input_schema: { type: 'object' },
      defer_loading: true,
    },
  ]
  const system = [
    { type: 'text', text: 'You are Claude Code, Anthropic’s official CLI for Claude.', ...CACHE },
    { type: 'text', text: 'You are a guest assistant.\n\n<cwd>\n/workspace\n</cwd>', ...CACHE },
  ]
  const thinking = {
    type: 'adaptive',
    display: 'summarized',
    block_binding: { prefix_mismatch_behavior: 'drop_block' },
  }
  return (
    `{"model":"host-model","messages":[${[first, JSON.stringify(marker), rounds].filter((part) => part !== '').join(',')}],` +
    `"max_tokens":128000,"stream":true,"system":${JSON.stringify(system)},"tools":${JSON.stringify(tools)},` +
    `"thinking":${JSON.stringify(thinking)},"output_config":{"effort":"low"}}`
  )
}

async function send(rig: Rig, nonce: string, body: string) {
  using guest = rig.guest()
  const { length } = rig.events
  guest.send({
    path: '/anthropic/v1/messages?beta=true',
    headers: { ...HEADERS, 'x-sandbox-turn': nonce },
    body,
  })
  await rig.reported((event) => rig.events.indexOf(event) >= length)
  return String(rig.upstream.seen.at(-1)?.body)
}

describe('T44 T45 a conversation of 40 turns', () => {
  test('reaches the provider byte for byte, whoever speaks, and so does its beginning each time', async () => {
    await using rig = await openRig()
    rig.upstream.script = answers([{ type: 'text', text: 'ok' }])
    for (let turn = 0; turn <= 40; turn += 1) {
      const speaker = { id: `u-${turn % 2}`, name: `Guest ${turn % 2}` }
      const bound = rig.broker.bind(context({ thinking: 'medium', speaker }))
      const body = request(turn)
      expect(await send(rig, bound.nonce, body)).toBe(body)
      bound.release()
    }
    expect(
      rig.events.every(({ reason, droppedFields }) => reason === 'ok' && droppedFields.length === 0),
    ).toBe(true)
    expect(rig.upstream.seen).toHaveLength(41)
  })

  test('T48d W-31 of 20 MiB of images too', async () => {
    await using rig = await openRig()
    const { nonce } = rig.broker.bind(context({ thinking: 'medium' }))
    const data = Buffer.alloc(5 * 1024 * 1024, 7).toString('base64')
    const image = { type: 'image', source: { type: 'base64', media_type: 'image/png', data } }
    const shown = JSON.stringify({ role: 'user', content: [image, image, image] })
    const body = request(3).replace('"messages":[', `"messages":[${shown},`)
    expect((await send(rig, nonce, body)) === body).toBe(true)
  })

  test('with a lower level only the effort that counts is written over, and the model', async () => {
    await using rig = await openRig()
    const { nonce } = rig.broker.bind(context({ thinking: 'low' }))
    const sent = request(5).replace('"host-model"', '"claude-guest"')
    const at = sent.lastIndexOf('"effort":"medium"')
    const expected = `${sent.slice(0, at)}"effort":"low"${sent.slice(at + '"effort":"medium"'.length)}`
    expect(await send(rig, nonce, sent)).toBe(expected.replace('"claude-guest"', '"host-model"'))
  })

  test('decision 13 the identity headers of Pi travel, and nothing else of it', async () => {
    await using rig = await openRig()
    const { nonce } = rig.broker.bind(context())
    await send(rig, nonce, request(0))
    const [seen] = rig.upstream.seen
    expect(seen?.url).toBe('/v1/messages?beta=true')
    expect(seen?.headers).toMatchObject({
      'anthropic-beta': FLAGS,
      'anthropic-version': '2023-06-01',
      'user-agent': 'claude-cli/2.1.322',
      'x-app': 'cli',
      accept: 'text/event-stream',
      authorization: `Bearer ${rig.secret}`,
    })
    for (const name of ['accept-language', 'sec-fetch-mode', 'x-stainless-lang', 'x-sandbox-turn']) {
      expect(seen?.headers).not.toHaveProperty(name)
    }
    expect(seen?.rawHeaders.join(' ')).not.toContain(PI_PLACEHOLDER)
  })

  test('captures: an older model, with a budget', async () => {
    await using rig = await openRig()
    const { nonce } = rig.broker.bind(context({ thinking: 'medium' }))
    const body = {
      model: 'host-model',
      messages: [{ role: 'user', content: [{ type: 'text', text: 'hi', ...CACHE }] }],
      max_tokens: 64_000,
      stream: true,
      thinking: { type: 'enabled', budget_tokens: 8192, display: 'summarized' },
    }
    const text = JSON.stringify(body)
    expect(await send(rig, nonce, text)).toBe(text)
    expect((await call(rig, nonce, { body: { ...body, stream: false } })).status).toBe(200)
  })
})
