import { expect, expectTypeOf, test } from 'vitest'
import { ownRoots, userOptions } from '../test/account.ts'
import { recordingLogger } from '../test/messages.ts'
import type { AnyInteraction, CommandContribution, DiscordPort } from './commands/command-contract.ts'
import { discordCommands } from './commands/discord-commands.ts'
import { createHost, type HostPlugin } from './host/index.ts'
import type {
  ChannelClaim,
  ChannelKey,
  HostContext,
  InboundMessage,
  OutboundReply,
  SandboxContribution,
  SandboxPlugin,
  TurnAdmission,
} from './host-contract.ts'
import { sandbox } from './plugin.ts'

/**
 * A host's side, put together from its documentation: more members than this package needs, mutable arrays, its
 * own speaker. What flows across in both directions must compile.
 */
interface TheirSpeaker {
  id: string
  name: string
  tier: 'member' | 'admin' | 'owner'
}
interface TheirMessage extends Omit<InboundMessage, 'speaker'> {
  speaker?: TheirSpeaker & { principalId: string }
  actor?: { provider: string; subject: string }
}
interface TheirReply {
  chunks: string[]
  thinking?: string
  card?: Uint8Array
  files?: { name: string; data: Uint8Array }[]
}
interface TheirClaim {
  name: string
  priority: number
  owns(channel: ChannelKey, space?: string): boolean
  admit(message: TheirMessage): TurnAdmission | { kind: 'background'; turn: object } | undefined
  background?(turn: {
    channel: ChannelKey
    target: string
    author: { id: string; name: string }
    turnId: string
    text: string
  }): Promise<{ status: 'ran' } | { status: 'failed'; error: string } | { status: 'skipped'; reason: string }>
  startFresh(channel: ChannelKey): Promise<string>
  stop?(channel: ChannelKey): boolean
  deleteConversation?(channel: ChannelKey): Promise<void>
  postsInPlace?: boolean
}
interface TheirContribution {
  channels?: readonly TheirClaim[]
  services?: {
    name: string
    start?(): void | Promise<void>
    stop?(): void | Promise<void>
    busy?(): string[]
  }[]
  surfaces?: readonly object[]
}
interface TheirContext extends Omit<HostContext, 'logger'> {
  logger: HostContext['logger'] & {
    child(fields: object): unknown
    debug(fields: object, text?: string): void
  }
  conversations: object
  database(): () => object
}
interface TheirGuard {
  readonly root: string
  readonly refusalHint?: string
  isOwner(actor: { user: { id: string } }): boolean
  run(interaction: object, work: () => Promise<void>): Promise<void>
}

test('traps 11.4, 11.5, 11.7, 11.8, 11.9: what flows between the host and this package fits both ways', () => {
  expectTypeOf<ChannelClaim>().toExtend<TheirClaim>()
  expectTypeOf<SandboxContribution>().toExtend<TheirContribution>()
  expectTypeOf<TheirContext>().toExtend<HostContext>()
  expectTypeOf<TheirMessage>().toExtend<InboundMessage>()
  expectTypeOf<OutboundReply>().toExtend<TheirReply>()
  expectTypeOf<{
    guard: TheirGuard
    commands: DiscordPort['commands']
    threads: object
  }>().toExtend<DiscordPort>()
  expectTypeOf<SandboxPlugin>().toExtend<HostPlugin>()
  expectTypeOf<ReturnType<NonNullable<ChannelClaim['stop']>>>().toEqualTypeOf<boolean>()
  expectTypeOf<AnyInteraction>().toExtend<{ user: { id: string } }>()
})

test('trap 11.13: option types are the literal numbers of the chat service', () => {
  const guard = { root: 'r', isOwner: () => true }
  const commands = {
    on: async () => '',
    off: async () => '',
    status: () => '',
    revoke: () => '',
    restore: () => '',
  }
  const made: CommandContribution = discordCommands({
    guard,
    commands,
    logger: recordingLogger().logger,
    scrub: (text) => text,
  })
  const [group] = made.rootOptions ?? []
  expect(group?.type).toBe(2)
  expect(group?.type === 2 && group.options.every(({ type }) => type === 1)).toBe(true)
})

test('traps 11.3, 11.16: the plugin has the name and the service of the reference, and contributes nothing a host would refuse', async () => {
  using roots = ownRoots()
  const plugin = sandbox({
    runRoot: roots.runRoot,
    workspaceRoot: roots.workspaceRoot,
    stateFile: roots.stateFile,
    model: 'm',
    modelUrl: 'https://models.example/v1/chat/completions',
    driver: 'process',
    ...userOptions,
  })
  expect([plugin.name, plugin.provides]).toEqual(['sandbox', [{ id: 'sandbox.channels' }]])
  let contribution: SandboxContribution = {}
  const spied: SandboxPlugin = {
    ...plugin,
    setup: async (context) => {
      contribution = await plugin.setup(context)
      return contribution
    },
  }
  await using host = await createHost({ plugins: [spied] })
  expect(Object.keys(contribution).sort()).toEqual(['channels', 'services'])
  expect(contribution.channels?.map(({ name }) => name)).toEqual(['sandbox'])
  expect(contribution.services?.map(({ name }) => name)).toEqual(['sandbox-runtime'])
  expect(contribution.services?.[0]?.busy?.()).toEqual([])
  expect(host.services.find({ id: 'sandbox.channels' })).toBeDefined()
})
