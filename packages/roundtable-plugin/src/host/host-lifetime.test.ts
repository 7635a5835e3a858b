import { expect, test } from 'vitest'
import { ownRoots, userOptions } from '../../test/account.ts'
import { hostWith, surface } from '../../test/host-kit.ts'
import { recordingLogger } from '../../test/messages.ts'
import type { HostContext, HostService } from '../host-contract.ts'
import { sandbox } from '../plugin.ts'
import { createHost } from './create-host.ts'
import type { HostPlugin } from './link-plugins.ts'

/** A plugin whose one service notes its start and stop. */
function noting(seen: string[], name: string, parts: Partial<HostService> = {}): HostPlugin {
  const service: HostService = {
    name,
    start: () => void seen.push(`start ${name}`),
    stop: () => void seen.push(`stop ${name}`),
    ...parts,
  }
  return { name, setup: () => ({ services: [service] }) }
}

test('RL-04 a host that cannot be made gives back what its plugins hold, so that the next can be', async () => {
  using roots = ownRoots()
  const plugin = () =>
    sandbox({
      runRoot: roots.runRoot,
      workspaceRoot: roots.workspaceRoot,
      stateFile: roots.stateFile,
      model: 'm',
      modelUrl: 'https://models.example/v1/chat/completions',
      driver: 'process',
      ...userOptions,
    })
  const surfaces = [surface().surface, surface().surface]
  await expect(createHost({ plugins: [plugin()], surfaces })).rejects.toThrow('two surfaces serve fake')
  await using host = await createHost({ plugins: [plugin()] })
  expect(host.services.find({ id: 'sandbox.channels' })).toBeDefined()
})

test('2.2 a contribution that is refused is given back too, the last first, also when one cannot be', async () => {
  const seen: string[] = []
  const broken = noting(seen, 'b', {
    stop: () => {
      seen.push('stop b')
      throw new TypeError('stuck')
    },
  })
  const refused: HostPlugin = {
    name: 'c',
    provides: [{ id: 'test.key' }],
    setup: () => ({ services: [{ name: 'c', stop: () => void seen.push('stop c') }] }),
  }
  await expect(createHost({ plugins: [noting(seen, 'a'), broken, refused] })).rejects.toThrow('test.key')
  expect(seen).toEqual(['stop c', 'stop b', 'stop a'])
})

test('2.6 a host that is stopped while it starts starts nothing more, and nothing again', async () => {
  const seen: string[] = []
  const slow = Promise.withResolvers<void>()
  const late = surface({ start: async () => void seen.push('start late') })
  const host = await createHost({
    plugins: [noting(seen, 'a', { start: () => slow.promise }), noting(seen, 'b')],
    surfaces: [late.surface],
  })
  const starting = host.start()
  const stopped = host.stop()
  slow.resolve()
  await expect(starting).rejects.toMatchObject({ code: 'closed' })
  await stopped
  expect(seen).toEqual(['stop b', 'stop a'])
  const again = await createHost({ plugins: [noting(seen, 'c')] })
  await again.stop()
  await expect(again.start()).rejects.toMatchObject({ code: 'closed' })
  expect(seen.slice(2)).toEqual(['stop c'])
})

test('4.3 a host that is started twice starts its surfaces once: a message would be answered twice', async () => {
  const seen: string[] = []
  await using host = await createHost({ plugins: [noting(seen, 'a')] })
  await Promise.all([host.start(), host.start()])
  await host.start()
  expect(seen).toEqual(['start a'])
})

test('2.6 what fails in the background is logged, and neither ends the start nor the process', async () => {
  const { logger, lines } = recordingLogger()
  const fails = (name: string, startInBackground: () => Promise<void>) =>
    noting([], name, { startInBackground })
  const later = fails('later', () => Promise.reject(new TypeError('later')))
  const now = fails('now', () => {
    throw new TypeError('now')
  })
  await using host = await createHost({ plugins: [later, now], logger })
  await host.start()
  await new Promise((done) => setImmediate(done))
  expect(lines.map(({ level, fields }) => [level, fields.service]).toSorted()).toEqual([
    ['error', 'later'],
    ['error', 'now'],
  ])
})

test('2.6 stop with a drain waits for work that the queue does not know, and for none that cannot be asked', async () => {
  const seen: string[] = []
  let asked = 0
  const busy = noting(seen, 'busy', { busy: () => (++asked < 3 ? ['work'] : []) })
  const mute = noting(seen, 'mute', {
    busy: () => {
      throw new TypeError('cannot say')
    },
  })
  const host = await createHost({ plugins: [busy, mute], logger: recordingLogger().logger })
  await host.start()
  await host.stop({ drainMs: 60_000 })
  expect([asked, seen]).toEqual([3, ['start busy', 'start mute', 'stop mute', 'stop busy']])
})

test('4.1 a surface that fails to show something costs no turn, and a key that is none is no surface’s', async () => {
  const fails = () => {
    throw new TypeError('no typing here')
  }
  const fake = surface({ startTyping: fails, showStop: () => fails })
  const { host } = await hostWith([], { surfaces: [fake.surface] })
  host.surfaces.startTyping('fake:1')()
  host.surfaces.showStop('fake:1')()
  const none = 'fakeX' as 'fake:X'
  await expect(host.surfaces.sendReply(none, { chunks: ['x'] })).rejects.toMatchObject({
    code: 'surface_unknown',
  })
})

test('2.6 a plugin’s surfaces start before its services; a stop that fails is logged and keeps nothing from stopping', async () => {
  const seen: string[] = []
  const { logger, lines } = recordingLogger()
  const own = surface({ start: async () => void seen.push('start surface') })
  const broken = {
    name: 's',
    start: () => void seen.push('start s'),
    stop: () => Promise.reject(new TypeError('stuck')),
  }
  const plugin: HostPlugin = { name: 'p', setup: () => ({ surfaces: [own.surface], services: [broken] }) }
  const host = await createHost({ plugins: [noting(seen, 'a'), plugin], logger })
  await host.start()
  await host.stop()
  expect(seen).toEqual(['start a', 'start surface', 'start s', 'stop a'])
  expect(lines.map(({ fields }) => fields.service)).toEqual(['s'])
})

test('2.6 two services of one name are refused', async () => {
  const twice = [noting([], 'a'), { ...noting([], 'a'), name: 'b' }]
  await expect(createHost({ plugins: twice })).rejects.toThrow('two services are named a')
})

test('2.4 a plugin has the environment that was given, and keys as they are at each use', async () => {
  const apiKeys: Record<string, string | undefined> = { openai: 'one' }
  let context: HostContext | undefined
  const plugin: HostPlugin = {
    name: 'p',
    setup(given) {
      context = given
      return {}
    },
  }
  await createHost({ plugins: [plugin], apiKeys, env: { timeZone: 'Asia/Tokyo' } })
  expect([context?.env.timeZone, context?.env.locale, await context?.apiKey('openai')]).toEqual([
    'Asia/Tokyo',
    'en',
    'one',
  ])
  apiKeys.openai = 'two'
  expect(await context?.apiKey('openai')).toBe('two')
})
