import { chatText, scriptedUpstream } from '@sandbox/testing'
import { expect, test } from 'vitest'
import { createHost } from '../src/host/index.ts'
import type { ChannelKey, OutboundReply } from '../src/host-contract.ts'
import { ownRoots } from './account.ts'
import { referenceConfig } from './fixtures/reference-config.ts'
import { message, recordingLogger } from './messages.ts'

test('EX-01 a configuration written for the reference package answers messages after its import lines are changed', async () => {
  using roots = ownRoots()
  await using upstream = await scriptedUpstream(() => chatText('hi'))
  const config = referenceConfig({ ...roots, modelUrl: `${upstream.url}/v1/chat/completions` })
  const sent: [ChannelKey, OutboundReply][] = []
  const { logger } = recordingLogger()
  const plugin = config.plugins[0]
  if (plugin === undefined) throw new TypeError('no plugin')
  const host = await createHost({
    plugins: [plugin],
    surfaces: [
      {
        surface: 'discord',
        start: async () => {},
        sendReply: async (channel, reply) => void sent.push([channel, reply]),
      },
    ],
    apiKeys: { openai: 'sk-openai-0123456789abcdef' },
    logger,
  })
  try {
    await host.start()
    await host.conversations.handle(message({ channel: 'discord:123', text: 'hello' }))
    expect(sent).toEqual([['discord:123', { chunks: ['hi'] }]])
    expect(upstream.seen.map(({ headers }) => headers.authorization)).toEqual([
      'Bearer sk-openai-0123456789abcdef',
    ])
    expect(upstream.seen[0]?.body).toContain('host_weather')
  } finally {
    await host.stop()
  }
})
