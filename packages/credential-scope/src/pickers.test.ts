import { describe, expect, test } from 'vitest'
import {
  byChannel,
  byChannelAndSpeaker,
  byPattern,
  bySpeaker,
  type CredentialGetter,
  denyUnless,
  explain,
  fingerprintOf,
  firstOf,
  resolveCredential,
} from './index.ts'
import { fromEnv } from './sources/index.ts'

const origin = 'https://api.example.com'
const key = (name: string) => `sk-${name}-0123456789`
const scope = (channel: string, id = 'u-bob', name = 'Bob') => ({ channel, speaker: { id, name } })
const pick = async (getter: CredentialGetter, ...who: Parameters<typeof scope>) => getter(scope(...who))

describe('tables', () => {
  test('T1 T2 byChannel gives each channel its own, and no other', async () => {
    const getter = byChannel({
      'demo:a': key('a'),
      'demo:b': () => key('b'),
      'demo:c': async () => undefined,
    })
    expect(await pick(getter, 'demo:a')).toBe(key('a'))
    expect(await pick(getter, 'demo:b')).toBe(key('b'))
    for (const channel of ['demo:c', 'demo:d', 'demo', 'demo:', '__proto__', 'constructor', '']) {
      expect(await pick(getter, channel)).toBe(undefined)
    }
  })

  test('T3 bySpeaker looks at the id, in every channel', async () => {
    const getter = bySpeaker({ 'u-ann': key('ann') })
    expect(await pick(getter, 'demo:a', 'u-ann')).toBe(key('ann'))
    expect(await pick(getter, 'demo:b', 'u-ann')).toBe(key('ann'))
    expect(await pick(getter, 'demo:a', 'u-bob')).toBe(undefined)
  })

  test('T3 byChannelAndSpeaker needs both, interleaved 200 times', async () => {
    const getter = byChannelAndSpeaker({
      'demo:team': { 'u-ann': key('ann'), 'u-bob': key('bob') },
      'demo:b': new Map([['u-ann', key('ann-b')]]),
    })
    for (let i = 0; i < 200; i++) {
      const [id, name] = i % 2 === 0 ? ['u-ann', 'ann'] : ['u-bob', 'bob']
      const secret = await resolveCredential({ getter, scope: scope('demo:team', id), origin })
      expect(secret.fingerprint).toBe(fingerprintOf(key(name as string)))
    }
    expect(await pick(getter, 'demo:b', 'u-ann')).toBe(key('ann-b'))
    expect(await pick(getter, 'demo:b', 'u-bob')).toBe(undefined)
    expect(await pick(getter, 'demo:c', 'u-ann')).toBe(undefined)
  })

  test('W-09 a display name never chooses', async () => {
    for (const getter of [
      bySpeaker({ Ann: key('ann') }),
      byChannelAndSpeaker({ 'demo:a': { Ann: key('ann') } }),
      byChannel({ Ann: key('ann') }),
      byPattern({ 'Ann*': key('ann') }),
    ]) {
      expect(await pick(getter, 'demo:a', 'u-eve', 'Ann')).toBe(undefined)
    }
  })

  test('T1 an empty table refuses everything', async () => {
    for (const getter of [
      byChannel({}),
      bySpeaker(new Map()),
      byChannelAndSpeaker({}),
      byPattern({}),
      firstOf(),
    ]) {
      await expect(resolveCredential({ getter, scope: scope('demo:a'), origin })).rejects.toMatchObject({
        code: 'credential_missing',
      })
    }
  })

  test('a table is copied', async () => {
    const table = new Map([['demo:a', key('a')]])
    const getter = byChannel(table)
    table.set('demo:a', key('b'))
    expect(await pick(getter, 'demo:a')).toBe(key('a'))
  })

  test('a missing table or an unusable entry is refused at once', () => {
    for (const make of [
      () => byChannel(undefined as never),
      () => byChannel(null as never),
      () => bySpeaker({ 'u-ann': undefined } as never),
      () => byChannelAndSpeaker({ 'demo:a': key('a') } as never),
      () => byChannel({ '': key('a') }),
      () => byChannel(new Map([[7, key('a')]]) as never),
      () => firstOf(undefined as never),
      () => denyUnless(true as never, () => key('a')),
      () => denyUnless(() => true, undefined as never),
    ]) {
      expect(make).toThrow(TypeError)
    }
  })
})

describe('byPattern', () => {
  test('the longest fitting pattern chooses, wherever it stands', async () => {
    const entries: [string, string][] = [
      ['discord:*', key('discord')],
      ['discord:guild-1/*', key('guild')],
      ['discord:guild-1/7', key('seven')],
      ['slack:*', key('slack')],
    ]
    for (const table of [new Map(entries), new Map(entries.toReversed())]) {
      const getter = byPattern(table)
      expect(await pick(getter, 'discord:x')).toBe(key('discord'))
      expect(await pick(getter, 'discord:')).toBe(key('discord'))
      expect(await pick(getter, 'discord:guild-1/8')).toBe(key('guild'))
      expect(await pick(getter, 'discord:guild-1/7')).toBe(key('seven'))
      expect(await pick(getter, 'slack:x')).toBe(key('slack'))
      for (const channel of ['discord', 'xdiscord:x', 'irc:x', 'DISCORD:x']) {
        expect(await pick(getter, channel)).toBe(undefined)
      }
    }
  })

  test('a pattern that is too broad, or not understood, is refused at once', () => {
    expect(() => byPattern({ '*': key('a') })).toThrow(/every channel/)
    expect(() => byPattern({ '*:a': key('a') })).toThrow(/before its end/)
    expect(() => byPattern({ 'a*b*': key('a') })).toThrow(/before its end/)
    expect(() => byPattern({ 'a**': key('a') })).toThrow(/before its end/)
  })
})

describe('firstOf and denyUnless', () => {
  test.each([
    ['undefined', undefined],
    ['null', null],
    ['an empty text', ''],
    ['an empty token', { token: '' }],
    ['no token', {}],
  ])('firstOf goes on after %s', async (_what, answer) => {
    const getter = firstOf(
      () => answer as never,
      byChannel({ 'demo:a': key('a') }),
      () => expect.unreachable(),
    )
    expect(await pick(getter, 'demo:a')).toBe(key('a'))
  })

  test('firstOf takes an answer with an origin as it is', async () => {
    expect(
      await pick(
        firstOf(() => ({ token: key('a'), origin })),
        'demo:a',
      ),
    ).toEqual({ token: key('a'), origin })
  })

  test('T2 a failure is not "none": firstOf does not go on', async () => {
    const getter = firstOf(
      () => Promise.reject(new TypeError('vault is down')),
      () => key('shared'),
    )
    await expect(resolveCredential({ getter, scope: scope('demo:a'), origin })).rejects.toMatchObject({
      code: 'credential_error',
    })
  })

  test('T2 nothing falls back by itself', async () => {
    const getter = byChannel({ 'demo:a': bySpeaker({ 'u-ann': key('ann') }) })
    expect(await pick(getter, 'demo:a', 'u-bob')).toBe(undefined)
  })

  test.each([false, undefined, 1, 'yes', Promise.resolve(false)])(
    'denyUnless refuses for %s',
    async (answer) => {
      const getter = denyUnless(
        () => answer as never,
        () => expect.unreachable(),
      )
      expect(await pick(getter, 'demo:a')).toBe(undefined)
    },
  )

  test('denyUnless asks the getter behind for exactly true', async () => {
    for (const allow of [() => true, async () => true]) {
      expect(
        await pick(
          denyUnless(allow, () => key('a')),
          'demo:a',
        ),
      ).toBe(key('a'))
    }
    const broken = denyUnless(
      () => {
        throw new TypeError('x')
      },
      () => key('a'),
    )
    await expect(pick(broken, 'demo:a')).rejects.toThrow('x')
  })
})

describe('explain', () => {
  const env = { TEAM_KEY: key('team'), SHARED_KEY: key('shared') }
  const getter = firstOf(
    byChannelAndSpeaker({ 'demo:team': { 'u-ann': key('ann') } }),
    byChannel({ 'demo:team': fromEnv('TEAM_KEY', { env }), 'demo:unset': fromEnv('NOT_SET', { env }) }),
    denyUnless(
      ({ channel }) => channel !== 'demo:never',
      byPattern({ 'demo:*': fromEnv('SHARED_KEY', { env }) }),
    ),
  )

  test.each([
    ['demo:team', 'u-ann', 'channel demo:team, speaker u-ann', 'literal', 'ann'],
    ['demo:team', 'u-bob', 'channel demo:team', 'env:TEAM_KEY', 'team'],
    ['demo:other', 'u-bob', 'pattern demo:*', 'env:SHARED_KEY', 'shared'],
    ['demo:unset', 'u-bob', 'pattern demo:*', 'env:SHARED_KEY', 'shared'],
  ])('%s, %s: rule, source and fingerprint, never the key', async (channel, id, rule, source, name) => {
    const found = await explain(getter, scope(channel, id))
    expect(found).toEqual({ rule, source, fingerprint: fingerprintOf(key(name)), outcome: 'ok' })
    expect(JSON.stringify(found)).not.toContain('sk-')
  })

  test('rules inside rules are named from the outside in', async () => {
    const nested = byPattern({ 'demo:*': byChannel({ 'demo:a': bySpeaker({ 'u-bob': key('bob') }) }) })
    expect((await explain(nested, scope('demo:a'))).rule).toBe(
      'pattern demo:* > channel demo:a > speaker u-bob',
    )
  })

  test('no credential, a failure, and a hook that is a black box', async () => {
    const none = { source: null, fingerprint: null }
    expect(await explain(getter, scope('demo:never'))).toEqual({
      ...none,
      rule: 'denied',
      outcome: 'credential_missing',
    })
    expect(await explain(byChannel({}), scope('demo:a'))).toEqual({
      ...none,
      rule: null,
      outcome: 'credential_missing',
    })
    const failing = byChannel({ 'demo:a': () => Promise.reject(new TypeError(key('a'))) })
    expect(await explain(failing, scope('demo:a'))).toEqual({
      ...none,
      rule: 'channel demo:a',
      outcome: 'credential_error',
    })
    const foreign = { token: key('a'), origin }
    expect(await explain(() => foreign, scope('demo:a'))).toEqual({
      ...none,
      rule: null,
      fingerprint: fingerprintOf(key('a')),
      outcome: 'ok',
    })
    expect(await explain(() => ({ ...foreign, origin: 'x' }), scope('demo:a'))).toMatchObject({
      outcome: 'credential_origin',
    })
    expect(await explain(() => new Promise(() => {}), scope('demo:a'), { deadlineMs: 5 })).toMatchObject({
      outcome: 'credential_timeout',
    })
  })

  test('a caller’s mistake is thrown', async () => {
    await expect(explain(getter, scope(''))).rejects.toMatchObject({ code: 'scope_invalid' })
    await expect(explain(getter, scope('demo:a'), { deadlineMs: -1 })).rejects.toThrow(TypeError)
  })
})
