import { expect, test } from 'vitest'
import type {
  ChatSurface,
  HostContext,
  InboundMessage,
  OutboundReply,
  ServiceKey,
} from '../src/host-contract.ts'
import type { HostUnderTest, HostWish, OpenHost } from './host-behaviour.ts'
import { admission, claim, surface, tick } from './host-kit.ts'
import { message } from './messages.ts'

const forwarded = { text: 'old news', source: 'fake:9', url: 'https://a.test/' } as const
const file = (name: string) => ({ url: `https://a.test/${name}`, name, size: 1 })

/** What a host gets wrong without anybody seeing it at once: order, and what goes to whom. */
export function hostCorners(host: HostUnderTest): void {
  const open = (claims: Parameters<typeof claim>[2][], wish: HostWish = {}): Promise<OpenHost> =>
    host.open(
      {
        name: 'under-test',
        setup: () => ({ channels: claims.map((parts, index) => claim(`c${index}`, 200, parts)) }),
      },
      { surfaces: [surface().surface], ...wish },
    )

  test('trap 11.2: a host that says who speaks asks for no bot and no webhook, hands a frozen copy on, and keeps the order', async () => {
    const seen: InboundMessage[] = []
    const asked: string[] = []
    const slow = Promise.withResolvers<void>()
    const it = await open([{ admit: (one) => void seen.push(one) }], {
      async resolveSpeaker({ messageId, authorId, authorName }) {
        asked.push(messageId)
        if (messageId === 'slow') await slow.promise
        return { id: authorId, name: authorName, tier: 'member', principalId: 'p-1' }
      },
    })
    const given = message({ messageId: 'slow' })
    const handled = [
      it.conversations.handle(given),
      it.conversations.handle(message({ messageId: 'bot', authorIsBot: true })),
      it.conversations.handle(message({ messageId: 'hook', integration: { id: 'w', own: false } })),
      it.conversations.handle(message({ messageId: 'next' })),
    ]
    await tick()
    slow.resolve()
    await Promise.all(handled)
    expect(seen.map(({ messageId, speaker }) => [messageId, speaker?.principalId])).toEqual([
      ['slow', 'p-1'],
      ['bot', undefined],
      ['hook', undefined],
      ['next', 'p-1'],
    ])
    expect([asked, Object.isFrozen(seen[0]?.speaker), given.speaker]).toEqual([
      ['slow', 'next'],
      true,
      undefined,
    ])
    await it.stop()
  })

  test('3.3 the mark of a waiting message is gone while its turn runs, and a mark that fails costs nothing', async () => {
    const marks: string[] = []
    const first = Promise.withResolvers<void>()
    const second = Promise.withResolvers<void>()
    const busy = {
      react: async () => void marks.push('+'),
      unreact: async () => void marks.push('-'),
    }
    const failing = {
      react: () => Promise.reject(new TypeError()),
      unreact: () => Promise.reject(new TypeError()),
    }
    const ran: string[] = []
    const it = await open([
      {
        admit: ({ text }) =>
          admission(
            async () => {
              ran.push(text)
              if (text === 'first') await first.promise
              if (text === 'second') await second.promise
            },
            { busy: text === 'third' ? failing : busy },
          ),
      },
    ])
    const handled = ['first', 'second', 'third'].map((text) => it.conversations.handle(message({ text })))
    await tick()
    first.resolve()
    while (ran.length < 2) await tick()
    await tick()
    expect([marks, ran]).toEqual([
      ['+', '-'],
      ['first', 'second'],
    ])
    second.resolve()
    await Promise.all(handled)
    expect(ran).toEqual(['first', 'second', 'third'])
    await it.stop()
  })

  test('3.1 of claims of one priority the first is asked', async () => {
    const asked: string[] = []
    const noting = (name: string) => ({ admit: () => void asked.push(name) })
    const it = await open([noting('first'), noting('second'), noting('third')])
    await it.conversations.handle(message())
    expect(asked).toEqual(['first'])
    await it.stop()
  })

  test('3.5 a turn that fails keeps nobody waiting', async () => {
    const ran: string[] = []
    const it = await open([
      {
        admit: ({ text }) =>
          admission(async () => {
            ran.push(text)
            if (text === 'fail') throw new TypeError('boom')
          }),
      },
    ])
    await Promise.all(['fail', 'next'].map((text) => it.conversations.handle(message({ text }))))
    await it.conversations.handle(message({ text: 'later' }))
    expect(ran).toEqual(['fail', 'next', 'later'])
    await it.stop()
  })

  test('3.4 where the owner has no stop, nothing was stopped; a turn waits for a deletion', async () => {
    const turn = Promise.withResolvers<void>()
    const deletion = Promise.withResolvers<void>()
    const seen: string[] = []
    const it = await open([
      {
        admit: ({ text }) =>
          admission(async () => {
            seen.push(text)
            if (text === 'first') await turn.promise
          }),
        deleteConversation: () => deletion.promise.then(() => void seen.push('deleted')),
      },
    ])
    const first = it.conversations.handle(message({ text: 'first' }))
    await tick()
    expect(it.conversations.stop('fake:1')).toBe(false)
    turn.resolve()
    await first
    const deleting = it.conversations.deleteConversation('fake:1')
    const second = it.conversations.handle(message({ text: 'second' }))
    await tick()
    deletion.resolve()
    expect(await deleting).toBe('deleted')
    await second
    expect(seen).toEqual(['first', 'deleted', 'second'])
    await it.stop()
  })

  test('3.4 a turn that nobody wrote never rejects, also when its owner does', async () => {
    const it = await open([{ background: () => Promise.reject(new TypeError('boom')) }])
    const author = { id: 'a', name: 'A' }
    const outcome = await it.conversations.background({
      channel: 'fake:1',
      target: 't',
      author,
      turnId: '1',
      text: 'x',
    })
    expect(outcome.status).not.toBe('ran')
    await it.stop()
  })

  test('3.3 only words of the same author in the same channel join a forward, and they are what is said', async () => {
    const seen: InboundMessage[] = []
    const it = await open([{ admit: (one) => void seen.push(one) }], { forwardJoinMs: 60_000 })
    const bare = it.conversations.handle(
      message({ messageId: 'f', text: '', forwarded, attachments: [file('a')], mentionsBot: false }),
    )
    await it.conversations.handle(message({ messageId: 'bob', authorId: 'u-bob' }))
    await it.conversations.handle(message({ messageId: 'there', channel: 'fake:2' }))
    await it.conversations.handle(message({ messageId: 'own', text: 'look', attachments: [file('b')] }))
    await bare
    await it.conversations.handle(message({ messageId: 'words', text: 'see this', forwarded }))
    expect(seen.map(({ messageId }) => messageId)).toEqual(['bob', 'there', 'own', 'words'])
    expect(seen[2]).toMatchObject({ text: 'look', forwarded, attachments: [file('a'), file('b')] })
    await it.stop()
  })

  test('4.1 files go to a surface that takes some, no files to every one, and what it shows is asked of it alone', async () => {
    const sent: OutboundReply[] = []
    const shown: string[] = []
    const showing = (on: string, off: string) => {
      shown.push(on)
      return () => void shown.push(off)
    }
    const takes: ChatSurface = {
      surface: 'files',
      supportsFiles: true,
      start: async () => {},
      sendReply: async (_channel, reply) => void sent.push(reply),
      startTyping: () => showing('typing', 'quiet'),
      showStop: () => showing('stop', 'hidden'),
      react: async (_channel, id, emoji) => void shown.push(`+${id}${emoji}`),
      unreact: async (_channel, id, emoji) => void shown.push(`-${id}${emoji}`),
    }
    const plain = surface()
    const it = await open([], { surfaces: [plain.surface, takes] })
    const files = [{ name: 'a', data: new Uint8Array(1) }]
    await it.surfaces.sendReply('files:1', { chunks: [], files })
    await it.surfaces.sendReply('fake:1', { chunks: ['x'], files: [] })
    expect([sent, plain.sent.length]).toEqual([[{ chunks: [], files }], 1])
    it.surfaces.startTyping('files:1')()
    it.surfaces.showStop('files:1')()
    await it.surfaces.react('files:1', 'm', 'x')
    await it.surfaces.unreact('files:1', 'm', 'x')
    expect(shown).toEqual(['typing', 'quiet', 'stop', 'hidden', '+mx', '-mx'])
    await it.stop()
  })

  test('4.3 a message of another surface is dropped; two surfaces of one prefix, and one with a colon, are refused', async () => {
    const seen: InboundMessage[] = []
    let deliver: (message: InboundMessage) => Promise<void> = async () => {}
    const own = surface({
      start: async (given) => {
        deliver = given
      },
    })
    const it = await open([{ admit: (one) => void seen.push(one) }], { surfaces: [own.surface] })
    await deliver(message({ channel: 'other:1' }))
    await deliver(message())
    expect(seen.map(({ channel }) => channel)).toEqual(['fake:1'])
    await it.stop()
    const twice = [surface().surface, surface().surface]
    await expect(open([], { surfaces: twice })).rejects.toThrow()
    await expect(open([], { surfaces: [surface({ surface: 'a:b' }).surface] })).rejects.toThrow()
  })

  test('2.3 a service that is declared and not there yet is an error, one that is nobody’s is an error to get, and none is provided late', async () => {
    const key: ServiceKey<number> = { id: 'test.key' }
    let late: HostContext['services'] | undefined
    const opened = await host.open({
      name: 'under-test',
      provides: [key],
      setup({ services }) {
        expect(() => services.find(key)).toThrow()
        expect(() => services.get({ id: 'nobody', absent: 'say why' })).toThrow()
        services.provide(key, 1)
        expect(() => services.provide(key, 2)).toThrow()
        late = services
        return { channels: [claim('c', 1)] }
      },
    })
    expect(() => late?.provide(key, 3)).toThrow()
    expect(late?.get(key)).toBe(1)
    await opened.stop()
  })
}
