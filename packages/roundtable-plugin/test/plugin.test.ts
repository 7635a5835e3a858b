import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { chatText, type ScriptedUpstream, scriptedUpstream, type UpstreamScript } from '@sandbox/testing'
import { expect, test } from 'vitest'
import { createHost, type Host, type HostOptions } from '../src/host/index.ts'
import type { ChannelKey, ChatSurface, OutboundReply } from '../src/host-contract.ts'
import type { SandboxOptions } from '../src/options.ts'
import { SANDBOX, sandbox } from '../src/plugin.ts'
import { ownRoots, userOptions } from './account.ts'
import { message, recordingLogger } from './messages.ts'

interface Bot extends AsyncDisposable {
  readonly host: Host
  readonly upstream: ScriptedUpstream
  readonly roots: ReturnType<typeof ownRoots>
  readonly sent: [ChannelKey, OutboundReply][]
  readonly keys: (string | undefined)[]
  readonly lines: ReturnType<typeof recordingLogger>['lines']
}

interface BotOptions {
  readonly script?: UpstreamScript
  readonly plugin?: Partial<SandboxOptions>
  readonly host?: Partial<HostOptions>
}

async function bot({ script = () => chatText('hi'), plugin, host: more }: BotOptions = {}): Promise<Bot> {
  const upstream = await scriptedUpstream(script)
  const roots = ownRoots()
  const sent: [ChannelKey, OutboundReply][] = []
  const { logger, lines } = recordingLogger()
  const surface: ChatSurface = {
    surface: 'fake',
    start: async () => {},
    sendReply: async (channel, reply) => void sent.push([channel, reply]),
  }
  const end = async () => {
    await upstream[Symbol.asyncDispose]()
    roots[Symbol.dispose]()
  }
  const host = await createHost({
    plugins: [
      sandbox({
        runRoot: roots.runRoot,
        workspaceRoot: roots.workspaceRoot,
        stateFile: roots.stateFile,
        initialChannels: ['fake:1'],
        model: 'm',
        modelUrl: `${upstream.url}/v1/chat/completions`,
        allowHttp: true,
        driver: 'process',
        ...userOptions,
        ...plugin,
      }),
    ],
    surfaces: [surface],
    apiKeys: { openai: 'sk-openai-0123456789abcdef', other: 'sk-other-0123456789abcdef' },
    logger,
    ...more,
  }).catch(async (cause) => {
    await end()
    throw cause
  })
  return {
    host,
    upstream,
    roots,
    sent,
    lines,
    get keys() {
      return upstream.seen.map(({ headers }) => headers.authorization?.replace('Bearer ', ''))
    },
    async [Symbol.asyncDispose]() {
      await host.stop()
      await end()
    },
  }
}

test('PL-01 PL-09 a message in an enabled channel is answered in it; handle resolves after the reply', async () => {
  await using own = await bot()
  await own.host.start()
  await own.host.conversations.handle(message())
  expect(own.sent).toEqual([['fake:1', { chunks: ['hi'] }]])
  const { channels, runtime } = own.host.services.get({ ...SANDBOX })
  expect([channels.list(), runtime.busy(), runtime.driver.isolation]).toEqual([['fake:1'], [], 'none'])
})

test('PL-05 PL-06 what is not addressed, or not enabled, reaches nobody', async () => {
  await using own = await bot()
  for (const parts of [
    { mentionsBot: false },
    { channel: 'fake:2' },
    { authorIsBot: true },
    { isDirect: true },
  ] as const) {
    await own.host.conversations.handle(message(parts))
  }
  expect([own.sent, own.upstream.seen]).toEqual([[], []])
})

test('CS-11 without a getter the host’s login pays, read at each call; provider openai by default', async () => {
  const apiKeys: Record<string, string> = { openai: 'sk-first-0123456789abcdef' }
  await using own = await bot({ host: { apiKeys } })
  await own.host.conversations.handle(message())
  apiKeys.openai = 'sk-second-0123456789abcdef'
  await own.host.conversations.handle(message())
  expect(own.keys).toEqual(['sk-first-0123456789abcdef', 'sk-second-0123456789abcdef'])
  await using other = await bot({ plugin: { provider: 'other' } })
  await other.host.conversations.handle(message())
  expect(other.keys).toEqual(['sk-other-0123456789abcdef'])
})

test('[scope:no-fallback] CS-11 CS-09 with a getter the host’s login is never read, not even when the getter has no key', async () => {
  await using own = await bot({
    plugin: { apiKey: ({ speaker }) => (speaker.id === 'u-ann' ? 'sk-ann-0123456789abcdef' : undefined) },
  })
  await own.host.conversations.handle(message())
  await own.host.conversations.handle(message({ authorId: 'u-bob', authorName: 'Ann' }))
  expect(own.keys).toEqual(['sk-ann-0123456789abcdef'])
  expect(own.sent.map(([, { chunks }]) => chunks[0])).toEqual([
    'hi',
    expect.stringContaining('No key is set for you'),
  ])
})

test('operators’ functions that only look on may be async, and what they reject with ends neither turn nor process', async () => {
  const unhandled: unknown[] = []
  const note = (reason: unknown) => unhandled.push(reason)
  process.on('unhandledRejection', note)
  const rejects = (what: string) => async () => {
    throw new TypeError(what)
  }
  const settle = rejects('settle')
  await using own = await bot({
    plugin: {
      apiKey: ({ speaker }) => (speaker.id === 'u-ann' ? 'sk-ann-0123456789abcdef' : undefined),
      onTurn: rejects('onTurn'),
      onCall: rejects('onCall'),
      onReceipt: rejects('onReceipt'),
      credit: { reserve: () => ({ granted: true, settle }) },
      words: rejects('words') as never,
    },
  })
  await own.host.conversations.handle(message())
  await own.host.conversations.handle(message({ authorId: 'u-bob' }))
  await own.host.stop()
  process.off('unhandledRejection', note)
  expect(unhandled).toEqual([])
  expect(own.sent.map(([, { chunks }]) => chunks[0])).toEqual(['hi', expect.stringMatching(/^No key/)])
})

test('PL-02 a state file inside a root is refused, and the run root is given back', async () => {
  using roots = ownRoots()
  const options = {
    stateFile: join(roots.runRoot, 'channels.json'),
    runRoot: roots.runRoot,
    workspaceRoot: roots.workspaceRoot,
  }
  await expect(bot({ plugin: options })).rejects.toThrow(/inside the run root or the workspace root/)
  await expect(bot({ plugin: { ...options, stateFile: 'channels.json' } })).rejects.toThrow(/is not absolute/)
})

test('PL-03 the channels are kept in the state file', async () => {
  await using own = await bot()
  expect(JSON.parse(readFileSync(own.roots.stateFile, 'utf8'))).toEqual(['fake:1'])
})

test('PL-04 the time zone of a turn is the host’s', async () => {
  await using own = await bot({ host: { env: { timeZone: 'Pacific/Kiritimati' } } })
  await own.host.conversations.handle(message())
  expect(own.upstream.seen[0]?.body).toContain('GMT+1400')
})

test('PL-07 KH-05 messages of a channel are answered in order, and off waits for those before it', async () => {
  let asked = 0
  await using own = await bot({ script: () => chatText(`answer ${++asked}`) })
  const { channels } = own.host.services.get(SANDBOX)
  const first = own.host.conversations.handle(message())
  const second = own.host.conversations.handle(message({ authorId: 'u-bob' }))
  const off = own.host.queue.run('fake:1', async () => void channels.disable('fake:1'))
  const third = own.host.conversations.handle(message())
  await Promise.all([first, second, off, third])
  expect(own.sent.map(([, { chunks }]) => chunks[0])).toEqual(['answer 1', 'answer 2'])
})

test('RL-14 PL-11 stop goes at once to the running turn, start over waits for it', async () => {
  let seen = () => {}
  const asked = new Promise<void>((done) => (seen = done))
  await using own = await bot({
    script: () => {
      seen()
      return new Promise(() => {})
    },
  })
  const turn = own.host.conversations.handle(message())
  const fresh = own.host.conversations.startFresh('fake:1')
  await asked
  expect(own.host.conversations.stop('fake:1')).toBe(true)
  await turn
  expect(own.sent).toEqual([['fake:1', { chunks: ['Stopped.'] }]])
  expect(await fresh).toBe('sandbox')
})

test('PL-14 stopping the host stops the turn, and leaves no worker, directory or lock', async () => {
  let seen = () => {}
  const asked = new Promise<void>((done) => (seen = done))
  await using own = await bot({
    script: () => {
      seen()
      return new Promise(() => {})
    },
  })
  await own.host.start()
  const turn = own.host.conversations.handle(message())
  await asked
  await own.host.stop()
  await turn
  expect(readdirSync(own.roots.runRoot).filter((name) => !['install-id', 'process'].includes(name))).toEqual(
    [],
  )
})

test('PL-14 a stop that drains waits for a turn that is no message: the channel is reported as busy', async () => {
  const asked = Promise.withResolvers<void>()
  const answer = Promise.withResolvers<object>()
  await using own = await bot({
    script: () => {
      asked.resolve()
      return answer.promise
    },
  })
  const turn = own.host.services.get(SANDBOX).runtime.runTurn('fake:1', { id: 'u-ann', name: 'Ann' }, 'hello')
  await asked.promise
  const stopped = own.host.stop({ drainMs: 60_000 })
  answer.resolve(chatText('hi'))
  expect(await turn).toMatchObject({ ok: true, text: 'hi' })
  await stopped
})

test('PL-12 a worker waits for each channel that is on when the host starts, and for one that is turned on, until it is turned off', async () => {
  await using own = await bot({
    plugin: { initialChannels: ['fake:1', 'fake:2'] },
    host: { discord: { root: 'bot' }, ownerId: 'olga' },
  })
  await own.host.start()
  const { runtime } = own.host.services.get(SANDBOX)
  const warmed = (channels: ChannelKey[]) =>
    expect.poll(() => runtime.warmed().sort(), { timeout: 20_000, interval: 5 }).toEqual(channels)
  await warmed(['fake:1', 'fake:2'])
  const owner = (subcommand: string) => {
    const interaction = {
      user: { id: 'olga' },
      isChatInputCommand: () => true,
      commandName: 'bot',
      channelId: '7',
      inGuild: () => true,
      options: { getSubcommandGroup: () => 'sandbox', getSubcommand: () => subcommand },
      deferReply: async () => {},
      editReply: async () => {},
    }
    return own.host.commands.handle(interaction)
  }
  await owner('on')
  await warmed(['discord:7', 'fake:1', 'fake:2'])
  await owner('off')
  await warmed(['fake:1', 'fake:2'])
})

test('PL-01 PL-12 another plugin that turns a channel on or off has its worker started and removed too', async () => {
  await using own = await bot({ plugin: { initialChannels: [] } })
  await own.host.start()
  const { channels, runtime } = own.host.services.get(SANDBOX)
  const warmed = (expected: ChannelKey[]) =>
    expect.poll(() => runtime.warmed(), { timeout: 20_000, interval: 5 }).toEqual(expected)
  channels.enable('fake:3')
  await warmed(['fake:3'])
  channels.disable('fake:3')
  await warmed([])
  expect(() => channels.enable(`fake:${'x'.repeat(600)}`)).toThrow(/is not a channel key/)
  expect(channels.list()).toEqual([])
})

test('PL-12 a host with Discord gets the owner commands; one without is no obstacle', async () => {
  await using own = await bot({ host: { discord: { root: 'bot' }, ownerId: 'olga' } })
  expect(own.host.commands.added()).toHaveLength(1)
  expect(own.host.commands.added()[0]?.rootOptions?.[0]).toMatchObject({ type: 2, name: 'sandbox' })
  const said: string[] = []
  const interaction = {
    user: { id: 'olga' },
    isChatInputCommand: () => true,
    commandName: 'bot',
    channelId: '7',
    inGuild: () => true,
    options: { getSubcommandGroup: () => 'sandbox', getSubcommand: () => 'on' },
    deferReply: async () => {},
    editReply: async (content: string) => void said.push(content),
  }
  expect(await own.host.commands.handle(interaction)).toBe(true)
  expect(said[0]).toMatch(/NO sandbox/)
  expect(own.host.services.get(SANDBOX).channels.has('discord:7')).toBe(true)
})

test('PL-15 trap 11.2: on a host that says who speaks, only resolved speakers are answered', async () => {
  await using own = await bot({
    host: {
      resolveSpeaker: async ({ authorId, authorName }) =>
        authorId === 'u-ann'
          ? { id: authorId, name: authorName, tier: 'member', principalId: 'p-1' }
          : undefined,
    },
  })
  await own.host.conversations.handle(message({ authorId: 'u-stranger' }))
  await own.host.conversations.handle(message())
  expect(own.sent).toHaveLength(1)
})

test('a start that fails stops the host, with the reason', async () => {
  await using own = await bot({
    plugin: { driver: 'docker', image: 'sandbox-worker:none', engineSocket: '/tmp/no-such-engine.sock' },
  })
  await expect(own.host.start()).rejects.toThrow(/no-such-engine\.sock/)
  expect(existsSync(own.roots.stateFile)).toBe(true)
})

test('[erase:nothing-left] deleting the conversation through the host erases it, and says busy while a turn runs', async () => {
  const asked = Promise.withResolvers<void>()
  const answer = Promise.withResolvers<object>()
  await using own = await bot({
    script: ({ body }) => {
      if (!body.includes('wait')) return chatText('fresh')
      asked.resolve()
      return answer.promise
    },
  })
  const turn = own.host.conversations.handle(message({ text: 'wait' }))
  await asked.promise
  expect(await own.host.conversations.deleteConversation('fake:1')).toBe('busy')
  answer.resolve(chatText('late'))
  await turn
  expect(await own.host.conversations.deleteConversation('fake:1')).toBe('deleted')
  await own.host.conversations.handle(message({ text: 'hello' }))
  expect(own.upstream.seen.at(-1)?.body).not.toContain('wait')
  expect(own.sent.map(([, { chunks }]) => chunks[0])).toEqual(['late', 'fresh'])
})

/** What the owner is told by a command in a Discord channel. */
async function told(host: Host, group: string, subcommand: string): Promise<string> {
  const said: string[] = []
  const interaction = {
    user: { id: 'olga' },
    isChatInputCommand: () => true,
    commandName: 'roundtable',
    channelId: '7',
    inGuild: () => true,
    options: { getSubcommandGroup: () => group, getSubcommand: () => subcommand },
    deferReply: async () => {},
    editReply: async (content: string) => void said.push(content),
  }
  await host.commands.handle(interaction)
  return said.join()
}

test('W-78 status answers while a turn runs: mode, worker, last turn, and who pays for the asker, never a key', async () => {
  const asked = Promise.withResolvers<void>()
  const answer = Promise.withResolvers<object>()
  const scopes: unknown[] = []
  await using own = await bot({
    script: ({ body }) => {
      if (!body.includes('wait')) return chatText('hi')
      asked.resolve()
      return answer.promise
    },
    plugin: {
      initialChannels: ['discord:7'],
      apiKey: () => 'sk-ann-0123456789abcdef',
      explain: (scope) => {
        scopes.push(scope)
        return { rule: 'channel discord:7', fingerprint: 'f00dfeed' }
      },
    },
    host: {
      discord: {},
      ownerId: 'olga',
      surfaces: [{ surface: 'discord', start: async () => {}, sendReply: async () => {} }],
    },
  })
  const before = await told(own.host, 'sandbox', 'status')
  expect(before).toMatch(/Mode: sealed; .*worker.* No turn since the bot started\./)
  await own.host.conversations.handle(message({ channel: 'discord:7' }))
  const turn = own.host.conversations.handle(message({ channel: 'discord:7', text: 'wait' }))
  await asked.promise
  const status = await told(own.host, 'sandbox', 'status')
  expect(status).toMatch(/a turn is running, 0 waiting\. Mode: sealed; a worker is at work\./)
  expect(status).toMatch(
    /Last turn: answered for u-ann in [\d.]+ s, [\d.]+ s ago, paid by key [0-9a-f]{8,}\./,
  )
  expect(status).toContain('Who pays for you here: key f00dfeed, by the rule channel discord:7.')
  expect(status).not.toContain('sk-ann')
  expect(scopes.at(-1)).toEqual({ channel: 'discord:7', speaker: { id: 'olga', name: '' } })
  expect(await told(own.host, 'sandbox', 'revoke')).toMatch(/^The turn that was running is ended/)
  answer.resolve(chatText('late'))
  await turn
  expect(await told(own.host, 'sandbox', 'status')).toMatch(
    /not answered \(credential\) .*Spending is stopped/,
  )
  expect(await told(own.host, 'sandbox', 'restore')).toMatch(/allowed again/)
})
