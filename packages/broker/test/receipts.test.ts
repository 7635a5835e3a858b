import { bySpeaker, type CredentialReceipt } from '@sandbox/credential-scope'
import { canary, chatText, findSecret, scriptedUpstream } from '@sandbox/testing'
import { describe, expect, test } from 'vitest'
import type { BrokerOptions, ReceiptCall } from '../src/index.ts'
import { mcpServer } from '../src/mcp/index.ts'
import { callHeaders } from './support/guest.ts'
import { newServer } from './support/mcp-servers.ts'
import { openRig, turnInput } from './support/rig.ts'

type Got = CredentialReceipt & ReceiptCall

async function openBook(options: Partial<BrokerOptions> = {}) {
  const receipts: Got[] = []
  const rig = await openRig({
    onReceipt: (receipt, call) => {
      receipts.push({ ...receipt, ...call })
    },
    ...options,
  })
  const { nonce } = rig.broker.bind(turnInput())
  const call = async (path: string, body: object) => {
    using guest = rig.guest()
    return await guest.call({ path, headers: callHeaders(nonce), body })
  }
  const ask = (path = '/v1/chat/completions') => call(path, { messages: [{ role: 'user', content: 'hi' }] })
  return { rig, receipts, call, ask, [Symbol.asyncDispose]: () => rig[Symbol.asyncDispose]() }
}

describe('issue 4: an event names the receipt of its credential [secret:not-in-host-output]', () => {
  test.each(['/model', '/v1/chat/completions'])('%s: rule, source, outcome; no key', async (path) => {
    const key = canary()
    await using book = await openBook({ apiKey: bySpeaker({ 'u-ann': () => key }) })
    expect((await book.ask(path)).status).toBe(200)
    const [receipt] = book.receipts
    const [event] = book.rig.events
    expect(receipt).toMatchObject({
      outcome: 'ok',
      channel: 'web:room',
      speakerId: 'u-ann',
      rule: expect.stringContaining('u-ann'),
      fingerprint: event?.fingerprint,
      callId: event?.callId,
      receiptId: event?.receiptId,
    })
    expect(event?.receiptId).toMatch(/^[0-9a-f-]{36}$/)
    expect(findSecret(Buffer.from(JSON.stringify([book.receipts, book.rig.events])), key)).toEqual([])
  })

  test('also of one that is spent elsewhere', async () => {
    await using other = await scriptedUpstream(() => chatText('from the other'))
    const token = { token: canary(), origin: other.url }
    await using book = await openBook({
      apiKey: bySpeaker({ 'u-ann': () => token }),
      upstream: () => ({ modelUrl: `${other.url}/v1/chat/completions` }),
    })
    expect((await book.ask()).status).toBe(200)
    expect(book.receipts).toMatchObject([{ outcome: 'ok', rule: 'speaker u-ann' }])
  })

  test('also of one that there is not', async () => {
    await using book = await openBook({ apiKey: () => undefined })
    expect((await book.ask()).status).toBe(502)
    expect(book.receipts).toMatchObject([{ outcome: 'credential_missing', fingerprint: null }])
    expect(book.rig.events).toMatchObject([
      { reason: 'credential_missing', receiptId: book.receipts[0]?.receiptId },
    ])
  })

  test('W-07 two keys are two receipts of one call, which names the last', async () => {
    let keys = 0
    await using book = await openBook({ apiKey: () => `key-${keys++}-of-the-account` })
    book.rig.upstream.script = (_, response) => {
      response.writeHead(401, { 'content-type': 'application/json' }).end('{}')
    }
    expect((await book.ask()).status).toBe(401)
    const [event] = book.rig.events
    expect(book.receipts.map(({ callId }) => callId)).toEqual([event?.callId, event?.callId])
    expect(book.receipts.at(-1)?.receiptId).toBe(event?.receiptId)
    expect(book.receipts[0]?.receiptId).not.toBe(event?.receiptId)
  })

  test('W-08 of MCP tokens too, for a list and for a call', async () => {
    await using server = await newServer('json')
    const mcp = [
      mcpServer({
        name: 'notes',
        url: server.url,
        tools: ['echo'],
        token: () => 'a-token-of-notes',
        allowHttp: true,
      }),
    ]
    await using book = await openBook({ mcp })
    await book.rig.broker.mcpSpecs()
    await book.call('/mcp/notes', {
      method: 'tools/call',
      params: { name: 'echo', arguments: { text: 'x' } },
    })
    expect(book.receipts.map(({ receiptId }) => receiptId)).toEqual(
      book.rig.events.map(({ receiptId }) => receiptId),
    )
    expect(book.receipts).toHaveLength(2)
  })

  test('a call that asks for no credential names none, and a sink that throws breaks nothing', async () => {
    await using book = await openBook({
      onReceipt: () => {
        throw new TypeError('no')
      },
    })
    expect((await book.call('/v1/chat/completions', {})).status).toBe(400)
    expect(book.rig.events[0]?.receiptId).toBeUndefined()
    expect((await book.ask()).status).toBe(200)
    expect(book.rig.events[1]?.receiptId).toBeDefined()
  })
})
