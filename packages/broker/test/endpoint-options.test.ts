import { describe, expect, test } from 'vitest'
import type { BrokerOptions } from '../src/index.ts'
import { callHeaders } from './support/guest.ts'
import { openRig, turnInput } from './support/rig.ts'
import { chatStream, streams } from './support/sse.ts'

/** What the provider sees of a Chat Completions call, and what the host is told of it. */
async function seenOf(options: Partial<BrokerOptions>, body: object) {
  await using rig = await openRig(options)
  if ('stream' in body) rig.upstream.script = streams(chatStream(['hi']))
  const { nonce } = rig.broker.bind(turnInput())
  using guest = rig.guest()
  const messages = [{ role: 'user', content: 'hi' }]
  guest.send({ path: '/v1/chat/completions', headers: callHeaders(nonce), body: { messages, ...body } })
  const event = await rig.reported(() => true)
  const { model: _, messages: __, ...seen } = JSON.parse(rig.upstream.seen[0]?.body ?? '{}')
  return { seen, event }
}

describe('issue 4 and T43: how an operator’s endpoint wants Chat Completions', () => {
  const NEW = { tokenLimitField: 'max_completion_tokens' } as const
  test.each<[what: string, options: Partial<BrokerOptions>, body: object, seen: object]>([
    ['a limit stays where the guest put it', {}, { max_completion_tokens: 7 }, { max_completion_tokens: 7 }],
    ['… or moves', { renameTokenLimit: true }, { max_completion_tokens: 7 }, { max_tokens: 7 }],
    ['… to the other', { ...NEW, renameTokenLimit: true }, { max_tokens: 7 }, { max_completion_tokens: 7 }],
    [
      '… and is capped all the same',
      { ...NEW, renameTokenLimit: true, maxOutputTokens: 5 },
      { max_tokens: 7 },
      { max_completion_tokens: 5 },
    ],
    [
      'for some scopes only',
      { upstream: () => ({ ...NEW, renameTokenLimit: true }) },
      { max_tokens: 7 },
      { max_completion_tokens: 7 },
    ],
    [
      'token counts are asked for in a stream',
      {},
      { stream: true },
      { max_tokens: 4096, stream: true, stream_options: { include_usage: true } },
    ],
    ['… or not', { streamUsage: false }, { stream: true }, { max_tokens: 4096, stream: true }],
    [
      '… for some scopes only',
      { upstream: () => ({ streamUsage: false }) },
      { stream: true },
      { max_tokens: 4096, stream: true },
    ],
    [
      '… but as the guest says',
      { streamUsage: false },
      { stream: true, stream_options: { include_usage: true } },
      { max_tokens: 4096, stream: true, stream_options: { include_usage: true } },
    ],
  ])('%s', async (_, options, body, expected) => {
    const { seen, event } = await seenOf(options, body)
    expect([event.reason, seen]).toEqual(['ok', expected])
  })
})
