import { expect, test } from 'vitest'
import { recordingLogger } from '../../test/messages.ts'
import { ChannelQueue } from '../host/channel-queue.ts'
import type { ChannelKey } from '../host-contract.ts'
import type { AnyInteraction, CommandGuard } from './command-contract.ts'
import { discordCommands } from './discord-commands.ts'
import { sandboxCommands } from './sandbox-commands.ts'

function parts() {
  const on = new Set<ChannelKey>()
  const busy: ChannelKey[] = []
  const queue = new ChannelQueue()
  const revoked = new Set<ChannelKey>()
  const channels = {
    has: (channel: ChannelKey) => on.has(channel),
    enable: (channel: ChannelKey) => !on.has(channel) && on.add(channel).size > 0,
    disable: (channel: ChannelKey) => on.delete(channel),
  }
  const runtime = {
    busy: () => busy,
    revoke({ channel }: { readonly channel: ChannelKey }) {
      revoked.add(channel)
      return busy.filter((one) => one === channel)
    },
    restore: ({ channel }: { readonly channel: ChannelKey }) => revoked.delete(channel),
  }
  return {
    on,
    busy,
    revoked,
    queue,
    channels,
    runtime,
    commands: sandboxCommands({ channels, runtime, queue }),
  }
}

test('PL-12 on, off and status say what they did', async () => {
  const { commands, on } = parts()
  expect(commands.status('a:1')).toMatch(/is off/)
  expect(await commands.on('a:1')).toMatch(/is on: .* sealed workers/)
  expect([...on]).toEqual(['a:1'])
  expect(await commands.on('a:1')).toMatch(/on already/)
  expect(await commands.off('a:1')).toMatch(/is off .* memory is kept/)
  expect(await commands.off('a:1')).toMatch(/off already/)
})

test('PL-12 KH-05 on and off wait for the turns that are queued; W-78 status does not', async () => {
  const { commands, on, queue, busy } = parts()
  await commands.on('a:1')
  let finish = () => {}
  const turn = queue.run('a:1', () => new Promise<void>((done) => (finish = done)))
  busy.push('a:1')
  const off = commands.off('a:1')
  await Promise.resolve()
  expect(on.has('a:1')).toBe(true)
  expect(commands.status('a:1')).toMatch(/a turn is running, 1 waiting/)
  finish()
  await turn
  await off
  expect(on.has('a:1')).toBe(false)
})

test('revoke and restore do not wait for the turns that are queued', async () => {
  const { commands, queue, busy } = parts()
  void queue.run('a:1', () => new Promise<void>(() => {}))
  expect(commands.restore('a:1')).toMatch(/was not stopped/)
  expect(commands.revoke('a:1')).toMatch(/^Nobody spends/)
  busy.push('a:1')
  expect(commands.revoke('a:1')).toMatch(/^The turn that was running is ended; nobody spends/)
  expect(commands.restore('a:1')).toMatch(/allowed again/)
})

test('[process:says-so] on and status say when workers are no sandbox', async () => {
  const { channels, queue, runtime } = parts()
  const commands = sandboxCommands({ channels, runtime, queue, unsafe: true })
  expect(await commands.on('a:1')).toMatch(/NO sandbox/)
  expect(commands.status('a:1')).toMatch(/NO sandbox/)
})

function discord(guard: Partial<CommandGuard> = {}) {
  const made = parts()
  const { logger, lines } = recordingLogger()
  const contribution = discordCommands({
    guard: { root: 'roundtable', isOwner: ({ user }) => user.id === 'owner', ...guard },
    commands: made.commands,
    logger,
    scrub: (text) => text,
  })
  return { ...made, contribution, lines }
}

function interaction(fields: Record<string, unknown> = {}) {
  const calls: unknown[] = []
  const base = {
    user: { id: 'owner' },
    isChatInputCommand: () => true,
    commandName: 'roundtable',
    channelId: '42',
    inGuild: () => true,
    options: { getSubcommandGroup: () => 'sandbox', getSubcommand: () => 'on' },
    deferReply: async (options: unknown) => void calls.push(['defer', options]),
    reply: async (options: unknown) => void calls.push(['reply', options]),
    editReply: async (content: string) => void calls.push(['edit', content]),
  }
  return { interaction: { ...base, ...fields } as unknown as AnyInteraction, calls }
}

test('PL-12 the group has on, off, status, revoke and restore, with literal option types', () => {
  const [group] = discord().contribution.rootOptions ?? []
  expect(group).toMatchObject({
    type: 2,
    name: 'sandbox',
    options: [
      { type: 1, name: 'on' },
      { type: 1, name: 'off' },
      { type: 1, name: 'status' },
      { type: 1, name: 'revoke' },
      { type: 1, name: 'restore' },
    ],
  })
  expect(discord().contribution.module.commands()).toEqual([])
})

test('PL-12 the owner is answered, only to themselves', async () => {
  const { contribution, on } = discord()
  const { interaction: command, calls } = interaction()
  expect(await contribution.module.handle(command)).toBe(true)
  expect(calls).toEqual([
    ['defer', { flags: 64 }],
    ['edit', expect.stringMatching(/is on/)],
  ])
  expect([...on]).toEqual(['discord:42'])
})

test('PL-12 anybody else is refused before anything else happens', async () => {
  const { contribution, on } = discord({ refusalHint: 'Ask Olga.' })
  const { interaction: command, calls } = interaction({ user: { id: 'guest' }, inGuild: () => false })
  expect(await contribution.module.handle(command)).toBe(true)
  expect(calls).toEqual([['reply', { content: 'Ask Olga.', flags: 64 }]])
  expect(on.size).toBe(0)
})

test('a guard of 0.9 is asked by allows', async () => {
  const { contribution } = discord({ allows: async ({ user }) => user.id === 'second', isOwner: () => false })
  const { interaction: command, calls } = interaction({ user: { id: 'second' } })
  await contribution.module.handle(command)
  expect(calls).toHaveLength(2)
})

test('PL-12 revoke is done at once, also when the chat does not take its acknowledgement', async () => {
  const { contribution, revoked, lines } = discord()
  const { interaction: command } = interaction({
    options: { getSubcommandGroup: () => 'sandbox', getSubcommand: () => 'revoke' },
    deferReply: () => Promise.reject(new TypeError('Unknown interaction')),
  })
  expect(await contribution.module.handle(command)).toBe(true)
  expect([[...revoked], lines.length]).toEqual([['discord:42'], 1])
})

test('PL-12 outside a server channel the command says so', async () => {
  const { contribution, on } = discord()
  for (const fields of [{ inGuild: () => false }, { channelId: null }]) {
    const { interaction: command, calls } = interaction(fields)
    await contribution.module.handle(command)
    expect(calls.at(-1)).toEqual(['edit', 'Use this command in a channel of a server.'])
  }
  expect(on.size).toBe(0)
})

test('what is not ours is left to others, untouched', async () => {
  const { contribution } = discord()
  const foreign = [
    { isChatInputCommand: () => false },
    { commandName: 'other' },
    { options: { getSubcommandGroup: () => null, getSubcommand: () => 'on' } },
    { options: { getSubcommandGroup: () => 'sandbox', getSubcommand: () => 'toString' } },
  ]
  for (const fields of foreign) {
    const { interaction: command, calls } = interaction(fields)
    expect(await contribution.module.handle(command)).toBe(false)
    expect(calls).toEqual([])
  }
})

test('trap 11.1: a failure is answered by us and never thrown into the host, which knows its errors by class', async () => {
  const { contribution, channels, lines } = discord()
  channels.enable = () => {
    throw new TypeError('disk full')
  }
  const { interaction: command, calls } = interaction()
  await expect(contribution.module.handle(command)).resolves.toBe(true)
  expect(calls.at(-1)).toEqual(['edit', 'This did not work. The log of the bot says why.'])
  expect(lines).toEqual([
    { level: 'error', fields: { cause: 'disk full' }, message: 'a sandbox command failed' },
  ])
  const gone = interaction({ deferReply: () => Promise.reject(new TypeError('expired')) })
  await expect(contribution.module.handle(gone.interaction)).resolves.toBe(true)
})

test('PL-12 a command that waits when the host stops changes nothing, says so, and is no error', async () => {
  const { contribution, queue, on, lines } = discord()
  const finish = Promise.withResolvers<void>()
  const begun = Promise.withResolvers<void>()
  const turn = queue.run('discord:42', () => {
    begun.resolve()
    return finish.promise
  })
  await begun.promise
  const { interaction: command, calls } = interaction()
  const handled = contribution.module.handle(command)
  queue.close()
  finish.resolve()
  await Promise.all([turn, handled])
  expect(calls.at(-1)).toEqual(['edit', expect.stringMatching(/^The bot is stopping/)])
  expect([[...on], lines]).toEqual([[], []])
})
