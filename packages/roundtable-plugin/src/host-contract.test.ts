import { expect, expectTypeOf, test } from 'vitest'
import { ownRoots, userOptions } from '../test/account.ts'
import { recordingLogger } from '../test/messages.ts'
import type {
  AnyInteraction,
  CommandContribution,
  CommandInteraction,
  DiscordPort,
} from './commands/command-contract.ts'
import { DISCORD, discordCommands } from './commands/discord-commands.ts'
import { createHost, type HostPlugin } from './host/index.ts'
import type {
  ChannelClaim,
  HostContext,
  InboundMessage,
  OutboundReply,
  SandboxContribution,
  SandboxPlugin,
  TurnAdmission,
} from './host-contract.ts'
import { sandbox } from './plugin.ts'
import { PRECHECKS } from './prechecks/index.ts'
import { resolvesSpeakers } from './speakers.ts'

/**
 * A host's side, written anew from its documentation and from nothing of ours, so that a member which we would come to
 * need without its being there does not compile: more members than this package needs, mutable arrays, overloads, a
 * class where a port will do, its own speaker.
 */
type TheirChannel = `${string}:${string}`
interface TheirSpeaker {
  id: string
  name: string
  tier: 'member' | 'admin' | 'owner'
  principalId: string
}
interface TheirFile {
  url: string
  name: string
  contentType?: string
  size: number
}
interface TheirMessage {
  channel: TheirChannel
  messageId: string
  authorId: string
  authorName: string
  authorIsBot: boolean
  authorRoleIds?: readonly string[]
  space?: string
  isDirect: boolean
  integration?: { id: string; own: boolean }
  mentionsBot: boolean
  repliesToBot: boolean
  text: string
  attachments: TheirFile[]
  reference?: { text: string; attachments: TheirFile[]; webhookName?: string }
  forwarded?: { text: string; source: TheirChannel; url: string }
  actor?: { provider: string; subject: string }
  speaker?: TheirSpeaker
}
interface TheirReply {
  chunks: string[]
  thinking?: string
  card?: Uint8Array
  files?: { name: string; data: Uint8Array }[]
}
interface TheirAdmission {
  kind: 'turn'
  run(): Promise<void>
  failure: string
  busy?: {
    steer?(): Promise<boolean>
    react(emoji: string): Promise<void>
    unreact(emoji: string): Promise<void>
  }
}
interface TheirClaim {
  name: string
  priority: number
  owns(channel: TheirChannel, space?: string): boolean
  admit(message: TheirMessage): TheirAdmission | { kind: 'background'; turn: object } | undefined
  background?(turn: {
    channel: TheirChannel
    target: string
    author: { id: string; name: string }
    turnId: string
    text: string
  }): Promise<{ status: 'ran' } | { status: 'failed'; error: string } | { status: 'skipped'; reason: string }>
  startFresh(channel: TheirChannel): Promise<string>
  stop?(channel: TheirChannel): boolean
  deleteConversation?(channel: TheirChannel): Promise<void>
  postsInPlace?: boolean
}
interface TheirContribution {
  channels?: readonly TheirClaim[]
  services?: {
    name: string
    start?(): void | Promise<void>
    startInBackground?(): Promise<void>
    stop?(): void | Promise<void>
    busy?(): string[]
  }[]
  surfaces?: readonly object[]
}
interface TheirLog {
  (fields: object, message?: string): void
  (message: string): void
}
interface TheirLogger {
  debug: TheirLog
  info: TheirLog
  warn: TheirLog
  error: TheirLog
  fatal: TheirLog
  child(fields: object): TheirLogger
}
/** A class with a hidden part fits a port, and nothing but itself would fit the class. */
declare class TheirQueue {
  protected readonly tails: Map<TheirChannel, Promise<void>>
  run<T>(channel: TheirChannel, task: () => Promise<T>): Promise<T>
  size(channel: TheirChannel): number
  busy(): TheirChannel[]
  onChange(listener: (channel: TheirChannel) => void): void
}
interface TheirSurfaces {
  of(channel: TheirChannel): { readonly surface: string; readonly supportsFiles?: boolean } | undefined
  sendReply(channel: TheirChannel, reply: TheirReply): Promise<void>
  startTyping(channel: TheirChannel): () => void
  showStop(channel: TheirChannel): () => void
  react(channel: TheirChannel, messageId: string, emoji: string): Promise<void>
  unreact(channel: TheirChannel, messageId: string, emoji: string): Promise<void>
  prompts(channel: TheirChannel, speaker?: TheirSpeaker): object | undefined
  interim(channel: TheirChannel): object | undefined
}
interface TheirKey<T> {
  readonly id: string
  readonly absent?: string
  readonly __service?: () => T
}
interface TheirServices {
  get<T>(key: TheirKey<T>): T
  find<T>(key: TheirKey<T>): T | undefined
  lazy<T>(key: TheirKey<T>): () => T
  provide<T>(key: TheirKey<T>, value: T): void
}
interface TheirContext {
  logger: TheirLogger
  env: { readonly locale: 'en' | 'zh-TW'; readonly timeZone: string; now(): Date }
  queue: TheirQueue
  surfaces: TheirSurfaces
  services: TheirServices
  conversations: object
  database(): () => object
  apiKey(provider: string): Promise<string | undefined>
}
interface TheirPlugin {
  name: string
  provides?: readonly TheirKey<unknown>[]
  requires?: readonly TheirKey<unknown>[]
  setup(context: TheirContext): TheirContribution | Promise<TheirContribution>
}
interface TheirInteraction {
  user: { id: string; username: string }
  isChatInputCommand(): this is TheirCommand
}
interface TheirCommand extends TheirInteraction {
  commandName: string
  channelId: string | null
  inGuild(): boolean
  options: {
    getSubcommandGroup(required?: boolean): string | null
    getSubcommand(required?: true): string
    getSubcommand(required: boolean): string | null
  }
  deferReply(options: { flags?: number }): Promise<object>
  reply(options: { content?: string; flags?: number }): Promise<object>
  editReply(content: string | object): Promise<object>
}
interface TheirDiscord {
  guard: {
    readonly root: string
    readonly refusalHint?: string
    isOwner(actor: { user: { id: string } }): boolean
    run(interaction: TheirInteraction, work: () => Promise<void>): Promise<void>
  }
  commands: {
    add(contribution: {
      module: { commands(): object[]; handle(interaction: TheirInteraction): Promise<boolean> }
      rootOptions?: readonly object[]
    }): void
  }
  threads: object
}

test('traps 11.4, 11.5, 11.7, 11.8, 11.9, 11.15: what flows between the host and this package fits both ways', () => {
  expectTypeOf<ChannelClaim>().toExtend<TheirClaim>()
  expectTypeOf<TurnAdmission>().toExtend<TheirAdmission>()
  expectTypeOf<SandboxContribution>().toExtend<TheirContribution>()
  expectTypeOf<SandboxPlugin>().toExtend<TheirPlugin>()
  expectTypeOf<TheirContext>().toExtend<HostContext>()
  expectTypeOf<TheirMessage>().toExtend<InboundMessage>()
  expectTypeOf<OutboundReply>().toExtend<TheirReply>()
  expectTypeOf<TheirDiscord>().toExtend<DiscordPort>()
  expectTypeOf<TheirInteraction>().toExtend<AnyInteraction>()
  expectTypeOf<TheirCommand>().toExtend<CommandInteraction>()
  expectTypeOf<SandboxPlugin>().toExtend<HostPlugin>()
  expectTypeOf<ReturnType<NonNullable<ChannelClaim['stop']>>>().toEqualTypeOf<boolean>()
})

test('trap 11.3: the keys of the host are the ones that it documents', () => {
  expect([DISCORD, PRECHECKS]).toEqual([{ id: 'roundtable.discord' }, { id: 'roundtable.prechecks' }])
  const asked: string[] = []
  resolvesSpeakers({ find: ({ id }) => void asked.push(id) as undefined })
  expect(asked).toEqual(['roundtable.identity'])
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

test('traps 11.3, 11.5, 11.16: the plugin has the name and the service of the reference, and contributes nothing a host would refuse', async () => {
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
  // Arrays are the host's: it adds to them.
  const busy = () => contribution.services?.[0]?.busy?.()
  expect([busy()?.push('fake:9'), busy()]).toEqual([1, []])
  expect(contribution.services?.push({ name: 'theirs' })).toBe(2)
  expect(host.services.find({ id: 'sandbox.channels' })).toBeDefined()
})
