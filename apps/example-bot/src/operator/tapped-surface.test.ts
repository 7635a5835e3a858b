import type { ChatSurface, InboundMessage, OutboundReply } from '@sandbox/roundtable-plugin'
import { expect, test } from 'vitest'
import { tappedSurface } from './tapped-surface.ts'

class OwnSurface implements ChatSurface {
  readonly surface = 'room'
  readonly supportsFiles = true
  readonly #sent: OutboundReply[] = []
  deliver: (message: InboundMessage) => Promise<void> = async () => {}
  async start(deliver: (message: InboundMessage) => Promise<void>) {
    this.deliver = deliver
  }
  async sendReply(_: string, reply: OutboundReply) {
    this.#sent.push(reply)
  }
  startTyping() {
    return () => this.#sent.length
  }
  get sent() {
    return this.#sent
  }
}

const message = (more: Partial<InboundMessage> = {}): InboundMessage => ({
  channel: 'room:a',
  messageId: 'm1',
  text: 'hello',
  attachments: [],
  authorId: 'u',
  authorName: 'U',
  authorIsBot: false,
  isDirect: false,
  mentionsBot: true,
  repliesToBot: false,
  ...more,
})

test('messages and replies pass and are told; a closed surface answers those who speak to the bot, and passes none', async () => {
  const own = new OwnSurface()
  const told: string[] = []
  const delivered: string[] = []
  let closed: string | undefined
  const tapped = tappedSurface(own, {
    closed: () => closed,
    onMessage: ({ text }) => told.push(`in ${text}`),
    onReply: (_, { chunks }) => told.push(`out ${chunks}`),
  })
  expect([tapped.surface, tapped.supportsFiles, tapped.react]).toEqual(['room', true, undefined])
  await tapped.start(async ({ text }) => void delivered.push(text))
  await own.deliver(message())
  await tapped.sendReply('room:a', { chunks: ['hi'] })
  tapped.startTyping?.('room:a')()
  closed = 'later'
  await own.deliver(message({ text: 'again' }))
  await own.deliver(message({ text: 'among people', mentionsBot: false }))
  expect(delivered).toEqual(['hello'])
  expect(told).toEqual(['in hello', 'out hi'])
  expect(own.sent.map(({ chunks }) => chunks)).toEqual([['hi'], ['later']])
})
