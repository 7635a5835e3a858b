import { join } from 'node:path'
import { scriptedUpstream } from '@sandbox/testing'
import { expect, test } from 'vitest'
import { createHost, type HostOptions } from '../src/host/index.ts'
import type { ChannelKey, ChatSurface, OutboundReply } from '../src/host-contract.ts'
import { PI_SANDBOX, type PiSandboxOptions, piSandbox } from '../src/pi-plugin.ts'
import { ownDir, ownRoots, userOptions } from './account.ts'
import { message, recordingLogger } from './messages.ts'
import { messagesService } from './messages-service.ts'
import { type GuestScript, wireDriver } from './pi-guest.ts'
import { until } from './pi-kit.ts'

/** A host with the plugin, over guests that speak the real wire. */
async function bot({
  script,
  plugin,
  host: more,
}: {
  script?: GuestScript
  plugin?: Partial<PiSandboxOptions>
  host?: Partial<HostOptions>
} = {}) {
  const roots = ownRoots()
  const party = ownDir()
  const driver = wireDriver(script)
  const sent: [ChannelKey, OutboundReply][] = []
  const { logger, lines } = recordingLogger()
  const surface: ChatSurface = {
    surface: 'fake',
    supportsFiles: true,
    start: async () => {},
    sendReply: async (channel, reply) => void sent.push([channel, reply]),
  }
  const end = () => {
    roots[Symbol.dispose]()
    party[Symbol.dispose]()
  }
  const host = await createHost({
    plugins: [
      piSandbox({
        partyDir: join(party.path, 'p'),
        stateFile: roots.stateFile,
        initialChannels: ['fake:1'],
        model: 'm',
        profiles: { default: {}, other: {} },
        driver: () => driver,
        ...userOptions,
        ...plugin,
      }),
    ],
    surfaces: [surface],
    apiKeys: { anthropic: 'sk-ant-oat01-0123456789abcdef' },
    logger,
    discord: {},
    ownerId: 'u-olga',
    ...more,
  }).catch((cause) => {
    end()
    throw cause
  })
  return {
    host,
    driver,
    sent,
    lines,
    async [Symbol.asyncDispose]() {
      await host.stop()
      end()
    },
  }
}

test('PL-01 a message in an enabled channel is answered by its Pi worker, with its files', async () => {
  const files = [{ name: 'a.txt', data: 'AQ==' }]
  await using it = await bot({
    script: ({ text, speaker, profile }) => ({ ok: true, text: `${speaker.id} ${profile}: ${text}`, files }),
  })
  await it.host.start()
  await it.host.conversations.handle(message())
  expect(it.sent).toEqual([
    ['fake:1', { chunks: ['u-ann default: hello'], files: [{ name: 'a.txt', data: new Uint8Array([1]) }] }],
  ])
  expect(it.host.services.get(PI_SANDBOX).runtime.status('fake:1')).toMatchObject({
    state: 'ready',
    profile: 'default',
  })
  await it.host.conversations.handle(message({ channel: 'fake:2' }))
  expect(it.sent).toHaveLength(1)
})

test('two speakers of one channel use one worker, each turn in the name of its own', async () => {
  await using it = await bot({ script: ({ speaker }) => ({ ok: true, text: speaker.id, files: [] }) })
  await it.host.start()
  for (const authorId of ['u-ann', 'u-bob', 'u-ann'])
    await it.host.conversations.handle(message({ authorId }))
  expect(it.sent.map(([, { chunks }]) => chunks[0])).toEqual(['u-ann', 'u-bob', 'u-ann'])
  expect(it.driver.guests).toHaveLength(1)
})

test('the operator chooses the profile of a channel', async () => {
  await using it = await bot({
    script: ({ profile }) => ({ ok: true, text: profile, files: [] }),
    plugin: { profileOf: (channel) => (channel === 'fake:1' ? 'other' : 'default') },
  })
  await it.host.start()
  await it.host.conversations.handle(message())
  expect(it.sent[0]?.[1].chunks).toEqual(['other'])
})

test('PL-10 an operator’s profileOf that fails is told to the log, and not to the chat as silence', async () => {
  await using it = await bot({
    plugin: {
      profileOf: () => {
        throw new TypeError('no profile for sk-ant-oat01-0123456789abcdef')
      },
    },
  })
  await it.host.start()
  await it.host.conversations.handle(message())
  expect(it.sent.map(([channel, { chunks }]) => [channel, chunks.length])).toEqual([['fake:1', 1]])
  expect(it.lines.filter(({ level }) => level === 'error')).toMatchObject([
    { message: 'profileOf failed', fields: { channel: 'fake:1' } },
  ])
  expect(JSON.stringify([it.lines, it.sent])).not.toContain('0123456789abcdef')
})

test('stop ends the running turn at once, and the next message is answered', async () => {
  const reached = Promise.withResolvers<void>()
  await using it = await bot({
    script: ({ text }) => {
      if (text !== 'wait') return { ok: true, text, files: [] }
      reached.resolve()
      return new Promise(() => {})
    },
  })
  await it.host.start()
  const waiting = it.host.conversations.handle(message({ text: 'wait' }))
  await reached.promise
  expect(it.host.conversations.stop('fake:1')).toBe(true)
  await waiting
  await it.host.conversations.handle(message({ text: 'again' }))
  expect(it.sent.map(([, { chunks }]) => chunks.length)).toEqual([1, 1])
  expect(it.sent[1]?.[1].chunks).toEqual(['again'])
})

test('PL-11 start over is queued behind the turns of the channel, and says who did it', async () => {
  await using it = await bot({ script: ({ text }) => ({ ok: true, text, files: [] }) })
  await it.host.start()
  const turn = it.host.conversations.handle(message())
  expect(await it.host.conversations.startFresh('fake:1')).toBe('pi-sandbox')
  await turn
  expect(it.sent).toHaveLength(1)
  await it.host.conversations.handle(message({ text: 'new' }))
  expect(it.sent[1]?.[1].chunks).toEqual(['new'])
})

test('PL-02 the list of channels does not lie where a worker can write', async () => {
  const party = ownDir()
  const partyDir = join(party.path, 'p')
  await expect(
    bot({ plugin: { partyDir, stateFile: join(partyDir, 'channels.json') } }),
  ).rejects.toMatchObject({ code: 'state_refused' })
  party[Symbol.dispose]()
})

test.each<[string, object]>([
  ['modle', { modle: 'x' }],
  ['admission', { admission: { perSpeakerMinute: 0 } }],
])('RL-01 the option %s is refused in setup', async (name, plugin) => {
  await expect(bot({ plugin })).rejects.toThrow(new RegExp(name))
})

test('[erase:nothing-left] deleting the conversation through the host erases it, and the next message has a new worker', async () => {
  await using it = await bot({ script: ({ text }) => ({ ok: true, text, files: [] }) })
  await it.host.start()
  await it.host.conversations.handle(message({ text: 'old' }))
  expect(await it.host.conversations.deleteConversation('fake:1')).toBe('deleted')
  await it.host.conversations.handle(message({ text: 'new' }))
  expect(it.sent.map(([, { chunks }]) => chunks[0])).toEqual(['old', 'new'])
  expect(it.driver.guests.map(({ turns }) => turns.length)).toEqual([1, 1])
})

test('W-78 status in Pi mode: mode, worker, last turn, and who pays', async () => {
  await using it = await bot({ script: ({ text }) => ({ ok: true, text, files: [] }) })
  await it.host.start()
  const said: string[] = []
  const interaction = {
    user: { id: 'u-olga' },
    isChatInputCommand: () => true,
    commandName: 'roundtable',
    channelId: '7',
    inGuild: () => true,
    options: { getSubcommandGroup: () => 'pi', getSubcommand: () => 'status' },
    deferReply: async () => {},
    editReply: async (content: string) => void said.push(content),
  }
  const { channels, runtime } = it.host.services.get(PI_SANDBOX)
  channels.enable('discord:7')
  await runtime.runTurn({
    channel: 'discord:7',
    profile: 'default',
    speaker: { id: 'u-ann', name: 'Ann' },
    text: 'x',
  })
  await it.host.commands.handle(interaction)
  expect(said[0]).toMatch(/Mode: Pi; worker ready as default, thinking low\. Last turn: answered for u-ann/)
  expect(said[0]).toMatch(/Who pays for you here: the host's login for anthropic\.$/)
  expect(runtime.status('discord:7')).toMatchObject({
    state: 'ready',
    revoked: false,
    last: { speakerId: 'u-ann', ok: true },
  })
})

test('PL-12 the worker of a channel that is turned off goes, and a new one comes when it is on again', async () => {
  await using it = await bot({ plugin: { initialChannels: ['discord:7'] }, host: { surfaces: [] } })
  await it.host.start()
  const owner = (subcommand: string) =>
    it.host.commands.handle({
      user: { id: 'u-olga' },
      isChatInputCommand: () => true,
      commandName: 'roundtable',
      channelId: '7',
      inGuild: () => true,
      options: { getSubcommandGroup: () => 'pi', getSubcommand: () => subcommand },
      deferReply: async () => {},
      editReply: async () => {},
    } as never)
  await it.host.conversations.handle(message({ channel: 'discord:7' }))
  expect(it.driver.alive()).toHaveLength(1)
  await owner('off')
  await until(() => it.driver.alive().length === 0)
  await owner('on')
  await it.host.conversations.handle(message({ channel: 'discord:7' }))
  expect([it.driver.alive().length, it.driver.guests.length]).toEqual([1, 2])
})

test('[scope:no-fallback] CS-11 without a function for tokens the host’s login pays, read at each call; with one it is never read', async () => {
  await using model = await messagesService(({ asked }) => ({ text: asked }))
  const script: GuestScript = async ({ nonce, text, model: name }, guest) => {
    const body = { model: name, max_tokens: 2_000, messages: [{ role: 'user', content: text }] }
    const { status } = await guest.spend(nonce, '/v1/messages', body)
    return { ok: true, text: `${status}`, files: [] }
  }
  const paid = () => model.calls.map(({ authorization }) => authorization)
  const upstream = { upstream: model.url, allowHttp: true }
  const apiKeys = { anthropic: 'sk-ant-oat01-of-the-host-1' }
  await using it = await bot({ script, plugin: upstream, host: { apiKeys } })
  await it.host.conversations.handle(message())
  apiKeys.anthropic = 'sk-ant-oat01-of-the-host-2'
  await it.host.conversations.handle(message())
  expect(paid()).toEqual(['Bearer sk-ant-oat01-of-the-host-1', 'Bearer sk-ant-oat01-of-the-host-2'])
  const oauthToken = ({ speaker }: { speaker: { id: string } }) =>
    speaker.id === 'u-ann' ? 'sk-ant-oat01-of-ann-12345' : undefined
  await using own = await bot({ script, plugin: { ...upstream, oauthToken }, host: { apiKeys } })
  await own.host.conversations.handle(message())
  await own.host.conversations.handle(message({ authorId: 'u-bob' }))
  expect(paid().slice(2)).toEqual(['Bearer sk-ant-oat01-of-ann-12345'])
  expect(own.sent[1]?.[1].chunks[0]).toMatch(/^No key is set for you/)
})

test('W-79 a Messages service that has too much to do is told as that, with its wait', async () => {
  await using model = await scriptedUpstream(
    (_request, response) => void response.writeHead(529, { 'retry-after': '12' }).end('{"type":"error"}'),
  )
  await using it = await bot({
    plugin: { upstream: model.url, allowHttp: true },
    script: async ({ nonce, text, model: name }, guest) => {
      const body = { model: name, max_tokens: 2_000, messages: [{ role: 'user', content: text }] }
      const { status } = await guest.spend(nonce, '/v1/messages', body)
      return { ok: false, code: 'model_failed', error: `${status}` }
    },
  })
  await it.host.conversations.handle(message())
  expect(it.sent[0]?.[1].chunks[0]).toMatch(/has too much to do right now\. Please try again in 12 s\./)
})
