import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { keyFile, refreshAt } from '@sandbox/credential-scope/sources'
import { chatText, chatToolCalls, scriptedUpstream } from '@sandbox/testing'
import { expect, test, vi } from 'vitest'
import { ask, operatorDir, runBot } from './operator-kit.ts'
import { replies, visit } from './run-demo.ts'
import { startRoomBot } from './start-room-bot.ts'

// Every test starts processes of its own.
vi.setConfig({ testTimeout: 90_000 })

const speakers = [
  { id: 'u-ann', name: 'Ann' },
  { id: 'u-ben', name: 'Ben' },
]

test('limits of the configuration: who writes too fast is told so and costs nothing, and nobody else is held up', async () => {
  await using service = await scriptedUpstream(() => chatText('an answer'))
  using place = operatorDir(
    {
      providers: { own: { api: 'openai', url: `${service.url}/v1`, model: 'm', allowHttp: true } },
      channels: { 'room:lobby': { mode: 'sealed', speakers } },
      limits: { perSpeakerMinute: 1, perChannelMinute: 2 },
    },
    [{ channel: 'room:*', key: 'env:ANY' }],
  )
  await using bot = runBot(place.config, { ANY: 'sk-any-0123456789' })
  const refused = async (speaker: string) => {
    const page = visit(await bot.address)
    const seen = await page.events(
      (events) => replies(events).length > 0,
      () => page.say('room:lobby', speaker, 'me again'),
    )
    return replies(seen)[0]?.text
  }
  expect((await ask(bot, 'room:lobby', 'u-ann', 'hello')).reply).toBe('an answer')
  expect(await refused('u-ann')).toMatch(
    /^You write faster than I may answer you, so I did not take this message\. Please try again in \d+ s\.$/,
  )
  expect((await ask(bot, 'room:lobby', 'u-ben', 'hello')).reply).toBe('an answer')
  expect(await refused('u-ben')).toMatch(/^You write faster/)
  expect(service.seen).toHaveLength(2)
})

test('a turn that is paid by a stored login: each call has the token of now, and what was refreshed is kept', async () => {
  let issued = 0
  await using tokens = await scriptedUpstream(() => {
    issued += 1
    // The first ends before the second call, which has to ask again.
    const life = issued === 1 ? 1 : 3_600
    return {
      access_token: `access-number-${issued}`,
      refresh_token: `refresh-number-${issued}`,
      expires_in: life,
    }
  })
  await using service = await scriptedUpstream(({ body }) =>
    JSON.parse(body).messages.at(-1).role === 'tool'
      ? chatText('it is late')
      : chatToolCalls([{ name: 'host_clock', input: {} }]),
  )
  using place = operatorDir({}, [{ channel: 'room:*', key: 'oauth:own:./login.json' }])
  const login = { accessToken: 'access-number-0', refreshToken: 'refresh-number-0', expiresAt: 0 }
  place.put('login.json', JSON.stringify(login))
  const endpoint = { url: `${tokens.url}/token`, clientId: 'the-bot', body: 'form' } as const
  const keys = keyFile({ path: place.keys, logins: { own: refreshAt(endpoint, { allowHttp: true }) } })
  await using bot = await startRoomBot({
    stateDir: join(place.dir, 's'),
    modelUrl: `${service.url}/v1`,
    keys,
  })

  expect(await bot.ask('what time is it?')).toBe('it is late')
  expect(await bot.ask('and now?')).toBe('it is late')
  expect(service.seen.map(({ headers }) => headers.authorization)).toEqual([
    'Bearer access-number-1',
    'Bearer access-number-2',
    'Bearer access-number-2',
    'Bearer access-number-2',
  ])
  expect(tokens.seen.map(({ body }) => new URLSearchParams(body).get('refresh_token'))).toEqual([
    'refresh-number-0',
    'refresh-number-1',
  ])
  expect(JSON.parse(readFileSync(join(place.dir, 'login.json'), 'utf8'))).toMatchObject({
    accessToken: 'access-number-2',
    refreshToken: 'refresh-number-2',
  })
  expect(bot.output()).not.toMatch(/(access|refresh)-number/)
})
