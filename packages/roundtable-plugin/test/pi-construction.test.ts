import { existsSync, readdirSync, rmSync, symlinkSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { PiSandboxRuntime } from '../src/pi-defaults.ts'
import type { PiSandboxRuntimeOptions } from '../src/pi-options.ts'
import { ownDir, userOptions } from './account.ts'
import { wireDriver } from './pi-guest.ts'

const tool = (name: string) => ({
  name,
  description: 'd',
  parameters: { type: 'object' },
  execute: () => ({ ok: true as const, text: 'x' }),
})

/** Options in a directory of its own. */
function given(more: object = {}) {
  const dir = ownDir()
  const options: PiSandboxRuntimeOptions = {
    partyDir: join(dir.path, 'p'),
    image: 'sandbox-pi-worker:latest',
    model: 'claude-sonnet-4-5',
    profiles: { default: {} },
    oauthToken: () => 'sk-ant-oat01-test-0123456789abcdef',
    ...userOptions,
    ...more,
  }
  return { dir, options, [Symbol.dispose]: () => dir[Symbol.dispose]() }
}

test.each<[string, object, RegExp]>([
  [
    'a misspelt option',
    { turnTimeoutMS: 5 },
    /turnTimeoutMS: there is no such option. The closest one is "turnTimeoutMs"/,
  ],
  ['a misspelt limit', { limits: { memory: 1 } }, /limits\.memory: there is no such option/],
  [
    'a misspelt field of a profile',
    { profiles: { p: { tolls: [] } } },
    /profiles\.p\.tolls: .*"profiles\.p\.tools"/,
  ],
  [
    'PR-06 a server that is not there',
    { profiles: { p: { mcp: ['docs'] } } },
    /profiles\.p\.mcp: "docs" is not among/,
  ],
  ['PR-02 startTimeoutMs', { startTimeoutMs: 10 }, /startTimeoutMs/],
  ['a full workspace from the start', { workspaceBytes: 10 }, /workspaceBytes/],
  ['PB-01 a service without TLS', { upstream: 'http://api.example.com' }, /upstream/],
  ['PB-02 maxCalls', { maxCalls: 0 }, /maxCalls/],
  ['a tool twice', { tools: [tool('a'), tool('a')] }, /tools/],
  ['no getter', { oauthToken: 'sk-ant-oat01-x' }, /oauthToken/],
  [
    'CP-02 a compactor that may take more than half a turn',
    { turnTimeoutMs: 10_000, compaction: { engine: 'e', compact: () => undefined, timeoutMs: 5_001 } },
    /compaction\.timeoutMs: must be at most half/,
  ],
  [
    'CP-01 an engine without a name',
    { compaction: { engine: '', compact: () => undefined } },
    /compaction\.engine/,
  ],
  ['no image', { image: '' }, /image: must name .*sandbox-worker build --pi/],
  ['a driver that is none', { driver: 'podman' }, /driver: must be/],
])('refused before anything is made: %s', (_, more, message) => {
  using it = given(more)
  expect(() => new PiSandboxRuntime(it.options)).toThrow(message)
  expect(existsSync(it.options.partyDir)).toBe(false)
})

test('PR-01 one host per party directory; it is given back when construction fails and when it is disposed', async () => {
  using it = given()
  const failing = {
    ...it.options,
    driver: () => {
      throw new TypeError('no driver')
    },
  }
  expect(() => new PiSandboxRuntime(failing)).toThrow('no driver')
  const runtime = new PiSandboxRuntime(it.options)
  expect(() => new PiSandboxRuntime(it.options)).toThrow(/used by another host/)
  await runtime.dispose()
  await new PiSandboxRuntime(it.options).dispose()
  expect(readdirSync(it.options.partyDir)).toEqual(['install-id'])
})

test('PR-01 a party directory that is a link leads to its target, and both names to one host', async () => {
  using it = given()
  const real = join(it.dir.path, 'real')
  await new PiSandboxRuntime({ ...it.options, partyDir: real }).dispose()
  symlinkSync(real, it.options.partyDir)
  const runtime = new PiSandboxRuntime(it.options)
  expect(runtime.partyDir).toBe(real)
  expect(() => new PiSandboxRuntime({ ...it.options, partyDir: real })).toThrow(/used by another host/)
  await runtime.dispose()
})

test('CS-17 PR-20 no token is asked for before a call; a profile says which tools its workers are told of', async () => {
  let asked = 0
  const driver = wireDriver()
  using it = given({
    driver: () => driver,
    tools: [tool('clock'), tool('post')],
    profiles: { default: {}, few: { tools: ['clock'] }, none: { tools: [], prompt: 'Be brief.' } },
    oauthToken: () => {
      asked += 1
      return undefined
    },
  })
  await using runtime = new PiSandboxRuntime(it.options)
  await runtime.check()
  for (const [index, profile] of ['default', 'few', 'none'].entries()) {
    await runtime.start(`fake:${index}`, profile)
  }
  expect(driver.guests.map(({ welcome }) => welcome?.tools.map(({ name }) => name))).toEqual([
    ['clock', 'post'],
    ['clock'],
    [],
  ])
  const speaker = { id: 'u-ann', name: 'Ann' }
  const reply = await runtime.runTurn({ channel: 'fake:2', profile: 'none', speaker, text: 'hi' })
  expect(reply).toMatchObject({ ok: true })
  expect(driver.guests[2]?.turns[0]).toMatchObject({
    prompt: 'Be brief.',
    profile: 'none',
    model: 'claude-sonnet-4-5',
  })
  expect(asked).toBe(0)
  expect(runtime.status('fake:2')).toMatchObject({ state: 'ready', profile: 'none' })
  expect(runtime.sessionsDir('fake:2')).toBe(join(runtime.partyDir, 'fake_2', 'workspace', 'sessions'))
  expect(runtime.attachmentDir('fake:2')).toBe(join(runtime.partyDir, 'fake_2', 'workspace', 'attachments'))
  await runtime.stop('fake:2')
  expect(runtime.status('fake:2')).toEqual({
    state: 'stopped',
    busy: false,
    revoked: false,
    last: expect.objectContaining({ ok: true, speakerId: 'u-ann' }),
  })
  await runtime.startFresh('fake:1')
  await runtime.stopBrokers()
  expect(driver.alive()).toEqual([])
  expect(runtime.busy()).toEqual([])
})

test('W-66 a channel whose workspace is full gets words, and a turn again when there is room', async () => {
  const driver = wireDriver()
  using it = given({ driver: () => driver, workspaceBytes: 1024 * 1024 })
  await using runtime = new PiSandboxRuntime(it.options)
  const speaker = { id: 'u-ann', name: 'Ann' }
  const say = (text: string, attachments = [{ name: 'big', data: new Uint8Array(0) }]) =>
    runtime.runTurn({ channel: 'fake:1', profile: 'default', speaker, text, attachments })
  expect(await say('one', [{ name: 'big', data: new Uint8Array(2 * 1024 * 1024).fill(1) }])).toMatchObject({
    ok: true,
  })
  expect(await say('two')).toMatchObject({
    ok: false,
    category: 'workspace',
    text: /more room than they may/,
  })
  expect(driver.alive()).toHaveLength(1)
  // What was there is replaced by less.
  rmSync(join(runtime.attachmentDir('fake:1'), 'big'))
  expect(await say('three')).toMatchObject({ ok: true })
})

test('PR-20 adapters see where a channel’s files lie and what it does, without a worker', async () => {
  using it = given()
  const runtime = new PiSandboxRuntime({ ...it.options, driver: () => wireDriver() })
  const workspace = join(runtime.partyDir, 'a_1', 'workspace')
  expect(runtime.status('a:1')).toMatchObject({ state: 'stopped', busy: false })
  expect(existsSync(workspace)).toBe(false)
  expect(runtime.sessionsDir('a:1')).toBe(join(workspace, 'sessions'))
  expect(runtime.attachmentDir('a:1')).toBe(join(workspace, 'attachments'))
  expect(existsSync(join(workspace, 'attachments')) && existsSync(join(workspace, 'sessions'))).toBe(true)
  await runtime.dispose()
})
