import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { sourceFlags } from '@sandbox/testing'
import { GatewayIntentBits } from 'discord.js'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { BotError } from '../../src/errors.ts'
import { discordSurface } from '../../src/surfaces/discord/index.ts'
import { type HostOn, hostOn, startOn } from './host-on.ts'
import { mention } from './payloads.ts'
import { ANN, BOT, GENERAL } from './people.ts'
import { openStandIn, type StandIn } from './stand-in.ts'

const BOTS_MENTION = mention(BOT)

let discord: StandIn
let on: HostOn

beforeEach(async () => {
  discord = await openStandIn()
})

afterEach(async () => {
  await on?.host.stop()
  await discord[Symbol.asyncDispose]()
})

const contents = () => discord.posted().map(({ body }) => body.content)
const answered = (...texts: string[]) => expect.poll(contents, { timeout: 20_000 }).toEqual(texts)
const ask = (text: string) => discord.say({ by: ANN, text: `${BOTS_MENTION} ${text}` })

test('start resolves when the bot is in: it asked for what it needs to hear, and its commands are known', async () => {
  on = await startOn(discord)
  const { Guilds, GuildMessages, DirectMessages, MessageContent } = GatewayIntentBits
  expect(discord.gateway.heard).toMatchObject([
    {
      what: 'identify',
      data: { token: discord.token, intents: Guilds | GuildMessages | DirectMessages | MessageContent },
    },
  ])
  expect(discord.seenAt('PUT', /commands$/)).toHaveLength(1)
  expect(on.lines).toEqual(['Discord: here as parrot, in 1 servers.'])
})

test.each([
  ['with a wrong token', /does not take this token.*Reset Token/],
  ['when Discord is away', /cannot be reached: .*(ECONNREFUSED|[Uu]nable to connect)/],
])('%s it cannot log in, and the error says what to do and no token', async (why, words) => {
  const token = why === 'with a wrong token' ? 'not.the-token' : discord.token
  on = await hostOn(discord, { token })
  if (why === 'when Discord is away') await discord[Symbol.asyncDispose]()
  const error = await on.host.start().catch((thrown: unknown) => thrown)
  expect(error).toBeInstanceOf(BotError)
  expect(error).toMatchObject({ code: 'discord', message: expect.stringMatching(words) })
  expect(String(error)).not.toContain(token)
})

test.each([
  [4004, /does not take this token/],
  [4014, /Turn on Message Content Intent/],
  [4011, /cannot be reached: Sharding is required/],
])('a gateway that refuses with %i says what to do', async (code, words) => {
  discord.gateway.refuse = code
  on = await hostOn(discord)
  await expect(on.host.start()).rejects.toThrow(words)
})

test('a gateway that says nothing is given up', async () => {
  discord.gateway.silent = true
  on = await hostOn(discord, { startTimeoutMs: 300 })
  await expect(on.host.start()).rejects.toThrow('did not let the bot in within 0.3 s')
})

test.each(['', 'two words', 'a\nb', 'T\u00f6ken'])('%j is no token at all', (token) => {
  const options = { token, explain: () => expect.unreachable(), log: () => {} }
  expect(() => discordSurface({ ...options, commands: () => expect.unreachable() })).toThrow(/no token has/)
})

test('slash commands that Discord does not take are told; the bot works without them', async () => {
  const errors = { 0: { _errors: [{ code: 'BAD', message: 'Not\u001b[31m so.' }] } }
  discord.once('PUT', /commands$/, {
    status: 400,
    body: { message: 'Invalid Form Body', code: 50_035, errors },
  })
  on = await startOn(discord)
  expect(on.lines.at(-1)).toBe(
    'Discord: the slash commands could not be registered: Invalid Form Body, 0[BAD]: Not\u25a1[31m so. (50035)',
  )
  ask('hello')
  await answered('echo: hello')
})

test.each<[string, (gateway: StandIn['gateway']) => void]>([
  ['a dropped connection', (gateway) => gateway.drop()],
  ['a close that may be resumed', (gateway) => gateway.drop(4000)],
  ['a request to reconnect', (gateway) => gateway.askToReconnect()],
])('%s is resumed: what was said meanwhile is answered, once', async (_, cut) => {
  const problems: unknown[] = []
  on = await startOn(discord, { onConnection: (problem) => problems.push(problem) })
  ask('before')
  await answered('echo: before')
  cut(discord.gateway)
  await expect.poll(() => discord.gateway.open).toBe(0)
  ask('between')
  await answered('echo: before', 'echo: between')
  ask('after')
  await answered('echo: before', 'echo: between', 'echo: after')
  expect(discord.gateway.heard.map(({ what }) => what)).toEqual(['identify', 'resume'])
  expect(on.lines.slice(1)).toEqual([
    'Discord: reconnecting.',
    'Discord: connected again, nothing was missed.',
  ])
})

test('a session that Discord has forgotten is begun anew', async () => {
  on = await startOn(discord)
  discord.gateway.forget()
  discord.gateway.drop()
  await expect
    .poll(() => discord.gateway.heard.map(({ what }) => what), { timeout: 30_000 })
    .toEqual(['identify', 'resume', 'identify'])
  await expect.poll(() => discord.gateway.open).toBe(1)
  ask('hello again')
  await answered('echo: hello again')
  expect(on.lines.slice(1)).toEqual([
    'Discord: reconnecting.',
    'Discord: reconnecting.',
    'Discord: connected again; what was said meanwhile is lost.',
  ])
})

test('a token that is taken back while the bot runs is told, with what to do', async () => {
  const problems: unknown[] = []
  on = await startOn(discord, { onConnection: (problem) => problems.push(problem) })
  discord.gateway.drop(4004)
  await expect
    .poll(() => on.lines.find((line) => line.includes('4004')))
    .toMatch(/does not take this token.*The bot hears nothing until it is started again/)
  expect(problems).toEqual([expect.stringMatching(/does not take this token/)])
})

test('a rate limit is waited for, and the order stays', async () => {
  on = await startOn(discord, { answer: () => ({ chunks: ['one', 'two'] }) })
  const limited = { message: 'You are being rate limited.', retry_after: 0.05, global: false }
  const headers = { 'retry-after': '0.05', 'x-ratelimit-scope': 'user' }
  discord.once('POST', /\/messages$/, { status: 429, body: limited, headers })
  ask('hello')
  await answered('one', 'one', 'two')
  const [refused, again] = discord.posted()
  expect(again?.body.nonce).toBe(refused?.body.nonce)
})

test('a reply that would have to wait for more than a minute is lost, told, and holds up nothing else', async () => {
  on = await startOn(discord)
  const limited = { message: 'You are being rate limited.', retry_after: 900, global: false }
  discord.once('POST', new RegExp(`${GENERAL}/messages$`), {
    status: 429,
    body: limited,
    headers: { 'retry-after': '900', 'x-ratelimit-scope': 'shared' },
  })
  ask('hello')
  await expect.poll(() => on.warnings).toEqual([expect.stringContaining('Discord did not take a message')])
  ask('again')
  await answered('echo: hello', 'echo: again')
})

test('a server error is tried again, with a nonce that Discord knows', async () => {
  on = await startOn(discord)
  discord.once('POST', /\/messages$/, { status: 502 })
  ask('hello')
  await answered('echo: hello', 'echo: hello')
  const [failed, again] = discord.posted()
  expect(again?.body).toMatchObject({ nonce: failed?.body.nonce, enforce_nonce: true })
})

test('a stop in mid-turn leaves the gateway, takes nothing more, and still posts the answer', async () => {
  let finish = () => {}
  const running = new Promise<void>((done) => (finish = done))
  on = await startOn(discord, {
    answer: async () => {
      await running
      return { chunks: ['the last word'] }
    },
  })
  ask('take your time')
  await expect.poll(() => on.taken.length).toBe(1)
  await on.host.stop()
  await expect.poll(() => discord.gateway.open).toBe(0)
  ask('too late')
  finish()
  await answered('the last word')
  expect(on.taken).toHaveLength(1)
})

test('a stop while the bot gets in ends the attempt', async () => {
  discord.gateway.silent = true
  on = await hostOn(discord)
  const started = on.host.start().catch((error: unknown) => error)
  await expect.poll(() => discord.gateway.open).toBe(1)
  await on.host.stop()
  expect(await started).toMatchObject({ name: 'AbortError' })
  await expect.poll(() => discord.gateway.open).toBe(0)
})

test('a stop while Discord is away lets the process end', async () => {
  const program = fileURLToPath(new URL('stop-program.ts', import.meta.url))
  const child = spawn(process.execPath, [...sourceFlags, program, discord.api, discord.token], {
    stdio: ['pipe', 'pipe', 'inherit'],
  })
  const exited = once(child, 'exit')
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]()
  expect((await lines.next()).value).toContain('here as parrot')
  expect((await lines.next()).value).toBe('started')
  await discord[Symbol.asyncDispose]()
  expect((await lines.next()).value).toContain('reconnecting')
  child.stdin.end('stop\n')
  expect(await exited).toEqual([0, null])
})
