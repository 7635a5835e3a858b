import { expect, test } from 'vitest'
import { admission, claim, hostWith, surface, tick } from '../../test/host-kit.ts'
import { message, recordingLogger } from '../../test/messages.ts'
import type { HostContext, InboundMessage, ServiceKey } from '../host-contract.ts'
import { createHost } from './create-host.ts'
import type { HostPlugin } from './link-plugins.ts'

const KEY: ServiceKey<{ n: number }> = { id: 'test.key' }
const DISCORD: ServiceKey<{ commands: { add(contribution: object): void } }> = { id: 'roundtable.discord' }

test('conversations: stop is at once, start over waits in the queue, deletion answers busy', async () => {
  const calls: string[] = []
  let open = () => {}
  const { host } = await hostWith([
    claim('c', 1, {
      owns: (channel) => channel === 'fake:1',
      admit: () => admission(() => new Promise<void>((done) => (open = done))),
      startFresh: async () => {
        calls.push('fresh')
        return 'kind'
      },
      stop: () => {
        calls.push('stop')
        return true
      },
      deleteConversation: async () => void calls.push('delete'),
    }),
  ])
  const turn = host.conversations.handle(message())
  await tick()
  const fresh = host.conversations.startFresh('fake:1')
  expect(host.conversations.stop('fake:1')).toBe(true)
  expect(await host.conversations.deleteConversation('fake:1')).toBe('busy')
  expect(calls).toEqual(['stop'])
  open()
  await turn
  expect(await fresh).toBe('kind')
  expect(await host.conversations.deleteConversation('fake:1')).toBe('deleted')
  expect(calls).toEqual(['stop', 'fresh', 'delete'])
  expect(host.conversations.stop('fake:2')).toBe(false)
  await expect(host.conversations.startFresh('fake:2')).rejects.toThrow('no conversation owns fake:2')
  await expect(host.conversations.deleteConversation('fake:2')).rejects.toThrow('no conversation owns fake:2')
})

test('conversations: a background turn is run, skipped or failed, and never rejects', async () => {
  const turn = {
    channel: 'fake:1',
    target: 't',
    author: { id: 'a', name: 'A' },
    turnId: '1',
    text: 'x',
  } as const
  const none = await hostWith([claim('c', 1)])
  expect(await none.host.conversations.background(turn)).toMatchObject({ status: 'skipped' })
  const nobodys = await hostWith([claim('c', 1, { owns: () => false })])
  expect(await nobodys.host.conversations.background(turn)).toEqual({
    status: 'skipped',
    reason: 'no conversation owns fake:1',
  })
  const ran = await hostWith([claim('c', 1, { background: async () => ({ status: 'ran' }) })])
  expect(await ran.host.conversations.background(turn)).toEqual({ status: 'ran' })
  const failing = await hostWith([claim('c', 1, { background: () => Promise.reject(new TypeError('x')) })])
  expect(await failing.host.conversations.background(turn)).toEqual({ status: 'failed', error: 'x' })
})

test('conversations: a background turn waits for the turns before it', async () => {
  const seen: string[] = []
  const open = Promise.withResolvers<void>()
  const { host } = await hostWith([
    claim('c', 1, {
      admit: () => admission(() => open.promise.then(() => void seen.push('turn'))),
      background: async () => {
        seen.push('background')
        return { status: 'ran' }
      },
    }),
  ])
  const turn = host.conversations.handle(message())
  await tick()
  const author = { id: 'a', name: 'A' }
  const background = host.conversations.background({
    channel: 'fake:1',
    target: 't',
    author,
    turnId: '1',
    text: 'x',
  })
  await tick()
  open.resolve()
  await Promise.all([turn, background])
  expect(seen).toEqual(['turn', 'background'])
})

test('surfaces are found by prefix; unknown ones and files where none go are refused', async () => {
  const fake = surface()
  const { host } = await hostWith([], { surfaces: [fake.surface] })
  const data = new Uint8Array(1)
  await host.surfaces.sendReply('fake:1:2', { chunks: ['x'] })
  expect(fake.sent).toEqual([['fake:1:2', { chunks: ['x'] }]])
  await expect(host.surfaces.sendReply('other:1', { chunks: [] })).rejects.toThrow('no surface serves other')
  await expect(
    host.surfaces.sendReply('fake:1', { chunks: [], files: [{ name: 'n', data }] }),
  ).rejects.toThrow('takes no files')
  host.surfaces.startTyping('other:1')()
  host.surfaces.showStop('fake:1')()
  await host.surfaces.react('fake:1', 'm', 'x')
  const twice = createHost({ plugins: [], surfaces: [fake.surface, surface().surface] })
  await expect(twice).rejects.toThrow('two surfaces serve fake')
})

test('a surface delivers only messages of its own channels', async () => {
  const seen: InboundMessage[] = []
  const fake = surface()
  const { host, lines } = await hostWith(
    [claim('c', 1, { admit: (each) => void seen.push(each) as undefined })],
    {
      surfaces: [fake.surface],
    },
  )
  await host.start()
  await fake.deliver(message())
  await fake.deliver(message({ channel: 'other:1' }))
  expect(seen).toHaveLength(1)
  expect(lines.map(({ level }) => level)).toEqual(['warn'])
  await host.stop()
})

test('linking: parts of the host throw during setup and work afterwards; services go by id', async () => {
  let context: HostContext | undefined
  const provider: HostPlugin = {
    name: 'one',
    provides: [KEY],
    setup(given) {
      context = given
      expect(() => given.surfaces.startTyping('fake:1')).toThrow('after setup only')
      expect(() => given.services.provide({ id: 'other' }, 1)).toThrow('only when declared')
      given.services.provide({ id: 'test.key' }, { n: 7 })
      return {}
    },
  }
  const reader: HostPlugin = {
    name: 'two',
    requires: [KEY],
    setup({ services }) {
      expect(services.find({ ...KEY })).toEqual({ n: 7 })
      expect(services.find({ id: 'nobody' })).toBeUndefined()
      expect(() => services.get({ id: 'nobody', absent: 'no nobody here' })).toThrow('no nobody here')
      return {}
    },
  }
  const host = await createHost({ plugins: [provider, reader], apiKeys: { openai: 'k' } })
  expect(host.services.get(KEY)).toEqual({ n: 7 })
  expect(() => context?.services.provide(KEY, { n: 8 })).toThrow('during its setup')
  context?.surfaces.startTyping('fake:1')()
  expect([await context?.apiKey('openai'), await context?.apiKey('toString')]).toEqual(['k', undefined])
})

test.each<[string, HostPlugin[]]>([
  ['cannot be a plugin’s name', [{ name: 'Bad Name', setup: () => ({}) }]],
  [
    'two plugins are named a',
    [
      { name: 'a', setup: () => ({}) },
      { name: 'a', setup: () => ({}) },
    ],
  ],
  ['did not provide it', [{ name: 'a', provides: [KEY], setup: () => ({}) }]],
  [
    'both provide test.key',
    [
      { name: 'a', provides: [KEY], setup: () => ({}) },
      { name: 'b', provides: [KEY], setup: () => ({}) },
    ],
  ],
  ['nothing provides test.key', [{ name: 'a', requires: [KEY], setup: () => ({}) }]],
  ['contributes "channel"', [{ name: 'a', setup: () => ({ channel: [] }) as object }]],
  ['two claims are named c', [{ name: 'a', setup: () => ({ channels: [claim('c', 1), claim('c', 2)] }) }]],
  ['returned no object', [{ name: 'a', setup: () => undefined as unknown as object }]],
])('linking refuses: %s', async (text, plugins) => {
  await expect(createHost({ plugins })).rejects.toThrow(text.replaceAll('’', "'"))
})

test('services start in plugin order and stop in reverse, also when a start fails', async () => {
  const seen: string[] = []
  const service = (name: string, fails = false) => ({
    name,
    async start() {
      seen.push(`start ${name}`)
      if (fails) throw new TypeError(`${name} is broken`)
    },
    stop: () => void seen.push(`stop ${name}`),
  })
  const fake = surface({ stop: async () => void seen.push('stop fake') })
  const plugin = (fails: boolean): HostPlugin => ({
    name: 'p',
    setup: () => ({ services: [service('a'), service('b', fails)] }),
  })
  const host = await createHost({ plugins: [plugin(false)], surfaces: [fake.surface] })
  await host.start()
  await host.stop()
  await host.stop()
  expect(seen).toEqual(['start a', 'start b', 'stop fake', 'stop b', 'stop a'])
  seen.length = 0
  const broken = await createHost({ plugins: [plugin(true)], surfaces: [fake.surface] })
  await expect(broken.start()).rejects.toThrow('b is broken')
  expect(seen).toEqual(['start a', 'start b', 'stop b', 'stop a'])
})

test('a setup that fails gives back what the plugins before it opened', async () => {
  const stopped: string[] = []
  const first: HostPlugin = {
    name: 'a',
    setup: () => ({ services: [{ name: 's', stop: () => void stopped.push('s') }] }),
  }
  const second: HostPlugin = {
    name: 'b',
    setup: () => {
      throw new TypeError('no')
    },
  }
  await expect(createHost({ plugins: [first, second] })).rejects.toThrow('no')
  expect(stopped).toEqual(['s'])
})

test('stop with a drain serves what waits; without one it drops it', async () => {
  for (const [drainMs, expected] of [
    [60_000, 2],
    [0, 1],
  ] as const) {
    let runs = 0
    let open = () => {}
    const { host, lines } = await hostWith([
      claim('c', 1, {
        admit: () =>
          admission(() => {
            runs += 1
            return runs === 1 ? new Promise<void>((done) => (open = done)) : Promise.resolve()
          }),
      }),
    ])
    const handled = [host.conversations.handle(message()), host.conversations.handle(message())]
    await tick()
    const stopped = host.stop({ drainMs })
    open()
    await Promise.all([...handled, stopped])
    expect([drainMs, runs, lines.filter(({ level }) => level === 'error')]).toEqual([drainMs, expected, []])
  }
})

test('commands: added during setup only, once each, and offered to the owner’s guard', async () => {
  const module = { commands: () => [] as never[], handle: async () => true }
  const rootOptions = [{ type: 1, name: 'x', description: 'd' }] as const
  let late: (() => void) | undefined
  const plugin: HostPlugin = {
    name: 'p',
    setup({ services }) {
      const discord = services.get(DISCORD)
      discord.commands.add({ module, rootOptions })
      expect(() => discord.commands.add({ module, rootOptions })).toThrow('added twice')
      late = () => discord.commands.add({ module })
      return {}
    },
  }
  const host = await createHost({ plugins: [plugin], discord: { root: 'bot' }, ownerId: 'olga' })
  expect(late).toThrow('during setup only')
  expect(host.commands.added()).toHaveLength(1)
  expect([host.commands.guard.root, host.commands.guard.isOwner({ user: { id: 'olga' } })]).toEqual([
    'bot',
    true,
  ])
  expect(host.commands.guard.isOwner({ user: { id: 'guest' } })).toBe(false)
  expect(await host.commands.handle({ user: { id: 'olga' }, isChatInputCommand: () => true })).toBe(true)
})

test('commands: a module that fails is logged and has answered; without an owner nobody is one', async () => {
  const module = { commands: () => [] as never[], handle: () => Promise.reject(new TypeError('boom')) }
  const plugin: HostPlugin = {
    name: 'p',
    setup({ services }) {
      services.get(DISCORD).commands.add({ module })
      return {}
    },
  }
  const { logger, lines } = recordingLogger()
  const host = await createHost({ plugins: [plugin], discord: {}, logger })
  const user = { id: undefined as unknown as string }
  expect(await host.commands.handle({ user, isChatInputCommand: () => true })).toBe(true)
  expect(lines.map(({ message: text }) => text)).toEqual(['an owner command failed'])
  expect(host.commands.guard.isOwner({ user })).toBe(false)
})
