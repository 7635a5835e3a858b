import { afterEach, beforeEach, expect, test } from 'vitest'
import { BOT } from '../../../test/discord/people.ts'
import { openStandIn, type StandIn } from '../../../test/discord/stand-in.ts'
import { tryDiscord } from './try-discord.ts'

/** As the README has it. */
const SCOPE = '&scope=bot+applications.commands&permissions=274877942784'

let discord: StandIn

beforeEach(async () => {
  discord = await openStandIn()
})

afterEach(() => discord[Symbol.asyncDispose]())

const tried = (token = discord.token) => tryDiscord({ token, api: discord.api })
const answers = (path: RegExp, body: unknown, status = 200) => discord.once('GET', path, { status, body })

test('a token that Discord takes, of a bot that hears and is in a server, is good', async () => {
  expect(await tried()).toBe('Discord takes the token of parrot, which is in one server')
  expect(discord.gateway.heard).toEqual([])
})

test('a token that it does not take is told without it', async () => {
  const error = await tried('not.the-token').catch((thrown: unknown) => thrown)
  expect(error).toMatchObject({ code: 'discord', message: expect.stringContaining('Reset Token') })
  expect(String(error)).not.toContain('not.the-token')
})

test('an application that may not hear, or is in no server, is told what to do', async () => {
  answers(/@me$/, { id: BOT.id, name: BOT.name, flags: 0 })
  await expect(tried()).rejects.toThrow('Turn on Message Content Intent')
  answers(/guilds$/, [])
  await expect(tried()).rejects.toThrow(
    `parrot is in no server yet. Invite it: https://discord.com/oauth2/authorize?client_id=${BOT.id}${SCOPE}`,
  )
})

test('a service that fails or is away is told', async () => {
  answers(/@me$/, undefined, 500)
  await expect(tried()).rejects.toThrow('Discord answers 500.')
  const { api, token } = discord
  await discord[Symbol.asyncDispose]()
  await expect(tryDiscord({ token, api })).rejects.toThrow(
    /cannot be reached: .*(ECONNREFUSED|[Uu]nable to connect)/,
  )
  discord = await openStandIn()
})
