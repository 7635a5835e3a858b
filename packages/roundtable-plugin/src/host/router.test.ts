import { expect, test } from 'vitest'
import { admission, claim, hostWith, surface, tick } from '../../test/host-kit.ts'
import { message } from '../../test/messages.ts'
import type { InboundMessage } from '../host-contract.ts'

test('routing: the highest claim that owns the channel is the last that is asked', async () => {
  const asked: string[] = []
  const log = (name: string) => ({
    admit: () => {
      asked.push(name)
      return undefined
    },
  })
  const { host } = await hostWith([
    claim('agent', 100, log('agent')),
    claim('sandbox', 200, log('sandbox')),
    claim('elsewhere', 300, { owns: (channel) => channel === 'fake:2', ...log('elsewhere') }),
  ])
  await host.conversations.handle(message())
  expect(asked).toEqual(['sandbox'])
})

test('routing: empty messages are dropped; files alone or a forward alone are not', async () => {
  const asked: InboundMessage[] = []
  const { host } = await hostWith([claim('c', 1, { admit: (each) => void asked.push(each) as undefined })], {
    forwardJoinMs: 1,
  })
  await host.conversations.handle(message({ text: ' \n' }))
  await host.conversations.handle(message({ text: '', attachments: [{ url: 'u', name: 'n', size: 1 }] }))
  await host.conversations.handle(message({ text: '', forwarded: { text: ' ', source: 'fake:2', url: 'u' } }))
  await host.conversations.handle(message({ text: '', forwarded: { text: 'x', source: 'fake:2', url: 'u' } }))
  expect(asked).toHaveLength(2)
})

test('routing: handle resolves when the turn is over, and a failing turn is logged with its text', async () => {
  let over = false
  const { host, lines } = await hostWith([
    claim('c', 1, {
      admit: () =>
        admission(async () => {
          await tick()
          over = true
          throw new TypeError('boom')
        }),
    }),
  ])
  await host.conversations.handle(message())
  expect(over).toBe(true)
  expect(lines).toMatchObject([{ level: 'error', message: 'it failed', fields: { channel: 'fake:1' } }])
})

test('routing: a claim that throws in owns or admit is contained', async () => {
  const { host, lines } = await hostWith([
    claim('c', 1, {
      admit: () => {
        throw new TypeError('admit')
      },
    }),
  ])
  await expect(host.conversations.handle(message())).resolves.toBeUndefined()
  expect(lines.map(({ level }) => level)).toEqual(['error'])
})

test('routing: a waiting message is marked and unmarked; a steered one joins the running turn', async () => {
  const marks: string[] = []
  let steer = false
  let open = () => {}
  const busy = {
    steer: async () => steer,
    react: async (emoji: string) => void marks.push(`+${emoji}`),
    unreact: async (emoji: string) => void marks.push(`-${emoji}`),
  }
  let runs = 0
  const { host } = await hostWith([
    claim('c', 1, {
      admit: () =>
        admission(
          () => {
            runs += 1
            return runs === 1 ? new Promise<void>((done) => (open = done)) : Promise.resolve()
          },
          { busy },
        ),
    }),
  ])
  const first = host.conversations.handle(message())
  await tick()
  const second = host.conversations.handle(message())
  await tick()
  steer = true
  await host.conversations.handle(message())
  open()
  await Promise.all([first, second])
  expect([marks, runs]).toEqual([['+\u23f3', '+\u21aa\ufe0f', '-\u23f3'], 2])
})

test('routing: a forward without words joins the words of the same author, and only those', async () => {
  const seen: InboundMessage[] = []
  const { host } = await hostWith([claim('c', 1, { admit: (each) => void seen.push(each) as undefined })], {
    forwardJoinMs: 600_000,
  })
  const file = (name: string) => ({ url: 'u', name, size: 1 })
  const forwarded = { text: 'news', source: 'fake:9', url: 'u' } as const
  const forward = host.conversations.handle(
    message({ messageId: 'f', text: '', forwarded, attachments: [file('a')], mentionsBot: true }),
  )
  await host.conversations.handle(message({ messageId: 'o', authorId: 'u-bob' }))
  await host.conversations.handle(
    message({ messageId: 'w', text: 'look', attachments: [file('b')], mentionsBot: false }),
  )
  await forward
  expect(seen).toHaveLength(2)
  expect(seen[1]).toMatchObject({
    messageId: 'w',
    text: 'look',
    mentionsBot: true,
    forwarded,
    attachments: [file('a'), file('b')],
  })
  const late = host.conversations.handle(message({ messageId: 'g', text: '', forwarded }))
  await host.stop()
  await late
  expect(seen.at(-1)?.messageId).toBe('g')
})

test('routing: who speaks is the host’s to say; on a host that resolves, admissions stay in order', async () => {
  const claimed = { id: 'owner', name: 'Me', tier: 'owner' } as const
  const seen: (string | undefined)[] = []
  const record = claim('c', 1, {
    admit: (each) => void seen.push(`${each.messageId} ${each.speaker?.id}`) as undefined,
  })
  const old = await hostWith([record])
  await old.host.conversations.handle(message({ speaker: claimed }))
  expect(seen).toEqual(['m-1 undefined'])
  seen.length = 0
  let open = () => {}
  const slow = new Promise<void>((done) => (open = done))
  const { host } = await hostWith([record], {
    resolveSpeaker: async ({ messageId, authorId, authorName }) => {
      if (messageId === 'slow') await slow
      return authorId === 'u-ann'
        ? { id: authorId, name: authorName, tier: 'member', principalId: 'p' }
        : undefined
    },
  })
  const handled = [
    host.conversations.handle(message({ messageId: 'slow' })),
    host.conversations.handle(message({ messageId: 'next', authorId: 'stranger', speaker: claimed })),
    host.conversations.handle(message({ messageId: 'bot', authorIsBot: true })),
  ]
  await tick()
  expect(seen).toEqual([])
  open()
  await Promise.all(handled)
  expect(seen).toEqual(['slow u-ann', 'next undefined', 'bot undefined'])
})

test('routing: a mark that hangs holds no turn', async () => {
  const never = () => new Promise<void>(() => {})
  const open = Promise.withResolvers<void>()
  let runs = 0
  const { host } = await hostWith([
    claim('c', 1, {
      admit: () =>
        admission(
          () => {
            runs += 1
            return runs === 1 ? open.promise : Promise.resolve()
          },
          { busy: { react: never, unreact: never } },
        ),
    }),
  ])
  const handled = [host.conversations.handle(message()), host.conversations.handle(message())]
  await tick()
  open.resolve()
  await Promise.all(handled)
  expect(runs).toBe(2)
})

test('routing: a mark is taken away once it is there, however slow the chat is', async () => {
  const marks: string[] = []
  const slow = Promise.withResolvers<void>()
  const open = Promise.withResolvers<void>()
  const busy = {
    react: () => slow.promise.then(() => void marks.push('+')),
    unreact: async () => void marks.push('-'),
  }
  const { host } = await hostWith([claim('c', 1, { admit: () => admission(() => open.promise, { busy }) })])
  const handled = [host.conversations.handle(message()), host.conversations.handle(message())]
  await tick()
  open.resolve()
  await Promise.all(handled)
  slow.resolve()
  await tick()
  expect(marks).toEqual(['+', '-'])
})

test('routing: handle never rejects, whatever a surface delivers', async () => {
  const { host, lines } = await hostWith([claim('c', 1)])
  const forwarded = { text: 'x', source: 'fake:9', url: 'u' }
  for (const given of [undefined, {}, { ...message(), text: undefined, forwarded }]) {
    await host.conversations.handle(given as unknown as InboundMessage)
  }
  expect(lines.map(({ level }) => level)).toEqual(['error', 'error', 'error'])
})

test('routing: a message that still waits when the host stops is dropped, and its claim hears of it', async () => {
  const first = Promise.withResolvers<void>()
  const dropped: string[] = []
  const { host } = await hostWith([
    claim('c', 1, {
      admit: ({ text }) => admission(() => first.promise, { dropped: () => void dropped.push(text) }),
    }),
  ])
  const handled = ['first', 'second'].map((text) => host.conversations.handle(message({ text })))
  await tick()
  await host.stop()
  first.resolve()
  await Promise.all(handled)
  expect(dropped).toEqual(['second'])
})

test('4.1 a surface whose signs are made or taken away in the background costs no turn and no process', async () => {
  const unhandled: unknown[] = []
  const note = (reason: unknown) => unhandled.push(reason)
  process.on('unhandledRejection', note)
  const fails = async () => {
    throw new TypeError('no typing here')
  }
  const { host } = await hostWith([], {
    surfaces: [surface({ startTyping: () => fails, showStop: fails as never }).surface],
  })
  host.surfaces.startTyping('fake:1')()
  host.surfaces.showStop('fake:1')()
  await tick()
  process.off('unhandledRejection', note)
  expect(unhandled).toEqual([])
  await host.stop()
})
