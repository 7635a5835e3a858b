import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { messagesService, type OperatorDir, operatorDir } from '../operator-kit.ts'
import { freshStateDir, type RunningDemo, runDemo } from '../run-demo.ts'
import { mention } from './payloads.ts'
import { ANN, BOT, GENERAL, OLGA } from './people.ts'
import { openStandIn, type StandIn } from './stand-in.ts'

// Every test starts processes of its own.
vi.setConfig({ testTimeout: 120_000 })

let discord: StandIn
let place: OperatorDir

beforeEach(async () => {
  discord = await openStandIn()
})

afterEach(async () => {
  place[Symbol.dispose]()
  await discord[Symbol.asyncDispose]()
})

/** Writes a configuration with one channel of this mode. */
function configure(mode: 'sealed' | 'pi', bot: object = {}, rule: object = {}): void {
  place = operatorDir(
    {
      channels: { [`discord:${GENERAL}`]: { mode } },
      surfaces: { discord: { token: 'file:./discord.token', ownerId: OLGA.id, api: discord.api } },
      ...bot,
    },
    [{ channel: 'discord:*', key: 'file:./team.key', ...rule }],
  )
  place.put('team.key', 'sk-team-0123456789')
  place.put('discord.token', `${discord.token}\n`)
}

const run = (...args: string[]): RunningDemo =>
  runDemo([...args, '--config', place.config], { stateDir: freshStateDir() })

test('a bot for Discord alone answers, tells its health, and stops in order', async () => {
  configure('sealed')
  await using bot = run()
  await expect.poll(bot.output, { timeout: 60_000 }).toContain('The bot runs')
  discord.say({ by: ANN, text: `${mention(BOT)} hello` })
  await expect.poll(() => discord.posted(GENERAL).length, { timeout: 30_000 }).toBe(1)
  expect(discord.posted(GENERAL)[0]?.body.content).toMatch(/Hello Ann of the team!/)

  const [, monitor] = /monitor (http:\S+)/.exec(bot.output()) ?? []
  const health = async () => {
    const answer = await fetch(`${monitor}/healthz`)
    const { checks } = (await answer.json()) as { checks: { discord: string } }
    return [answer.status, checks.discord]
  }
  expect(await health()).toEqual([200, 'ok'])
  discord.gateway.drop(4004)
  await expect.poll(health).toEqual([503, expect.stringContaining('does not take this token')])

  bot.child.kill('SIGTERM')
  expect(await bot.exited).toBe(0)
  expect(bot.output()).toContain('Stopped.')
  expect(bot.output()).not.toContain(discord.token)
})

test('the doctor tries Discord, and a bot with a token that is none does not start', async () => {
  configure('sealed')
  await using well = run('doctor')
  await well.exited
  expect(well.output()).toMatch(/ok +discord +Discord takes the token of parrot, which is in one server/)
  place.put('discord.token', 'some.other-token')
  await using bot = run()
  expect(await bot.exited).toBe(1)
  expect(bot.output()).toContain('Discord does not take this token. Make a new one')
  expect(bot.output()).not.toContain('some.other-token')
})

test('Pi mode on Discord: the agent hears of a file that could not be fetched, and answers by the key of the channel', async () => {
  await using service = await messagesService(() => 'from claude')
  const own = { api: 'anthropic', url: service.url, model: 'claude-x', allowHttp: true }
  configure('pi', { providers: { own } }, { provider: 'own' })
  await using bot = run()
  await expect.poll(bot.output, { timeout: 60_000 }).toContain('The bot runs')
  // The stand-in's address is no public one, so it is not asked.
  const files = [{ name: 'plan.txt', url: `${discord.api}/plan.txt`, size: 4 }]
  discord.say({ by: ANN, text: `${mention(BOT)} read this`, files })
  await expect.poll(() => discord.posted(GENERAL).length, { timeout: 60_000 }).toBe(1)
  expect(discord.posted(GENERAL)[0]?.body.content).toBe('from claude')
  expect(service.seen).toHaveLength(1)
  expect(service.seen[0]?.headers['x-api-key']).toBe('sk-team-0123456789')
  expect(service.seen[0]?.body).toContain('> plan.txt: its address is not allowed')
  expect(discord.seenAt('GET', /plan/)).toEqual([])
})
