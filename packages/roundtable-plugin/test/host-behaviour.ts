import { expect, test } from 'vitest'
import type { CommandContribution } from '../src/commands/command-contract.ts'
import { DISCORD } from '../src/commands/discord-commands.ts'
import type { SpeakerResolver } from '../src/host/index.ts'
import type {
  BackgroundTurn,
  ChannelClaim,
  ChannelKey,
  ChatSurface,
  HostContext,
  HostSurfaces,
  InboundMessage,
  SandboxPlugin,
  ScheduledOutcome,
  ServiceKey,
  TurnAdmission,
} from '../src/host-contract.ts'
import { admission, claim, surface, tick } from './host-kit.ts'
import { message } from './messages.ts'

/** A host that links one plugin and runs, as the test entry of pi-roundtable offers one. */
export interface OpenHost {
  readonly conversations: {
    handle(message: InboundMessage): Promise<void>
    startFresh(channel: ChannelKey): Promise<string>
    stop(channel: ChannelKey): boolean
    background(turn: BackgroundTurn): Promise<ScheduledOutcome>
    deleteConversation(channel: ChannelKey): Promise<unknown>
  }
  readonly surfaces: Pick<HostSurfaces, 'sendReply' | 'startTyping' | 'showStop' | 'react' | 'unreact'>
  /** What the plugin added to the owner's commands. */
  added(): readonly CommandContribution[]
  stop(): Promise<unknown>
}

/** What a test asks of a host. */
export interface HostWish {
  readonly surfaces?: readonly ChatSurface[]
  readonly apiKeys?: Record<string, string>
  readonly forwardJoinMs?: number
  /** Declares `roundtable.discord`, with this owner. */
  readonly ownerId?: string
  /** Makes it a host that says who speaks (0.9). */
  readonly resolveSpeaker?: SpeakerResolver
}

/**
 * What a kind of host brings to {@link hostBehaviour}. Over the real package it would be a dozen lines: `testPlugin` with
 * these options, and `fakeDiscord` for the commands.
 */
export interface HostUnderTest {
  /** Sets the plugin up, links it and starts it. Rejects when the plugin is refused. */
  open(plugin: SandboxPlugin, wish?: HostWish): Promise<OpenHost>
}

const STEERED = '\u21aa\ufe0f'
const WAITING = '\u23f3'

/** A plugin of the test's own. */
function pluginOf(setup: SandboxPlugin['setup'], parts: Partial<SandboxPlugin> = {}): SandboxPlugin {
  return { name: 'under-test', ...parts, setup }
}

/** A turn that ends when the test says so. */
function heldTurn() {
  const begun = Promise.withResolvers<void>()
  const end = Promise.withResolvers<void>()
  const run = () => {
    begun.resolve()
    return end.promise
  }
  return { begun: begun.promise, end: end.resolve, run }
}

/** What every host does for the claims of a plugin, one test for each promise of the contract. */
export function hostBehaviour(host: HostUnderTest): void {
  /** A host over claims; what they were asked and what was posted. */
  async function withClaims(claims: readonly ChannelClaim[], wish: HostWish = {}) {
    const fake = surface()
    const opened = await host.open(
      pluginOf(() => ({ channels: claims })),
      { surfaces: [fake.surface], ...wish },
    )
    return { ...opened, sent: fake.sent, [Symbol.asyncDispose]: async () => void (await opened.stop()) }
  }
  const admitting = (admit: ChannelClaim['admit'], parts: Partial<ChannelClaim> = {}) =>
    claim('c', 200, { admit, ...parts })

  test('3.3 the highest claim that owns the channel is the last that is asked, also when it drops the message', async () => {
    const asked: string[] = []
    const noting = (name: string, priority: number, parts: Partial<ChannelClaim> = {}) =>
      claim(name, priority, { admit: () => void asked.push(name), ...parts })
    await using it = await withClaims([
      noting('low', 100),
      noting('high', 200),
      noting('elsewhere', 300, { owns: (channel) => channel === 'fake:2' }),
    ])
    await it.conversations.handle(message())
    await it.conversations.handle(message({ channel: 'fake:2' }))
    expect(asked).toEqual(['high', 'elsewhere'])
  })

  test('trap 11.11: owns hears of the space when a message is routed, and of the channel alone when it is not', async () => {
    const asked: (string | undefined)[] = []
    await using it = await withClaims([
      claim('c', 200, { owns: (_channel, space) => asked.push(space) > 0, admit: () => undefined }),
    ])
    await it.conversations.handle(message({ space: 'guild-1' }))
    expect(asked).toContain('guild-1')
    asked.length = 0
    it.conversations.stop('fake:1')
    await it.conversations.startFresh('fake:1')
    expect(asked.length).toBeGreaterThan(0)
    expect(asked.every((space) => space === undefined)).toBe(true)
  })

  test('3.3 a message without words and files is dropped; files alone are not', async () => {
    const texts: string[] = []
    await using it = await withClaims([admitting(({ text }) => void texts.push(text))])
    await it.conversations.handle(message({ text: ' \n' }))
    await it.conversations.handle(
      message({ text: '', attachments: [{ url: 'https://a.test/x', name: 'x', size: 1 }] }),
    )
    expect(texts).toEqual([''])
  })

  test('3.3 a bare forward and what its author writes next are one message; alone it goes on by itself', async () => {
    const seen: InboundMessage[] = []
    await using it = await withClaims([admitting((one) => void seen.push(one))], { forwardJoinMs: 50 })
    const forwarded = { text: 'old news', source: 'fake:9', url: 'https://a.test/' } as const
    const bare = it.conversations.handle(message({ messageId: 'm-1', text: '', forwarded }))
    await it.conversations.handle(message({ messageId: 'm-2', text: 'what is this?', mentionsBot: false }))
    await bare
    expect(seen).toMatchObject([{ text: 'what is this?', mentionsBot: true, forwarded }])
    await it.conversations.handle(message({ messageId: 'm-3', text: '', forwarded }))
    expect(seen[1]).toMatchObject({ text: '', forwarded })
  })

  test('3.3 handle resolves when the turn is over, and never rejects, whatever the turn does', async () => {
    const turn = heldTurn()
    let over = false
    await using it = await withClaims([
      admitting(({ text }) =>
        admission(text === 'fail' ? () => Promise.reject(new TypeError('boom')) : turn.run),
      ),
    ])
    const handled = it.conversations.handle(message()).then(() => {
      over = true
    })
    await turn.begun
    expect(over).toBe(false)
    turn.end()
    await handled
    await it.conversations.handle(message({ text: 'fail' }))
  })

  test('3.5 turns of one channel run one after the other in their order, and channels do not wait', async () => {
    const turn = heldTurn()
    const seen: string[] = []
    await using it = await withClaims([
      admitting(({ text }) =>
        admission(async () => {
          if (text === 'first') await turn.run()
          seen.push(text)
        }),
      ),
    ])
    const handled = ['first', 'second', 'third'].map((text) => it.conversations.handle(message({ text })))
    await turn.begun
    await it.conversations.handle(message({ channel: 'fake:2', text: 'other' }))
    expect(seen).toEqual(['other'])
    turn.end()
    await Promise.all(handled)
    expect(seen).toEqual(['other', 'first', 'second', 'third'])
  })

  test('3.3 a message that has to wait is marked until its turn begins; one that is steered joins the running turn', async () => {
    const turn = heldTurn()
    const marks: string[] = []
    const runs: string[] = []
    const busyFor = (text: string): NonNullable<TurnAdmission['busy']> => ({
      steer: async () => text === 'steer',
      react: async (emoji) => void marks.push(`${text} +${emoji}`),
      unreact: async (emoji) => void marks.push(`${text} -${emoji}`),
    })
    await using it = await withClaims([
      admitting(({ text }) =>
        admission(
          async () => {
            runs.push(text)
            if (text === 'first') await turn.run()
          },
          { busy: busyFor(text) },
        ),
      ),
    ])
    const first = it.conversations.handle(message({ text: 'first' }))
    await turn.begun
    const second = it.conversations.handle(message({ text: 'second' }))
    await it.conversations.handle(message({ text: 'steer' }))
    turn.end()
    await Promise.all([first, second])
    expect(runs).toEqual(['first', 'second'])
    expect(marks.toSorted()).toEqual(
      [`second +${WAITING}`, `second -${WAITING}`, `steer +${STEERED}`].toSorted(),
    )
  })

  test('trap 11.4: stop goes to the owner at once and by its own answer, while turns wait', async () => {
    const turn = heldTurn()
    const stopped: ChannelKey[] = []
    await using it = await withClaims([
      admitting(() => admission(turn.run), {
        owns: (channel) => channel !== 'fake:9',
        stop: (channel) => stopped.push(channel) > 0,
      }),
    ])
    const handled = [it.conversations.handle(message()), it.conversations.handle(message())]
    await turn.begun
    expect([it.conversations.stop('fake:1'), stopped]).toEqual([true, ['fake:1']])
    expect(it.conversations.stop('fake:9')).toBe(false)
    turn.end()
    await Promise.all(handled)
  })

  test('3.4 start over waits for the turns before it; a channel that nobody owns is an error', async () => {
    const turn = heldTurn()
    const seen: string[] = []
    await using it = await withClaims([
      admitting(() => admission(() => turn.run().then(() => void seen.push('turn'))), {
        owns: (channel) => channel === 'fake:1',
        startFresh: async () => `kind ${seen.push('fresh')}`,
      }),
    ])
    const handled = it.conversations.handle(message())
    await turn.begun
    const fresh = it.conversations.startFresh('fake:1')
    turn.end()
    expect(await fresh).toBe('kind 2')
    await handled
    expect(seen).toEqual(['turn', 'fresh'])
    await expect(it.conversations.startFresh('fake:2')).rejects.toThrow('no conversation owns fake:2')
  })

  test('3.4 deletion: busy while anything runs, then done by the owner; an error where the owner cannot', async () => {
    const turn = heldTurn()
    const deleted: ChannelKey[] = []
    await using it = await withClaims([
      claim('cannot', 300, { owns: (channel) => channel === 'fake:2' }),
      admitting(() => admission(turn.run), {
        owns: (channel) => channel === 'fake:1',
        deleteConversation: async (channel) => void deleted.push(channel),
      }),
    ])
    const handled = it.conversations.handle(message())
    await turn.begun
    expect(await it.conversations.deleteConversation('fake:1')).toBe('busy')
    turn.end()
    await handled
    expect(await it.conversations.deleteConversation('fake:1')).toBe('deleted')
    expect(deleted).toEqual(['fake:1'])
    await expect(it.conversations.deleteConversation('fake:2')).rejects.toThrow()
  })

  test('4.1 surfaces: replies go by prefix; without one, and with files where none go, they reject; the rest does nothing', async () => {
    await using it = await withClaims([])
    await it.surfaces.sendReply('fake:1:2', { chunks: ['x'] })
    expect(it.sent).toEqual([['fake:1:2', { chunks: ['x'] }]])
    await expect(it.surfaces.sendReply('other:1', { chunks: ['x'] })).rejects.toThrow('other')
    const files = [{ name: 'a', data: new Uint8Array(1) }]
    await expect(it.surfaces.sendReply('fake:1', { chunks: [], files })).rejects.toThrow()
    it.surfaces.startTyping('other:1')()
    it.surfaces.showStop('fake:1')()
    await it.surfaces.react('fake:1', 'm', 'x')
    await it.surfaces.unreact('other:1', 'm', 'x')
  })

  test('trap 11.2: on a host that does not say who speaks, no message has a speaker, whatever a surface claims', async () => {
    const seen: InboundMessage[] = []
    await using it = await withClaims([admitting((one) => void seen.push(one))])
    await it.conversations.handle(message({ speaker: { id: 'u-ann', name: 'Ann', tier: 'owner' } }))
    expect(seen[0]?.speaker).toBeUndefined()
  })

  test('2.4 what is linked later cannot be used in setup, and works from a turn on; keys are read at each use', async () => {
    let context: HostContext | undefined
    const fake = surface()
    const apiKeys: Record<string, string> = { openai: 'one' }
    const opened = await host.open(
      pluginOf((given) => {
        context = given
        expect(() => given.surfaces.startTyping('fake:1')).toThrow()
        return { channels: [claim('c', 1)] }
      }),
      { surfaces: [fake.surface], apiKeys },
    )
    await context?.surfaces.sendReply('fake:1', { chunks: ['hi'] })
    expect(fake.sent).toHaveLength(1)
    expect([await context?.apiKey('openai'), await context?.apiKey('other')]).toEqual(['one', undefined])
    await opened.stop()
  })

  test('trap 11.3: services go by the id of their key; what is declared has to be provided, in setup, once', async () => {
    const key: ServiceKey<{ n: number }> = { id: 'test.key' }
    let context: HostContext | undefined
    const opened = await host.open(
      pluginOf(
        (given) => {
          context = given
          given.services.provide({ id: 'test.key' }, { n: 7 })
          expect(given.services.find({ id: 'nobody.declares' })).toBeUndefined()
          expect(() => given.services.provide({ id: 'undeclared' }, 1)).toThrow()
          return { channels: [claim('c', 1)] }
        },
        { provides: [key] },
      ),
    )
    expect(context?.services.get(key)).toEqual({ n: 7 })
    expect(() => context?.services.provide(key, { n: 8 })).toThrow()
    await opened.stop()
    const forgetful = pluginOf(() => ({ channels: [claim('c', 1)] }), { provides: [key] })
    await expect(host.open(forgetful)).rejects.toThrow('test.key')
  })

  test('trap 11.16: a contribution that the host does not know, a bad name and two claims of one name are refused', async () => {
    const refused = [
      pluginOf(() => ({ chanels: [] }) as object),
      pluginOf(() => ({ channels: [claim('c', 1)] }), { name: 'Bad Name' }),
      pluginOf(() => ({ channels: [claim('c', 1), claim('c', 2)] })),
    ]
    for (const plugin of refused) await expect(host.open(plugin)).rejects.toThrow()
  })

  test('2.6 services start in their order and stop in reverse', async () => {
    const seen: string[] = []
    const named = (name: string) => ({
      name,
      start: async () => void seen.push(`start ${name}`),
      stop: () => void seen.push(`stop ${name}`),
    })
    const opened = await host.open(pluginOf(() => ({ services: [named('a'), named('b')] })))
    await opened.stop()
    expect(seen).toEqual(['start a', 'start b', 'stop b', 'stop a'])
  })

  test('5 the service of the owner’s commands is there when the host has one, takes commands in setup, and knows its owner', async () => {
    let late: (() => void) | undefined
    const module = { commands: () => [] as never[], handle: async () => true }
    const plugin = pluginOf(({ services }) => {
      const discord = services.find(DISCORD)
      if (discord === undefined) return { channels: [claim('c', 1)] }
      expect([
        discord.guard.isOwner({ user: { id: 'olga' } }),
        discord.guard.isOwner({ user: { id: 'ann' } }),
      ]).toEqual([true, false])
      discord.commands.add({ module, rootOptions: [{ type: 1, name: 'x', description: 'd' }] })
      late = () => discord.commands.add({ module, rootOptions: [{ type: 1, name: 'y', description: 'd' }] })
      return { channels: [claim('c', 1)] }
    })
    const without = await host.open(plugin)
    expect([late, without.added()]).toEqual([undefined, []])
    await without.stop()
    const opened = await host.open(plugin, { ownerId: 'olga' })
    expect(opened.added()).toHaveLength(1)
    expect(late).toThrow()
    await opened.stop()
  })

  test('3.4 a turn that nobody wrote never rejects: without an owner or a method it is skipped', async () => {
    const turn = {
      channel: 'fake:1',
      target: 't',
      author: { id: 'a', name: 'A' },
      turnId: '1',
      text: 'x',
    } as const
    await using it = await withClaims([claim('c', 1)])
    expect(await it.conversations.background(turn)).toMatchObject({ status: 'skipped' })
    await tick()
  })
}
