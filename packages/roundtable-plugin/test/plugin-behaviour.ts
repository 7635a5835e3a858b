import { expect, test } from 'vitest'
import type { AnyInteraction } from '../src/commands/command-contract.ts'
import type {
  ChannelKey,
  ChatSurface,
  HostContext,
  InboundMessage,
  OutboundReply,
  SandboxPlugin,
} from '../src/host-contract.ts'
import type { HostUnderTest, HostWish, OpenHost } from './host-behaviour.ts'
import { message } from './messages.ts'

/** What a test of {@link pluginBehaviour} gets. */
export interface MadePlugin extends AsyncDisposable {
  readonly plugin: SandboxPlugin
  /** The scopes for which a credential was asked. */
  readonly scopes: unknown[]
}

/** A plugin of ours, with `fake:1` on; its model answers `you said: <text>`, but never `wait`. */
export interface PluginUnderTest {
  readonly name: string
  /** The kind of conversation that it starts. */
  readonly kind: string
  /** The group of its owner commands. */
  readonly group: string
  /** Its scopes say which person speaks, on a host that knows (0.9). */
  readonly tellsPrincipal: boolean
  make(): Promise<MadePlugin>
  /** Resolves when the model was asked to `wait`. */
  waits(): Promise<void>
}

interface Open extends AsyncDisposable {
  readonly host: OpenHost
  readonly sent: [ChannelKey, OutboundReply][]
  readonly made: MadePlugin
  say(parts?: Partial<InboundMessage>): Promise<void>
}

/** What both plugins do on any host: the traps of structural compatibility, one test for each. */
export function pluginBehaviour(host: HostUnderTest, kind: PluginUnderTest): void {
  async function open(wish: HostWish = {}, wrap = (plugin: SandboxPlugin) => plugin): Promise<Open> {
    const made = await kind.make()
    const sent: [ChannelKey, OutboundReply][] = []
    const surface: ChatSurface = {
      surface: 'fake',
      start: async () => {},
      // A host may do with its reply what it likes: arrays are its own.
      async sendReply(channel, reply) {
        const posted = structuredClone(reply)
        reply.chunks.push('changed')
        reply.files?.splice(0)
        sent.push([channel, posted])
      },
    }
    try {
      const opened = await host.open(wrap(made.plugin), { surfaces: [surface], ...wish })
      return {
        host: opened,
        sent,
        made,
        say: (parts) => opened.conversations.handle(message(parts)),
        async [Symbol.asyncDispose]() {
          await opened.stop()
          await made[Symbol.asyncDispose]()
        },
      }
    } catch (cause) {
      await made[Symbol.asyncDispose]()
      throw cause
    }
  }
  const texts = ({ sent }: Open) => sent.map(([channel, { chunks }]) => `${channel} ${chunks[0]}`)

  test(`${kind.name} PL-09 trap 11.5 a message is answered in its channel when handle resolves, and the arrays of a reply are the host’s`, async () => {
    await using it = await open()
    await it.say()
    await it.say({ text: 'again' })
    expect(texts(it)).toEqual(['fake:1 you said: hello', 'fake:1 you said: again'])
  })

  test(`${kind.name} CS-21 PL-15 trap 11.10 the scope of a call has the account that wrote and ${kind.tellsPrincipal ? 'the principalId' : 'nothing'} of the host’s speaker`, async () => {
    await using it = await open({
      resolveSpeaker: async ({ authorId, authorName }) => ({
        id: `host ${authorId}`,
        name: `host ${authorName}`,
        tier: 'owner',
        principalId: 'p-1',
      }),
    })
    await it.say()
    expect(it.made.scopes.length).toBeGreaterThan(0)
    for (const scope of it.made.scopes) {
      expect(scope).toEqual({
        channel: 'fake:1',
        speaker: { id: 'u-ann', name: 'Ann', ...(kind.tellsPrincipal && { principalId: 'p-1' }) },
      })
    }
    await using old = await open()
    await old.say()
    expect(old.made.scopes[0]).toEqual({ channel: 'fake:1', speaker: { id: 'u-ann', name: 'Ann' } })
  })

  test(`${kind.name} PL-15 trap 11.2 nobody needs a resolved speaker where the host resolves none, and everybody where it does`, async () => {
    await using old = await open()
    await old.say({ authorId: 'u-stranger' })
    expect(old.sent).toHaveLength(1)
    await using recent = await open({ resolveSpeaker: async () => undefined })
    await recent.say()
    expect(recent.sent).toEqual([])
  })

  test(`${kind.name} PL-05 PL-06 trap 11.11 what is not addressed is nobody’s, and the space changes nothing`, async () => {
    await using it = await open()
    for (const parts of [
      { channel: 'fake:2' },
      { mentionsBot: false },
      { authorIsBot: true },
      { isDirect: true },
      { integration: { id: 'w', own: true } },
    ] as const) {
      await it.say(parts)
    }
    expect(it.sent).toEqual([])
    await it.say({ space: 'guild-1' })
    expect(it.sent).toHaveLength(1)
    expect(await it.host.conversations.startFresh('fake:1')).toBe(kind.kind)
  })

  test(`${kind.name} trap 11.4 trap 11.12 stop is a plain boolean, and neither a start over nor a deletion waits for its own channel`, async () => {
    await using it = await open()
    expect(it.host.conversations.stop('fake:1')).toBe(false)
    const waits = kind.waits()
    const turn = it.say({ text: 'wait' })
    await waits
    const fresh = it.host.conversations.startFresh('fake:1')
    expect(it.host.conversations.stop('fake:1')).toBe(true)
    await turn
    expect(await fresh).toBe(kind.kind)
    expect(await it.host.conversations.deleteConversation('fake:1')).toBe('deleted')
    await it.say()
    expect(texts(it)).toEqual(['fake:1 Stopped.', 'fake:1 you said: hello'])
  })

  test(`${kind.name} PL-11 turns that nobody wrote are skipped with a reason`, async () => {
    await using it = await open()
    const turn = {
      channel: 'fake:1',
      target: 't',
      author: { id: 'a', name: 'A' },
      turnId: '1',
      text: 'x',
    } as const
    expect(await it.host.conversations.background(turn)).toMatchObject({ status: 'skipped' })
    expect(it.made.scopes).toEqual([])
  })

  test(`${kind.name} traps 11.9 and 11.14 the plugin uses the documented members of a host and no others`, async () => {
    const beyond: string[] = []
    const known = ['logger', 'env', 'queue', 'surfaces', 'services', 'apiKey']
    const only = <T extends object>(part: T, members: readonly string[], name: string): T =>
      new Proxy(part, {
        get(target, member) {
          if (typeof member === 'string' && !members.includes(member)) beyond.push(`${name}.${member}`)
          const value = Reflect.get(target, member)
          return typeof value === 'function' ? value.bind(target) : value
        },
      })
    const narrow = (context: HostContext): HostContext => {
      const { logger, env, queue, surfaces, services } = context
      return only(
        {
          logger: only(logger, ['info', 'warn', 'error'], 'logger'),
          env: only(env, ['timeZone'], 'env'),
          queue: only(queue, ['run', 'size'], 'queue'),
          surfaces: only(surfaces, ['of', 'sendReply', 'startTyping', 'showStop'], 'surfaces'),
          services: only(services, ['get', 'find', 'provide'], 'services'),
          apiKey: (provider) => context.apiKey(provider),
        },
        known,
        'context',
      )
    }
    await using it = await open({ ownerId: 'olga' }, (plugin) => ({
      ...plugin,
      setup: (context) => plugin.setup(narrow(context)),
    }))
    await it.say()
    expect([beyond, it.sent.length]).toEqual([[], 1])
  })

  test(`${kind.name} traps 11.1 and 11.13 the owner’s commands answer for themselves, and never throw into the host`, async () => {
    await using it = await open({ ownerId: 'olga' })
    const [contribution] = it.host.added()
    expect(contribution?.rootOptions).toMatchObject([{ type: 2, name: kind.group }])
    const said: string[] = []
    const command = (channelId: string | null, editReply = async (text: string) => void said.push(text)) =>
      ({
        user: { id: 'olga' },
        isChatInputCommand: () => true,
        commandName: 'roundtable',
        channelId,
        inGuild: () => channelId !== null,
        options: { getSubcommandGroup: () => kind.group, getSubcommand: () => 'on' },
        deferReply: async () => {},
        editReply,
      }) as unknown as AnyInteraction
    expect(await contribution?.module.handle(command('7'))).toBe(true)
    expect(await contribution?.module.handle(command(null))).toBe(true)
    expect(await contribution?.module.handle(command('7', () => Promise.reject(new TypeError('gone'))))).toBe(
      true,
    )
    expect(said).toEqual([expect.stringMatching(/is on/), expect.stringMatching(/channel of a server/)])
  })

  test(`${kind.name} traps 11.6 and 11.7 a key that is none is refused where it is read, and no part of a reply is present but undefined`, async () => {
    await using it = await open()
    await it.say()
    for (const [, reply] of it.sent) expect(Object.values(reply)).not.toContain(undefined)
    await it.say({ channel: 'nocolon' as ChannelKey })
    expect(it.sent).toHaveLength(1)
  })
}
