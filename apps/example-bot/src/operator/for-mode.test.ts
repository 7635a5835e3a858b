import type {
  AnyInteraction,
  ChannelKey,
  CommandContribution,
  DiscordPort,
  HostContext,
  SandboxPlugin,
} from '@sandbox/roundtable-plugin'
import { describe, expect, test } from 'vitest'
import { forMode } from './for-mode.ts'
import { Routes } from './routes.ts'

const keys = {
  explain: () => ({ rule: undefined, source: undefined, fingerprint: undefined }),
  getter: () => undefined,
}
const routes = new Routes(
  { providers: {}, channels: { 'room:a': { mode: 'sealed' }, 'discord:*': { mode: 'pi' } } },
  keys,
)

async function setUp(mode: 'sealed' | 'pi') {
  const added: CommandContribution[] = []
  const handled: string[] = []
  const port: DiscordPort = {
    guard: { root: 'roundtable', isOwner: ({ user }) => user.id === 'owner' },
    commands: { add: (contribution) => void added.push(contribution) },
  }
  const claim = {
    name: 'c',
    priority: 1,
    owns: () => true,
    admit: () => undefined,
    startFresh: async () => '',
  }
  const plugin: SandboxPlugin = {
    name: 'p',
    setup: ({ services }) => {
      const module = {
        commands: () => [] as never[],
        handle: async () => handled.push('plugin') > 0,
      }
      services.find<DiscordPort>({ id: 'roundtable.discord' })?.commands.add({ module })
      return { channels: [claim] }
    },
  }
  const context = {
    services: { find: () => port, get: () => port, provide: () => {} },
  } as unknown as HostContext
  const made = await forMode(mode, routes, plugin).setup(context)
  const owns = (channel: ChannelKey) => made.channels?.[0]?.owns(channel)
  const interact = async (group: string, user: string): Promise<string | undefined> => {
    let told: string | undefined
    const interaction = {
      user: { id: user },
      isChatInputCommand: () => true,
      commandName: 'roundtable',
      channelId: '42',
      inGuild: () => true,
      options: { getSubcommandGroup: () => group, getSubcommand: () => 'on' },
      reply: async ({ content }: { content: string }) => {
        told = content
      },
    } as unknown as AnyInteraction
    handled.length = 0
    await added[0]?.module.handle(interaction)
    return told ?? handled[0]
  }
  return { owns, interact }
}

describe('a plugin in one mode', () => {
  test('answers the channels of its mode, and no other', async () => {
    const [sealed, pi] = [await setUp('sealed'), await setUp('pi')]
    const owned = (['room:a', 'discord:42', 'room:x'] as const).map((key) => [sealed.owns(key), pi.owns(key)])
    expect(owned).toEqual([
      [true, false],
      [false, true],
      [false, false],
    ])
  })

  test('tells the owner which command is the right one; others are left to the plugin, which refuses them', async () => {
    const [sealed, pi] = [await setUp('sealed'), await setUp('pi')]
    expect(await sealed.interact('sandbox', 'owner')).toBe('This channel is in pi mode: use /roundtable pi.')
    expect(await sealed.interact('sandbox', 'somebody')).toBe('plugin')
    expect(await sealed.interact('pi', 'owner')).toBe('plugin')
    expect(await pi.interact('pi', 'owner')).toBe('plugin')
  })
})
