import { fingerprintOf } from '@sandbox/credential-scope'
import { dockerGate, dockerSocket } from '@sandbox/testing'
import { describe, expect, test } from 'vitest'
import { discordBot, KEYS } from './discord-bot.ts'
import { mention } from './payloads.ts'
import { ANN, BEN, BOT, GENERAL, OTHER } from './people.ts'

describe.skipIf(!dockerGate())('Discord on a real engine', () => {
  test('a mention is answered from a container, by the key of its channel and speaker', async () => {
    await using on = await discordBot({ driver: 'docker', engineSocket: dockerSocket() ?? '' })
    on.discord.say({ by: ANN, text: `${mention(BOT)} hello`, in: GENERAL })
    on.discord.say({ by: BEN, text: `${mention(BOT)} hello`, in: OTHER })
    await expect.poll(() => on.discord.posted().length, { timeout: 60_000 }).toBe(2)
    for (const { body } of on.discord.posted()) expect(body.content).toMatch(/hello/i)
    expect([on.paid(GENERAL), on.paid(OTHER)]).toEqual([
      [fingerprintOf(KEYS.general)],
      [fingerprintOf(KEYS.ben)],
    ])
    expect(on.bot.bot.isolation).toBe('container')
  })
})
