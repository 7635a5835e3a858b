import { afterEach, beforeEach, expect, test } from 'vitest'
import { type OperatorDir, operatorDir } from '../operator-kit.ts'
import { freshStateDir, type RunningDemo, runDemo } from '../run-demo.ts'
import { mention } from './payloads.ts'
import { ANN, BOT, GENERAL, OLGA } from './people.ts'
import { openStandIn, type StandIn } from './stand-in.ts'

let discord: StandIn
let place: OperatorDir

beforeEach(async () => {
  discord = await openStandIn()
  const { api, token } = discord
  place = operatorDir(
    {
      channels: { [`discord:${GENERAL}`]: { mode: 'sealed' } },
      surfaces: { discord: { token: 'file:./discord.token', ownerId: OLGA.id, api } },
    },
    [{ channel: 'discord:*', key: 'file:./team.key' }],
  )
  place.put('team.key', 'sk-team-0123456789')
  place.put('discord.token', `${token}\n`)
})

afterEach(async () => {
  place[Symbol.dispose]()
  await discord[Symbol.asyncDispose]()
})

const run = (...args: string[]): RunningDemo =>
  runDemo([...args, '--config', place.config], { stateDir: freshStateDir() })

test('a bot for Discord alone answers, tells its health, and stops in order', async () => {
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
  await using well = run('doctor')
  await well.exited
  expect(well.output()).toMatch(/ok +discord +Discord takes the token of parrot, which is in one server/)
  place.put('discord.token', 'some.other-token')
  await using bot = run()
  expect(await bot.exited).toBe(1)
  expect(bot.output()).toContain('Discord does not take this token. Make a new one')
  expect(bot.output()).not.toContain('some.other-token')
})
