import { mcpServer } from '@sandbox/broker/mcp'
import { chatText, chatToolCalls, scriptedUpstream } from '@sandbox/testing'
import { expect, test } from 'vitest'
import { notes } from './notes-server.ts'
import { ann, kit } from './runtime-kit.ts'

const tokens = { 'u-ann': 'tok-of-ann-0123456789' } as Record<string, string>

test('W-08 W-35 the model is offered the listed MCP tools, and they are called with the speaker’s token', async () => {
  await using server = await scriptedUpstream(notes)
  const mcp = mcpServer({
    name: 'notes',
    url: server.url,
    tools: ['find'],
    allowHttp: true,
    token: ({ speaker }) => tokens[speaker.id],
  })
  await using own = await kit({
    script: ({ body }) =>
      body.includes('found')
        ? chatText('done')
        : chatToolCalls([{ name: 'mcp_0_find', input: { what: 'tea' } }]),
    runtime: { mcp: [mcp] },
  })
  expect(await own.runtime.runTurn('fake:1', ann, 'look for tea')).toEqual({ ok: true, text: 'done' })
  const [first, second] = own.upstream.seen.map(({ body }) => body)
  expect(first).toContain('"mcp_0_find"')
  expect(first).not.toContain('erase')
  expect(second).toContain('found tea')
  for (const { headers } of server.seen) expect(headers.authorization).toBe(`Bearer ${tokens['u-ann']}`)
  expect(own.calls.filter(({ route }) => route === 'mcp').map(({ name, reason }) => [name, reason])).toEqual([
    ['notes', 'ok'],
    ['notes/find', 'ok'],
  ])
})

test('a server that is not there is left out, and the turn goes on', async () => {
  const mcp = mcpServer({ name: 'notes', url: 'http://127.0.0.1:9', tools: ['find'], allowHttp: true })
  await using own = await kit({ runtime: { mcp: [mcp] } })
  expect(await own.runtime.runTurn('fake:1', ann, 'hello')).toEqual({ ok: true, text: 'hi' })
  expect(own.calls.find(({ route }) => route === 'mcp')).toMatchObject({
    reason: 'upstream_network',
    droppedFields: ['find'],
  })
})
