import { chmodSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { tempDir } from '@sandbox/testing'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { CredentialError, explain, fingerprintOf, resolveCredential } from '../index.ts'
import { type KeyFile, type KeyFileOptions, keyFile } from './index.ts'

const env = {
  ALL: 'sk-all-0123456789',
  TEAM: 'sk-team-0123456789',
  ANN: 'sk-ann-0123456789',
  LONG: 'sk-long-0123456789',
}
const providers = { claude: 'https://api.anthropic.com', local: 'http://127.0.0.1:8080/v1' }

let dir: ReturnType<typeof tempDir>
let path: string

beforeEach(() => {
  dir = tempDir()
  path = join(dir.path, 'keys.json')
})
afterEach(() => dir[Symbol.dispose]())

function put(text: string): void {
  writeFileSync(path, text, { mode: 0o600 })
}

function withRules(rules: readonly object[], more: Partial<KeyFileOptions> = {}): KeyFile {
  put(JSON.stringify({ rules }))
  return keyFile({ path, env, ...more })
}

function program(name: string, script: string): string {
  const file = join(dir.path, name)
  writeFileSync(file, `#!/bin/sh\n${script}\n`)
  chmodSync(file, 0o700)
  return file
}

const scope = (channel: string, id = 'u-bob') => ({ channel, speaker: { id, name: id } })
const spend = (keys: KeyFile, channel: string, origin: string) =>
  resolveCredential({ getter: keys.getter, scope: scope(channel), origin })

function refusal(text: string, more: Partial<KeyFileOptions> = {}): string {
  put(text)
  try {
    keyFile({ path, env, ...more }).check()
  } catch (error) {
    if (CredentialError.isInstance(error)) return error.message.replace(`${path}:`, '')
    throw error
  }
  return 'nothing was refused'
}

describe('patterns', () => {
  test.each([
    ['demo:x', 'u-bob', env.ALL],
    ['demo:team', 'u-bob', env.TEAM],
    ['demo:team-7', 'u-bob', env.LONG],
    ['demo:team', 'u-ann', env.ANN],
    ['demo:x', 'u-ann', env.ANN],
    ['demo:', 'u-bob', env.ALL],
    ['demo', 'u-bob', undefined],
    ['other:x', 'u-ann', undefined],
  ])('T3 %s as %s: a speaker’s rule first, then whole keys, then the longest pattern', (channel, id, key) => {
    const keys = withRules([
      { channel: 'demo:*', key: 'env:ALL' },
      { channel: 'demo:team', key: 'env:TEAM' },
      { channel: 'demo:team-*', key: 'env:LONG' },
      { channel: 'demo:*', speaker: 'u-ann', key: 'env:ANN' },
    ])
    expect(keys.getter(scope(channel, id))).toBe(key)
  })

  test('explain names the pattern', () => {
    const keys = withRules([{ channel: 'demo:*', key: 'env:ALL' }])
    expect(keys.explain(scope('demo:x')).rule).toBe('channel demo:*')
  })

  test.each(['*', ' *', 'a*b', 'a**'])('%j is no pattern', (channel) => {
    expect(refusal(JSON.stringify({ rules: [{ channel, key: 'env:ALL' }] }))).toContain(
      'has a * at its end only',
    )
  })
})

describe('providers', () => {
  const rules = [{ channel: 'a', key: 'env:ALL', provider: 'claude', model: 'claude-x' }]

  test('decision 16: a key is for the origin of its provider, and goes nowhere else', async () => {
    const keys = withRules(rules, { providers })
    expect((await spend(keys, 'a', 'https://api.anthropic.com')).fingerprint).toBe(fingerprintOf(env.ALL))
    await expect(spend(keys, 'a', 'https://api.openai.com')).rejects.toMatchObject({
      code: 'credential_origin',
    })
  })

  test('explain and rules tell provider and model', () => {
    const keys = withRules(rules, { providers })
    expect(keys.explain(scope('a'))).toMatchObject({ provider: 'claude', model: 'claude-x' })
    expect(keys.rules()).toEqual([{ ...rules[0], origin: providers.claude }])
  })

  test('without a list of providers a name is only told', () => {
    const keys = withRules([{ channel: 'a', key: 'env:ALL', provider: 'any' }])
    expect(keys.getter(scope('a'))).toBe(env.ALL)
    expect(keys.explain(scope('a')).provider).toBe('any')
  })

  test('a name that the host does not know is refused, also one of Object.prototype', () => {
    for (const provider of ['cloude', 'constructor']) {
      const text = JSON.stringify({ rules: [{ channel: 'a', key: 'env:ALL', provider }] })
      expect(refusal(text, { providers })).toBe(
        '1: rules[0].provider names no provider: known are claude, local',
      )
    }
  })

  test('an origin beside it must be the same', () => {
    const text = (origin: string) =>
      JSON.stringify({ rules: [{ channel: 'a', key: 'env:ALL', provider: 'local', origin }] })
    expect(refusal(text('https://evil.example'), { providers })).toContain('not that of the provider local')
    expect(refusal(text('http://127.0.0.1:8080'), { providers })).toBe('nothing was refused')
  })
})

describe('commands', () => {
  test('W-06 a command is run in the directory of the file, without a shell, and its key is kept for a while', async () => {
    program('vault', 'echo run >> runs; echo "sk-$1-$SANDBOX_SPEAKER_ID-0123456789"')
    const keys = withRules([{ channel: 'a', key: 'command:./vault  $HOME;x' }])
    expect(keys.explain(scope('a'))).toEqual({
      rule: 'channel a',
      source: 'command:./vault',
      deferred: true,
    })
    expect(await keys.getter(scope('a'))).toBe('sk-$HOME;x-u-bob-0123456789')
    expect(await keys.getter(scope('a', 'u-ann'))).toBe('sk-$HOME;x-u-ann-0123456789')
    expect(await keys.getter(scope('a'))).toBe('sk-$HOME;x-u-bob-0123456789')
    expect(keys.explain(scope('a')).fingerprint).toBe(fingerprintOf('sk-$HOME;x-u-bob-0123456789'))
    expect(readFileSync(join(dir.path, 'runs'), 'utf8')).toBe('run\nrun\n')
  })

  test('a command that fails fails its scope, with the line and without its arguments', async () => {
    program('vault', 'echo sk-oops-0123456789; exit 3')
    put('{ "rules": [\n  // ours\n  { "channel": "a", "key": "command:./vault --token sk-arg" }\n] }')
    const keys = keyFile({ path })
    keys.check()
    const { outcome, source } = await explain(keys.getter, scope('a'))
    expect([outcome, source]).toEqual(['credential_error', 'command:./vault'])
    const error = await (keys.getter(scope('a')) as Promise<string>).catch((cause: Error) => cause.message)
    expect(error).toContain('keys.json:3: channel a: The command vault ended with exit code 3')
    expect(error).not.toMatch(/oops|sk-arg/)
  })

  test('an origin that a command prints is never replaced by the rule’s', async () => {
    program('vault', `echo '{ "token": "sk-printed-0123456789", "origin": "https://b.example" }'`)
    const keys = withRules([{ channel: 'a', key: 'command:./vault', provider: 'claude' }], { providers })
    await expect(spend(keys, 'a', providers.claude)).rejects.toMatchObject({ code: 'credential_origin' })
  })

  test('one that prints nothing has no key for the scope', async () => {
    program('vault', 'exit 0')
    const keys = withRules([{ channel: 'a', key: 'command:./vault', provider: 'claude' }], { providers })
    await expect(spend(keys, 'a', providers.claude)).rejects.toMatchObject({ code: 'credential_missing' })
  })
})

describe('logins', () => {
  const login = (accessToken: string, expiresAt: number) =>
    writeFileSync(
      join(dir.path, 'login.json'),
      JSON.stringify({ accessToken, refreshToken: 'refresh-0123456789', expiresAt }),
      { mode: 0o600 },
    )

  test('T5 a stored login pays, and is refreshed by its service', async () => {
    login('access-0123456789', Date.now() + 3_600_000)
    const logins = {
      own: async () => ({
        kind: 'pair' as const,
        pair: {
          accessToken: 'access-new-0123',
          refreshToken: 'r-0123456789',
          expiresAt: Date.now() + 7_200_000,
        },
      }),
    }
    const keys = withRules([{ channel: 'a', key: 'oauth:own:./login.json', provider: 'claude' }], {
      logins,
      providers,
    })
    expect((await spend(keys, 'a', providers.claude)).fingerprint).toBe(fingerprintOf('access-0123456789'))
    login('access-0123456789', Date.now() - 1)
    expect((await spend(keys, 'a', providers.claude)).fingerprint).toBe(fingerprintOf('access-new-0123'))
    expect(keys.explain(scope('a'))).toMatchObject({
      source: 'oauth:own:./login.json',
      fingerprint: fingerprintOf('access-new-0123'),
    })
  })

  test('a service that nobody knows is refused; anthropic and codex are known', () => {
    const text = (service: string) =>
      JSON.stringify({ rules: [{ channel: 'a', key: `oauth:${service}:./login.json` }] })
    expect(refusal(text('other'))).toContain('known are anthropic, codex')
    for (const service of ['anthropic', 'codex']) expect(refusal(text(service))).toBe('nothing was refused')
  })
})

describe('comments and lines', () => {
  test('comments may stand anywhere', () => {
    put('// who pays\n{ "rules": [ /* the team */ { "channel": "a", "key": "env:ALL", }, ], }\n')
    expect(keyFile({ path, env }).getter(scope('a'))).toBe(env.ALL)
  })

  test.each([
    [
      '{\n "rules": [\n  { "channel": "a", "key": "env:ALL" }\n  { "channel": "b" }\n]}',
      '4: a comma or ] is',
    ],
    ['// x\n{\n "rules": [\n  { "channel": "a" }\n]}', '4: rules[0].key must be'],
    ['{ "rules": [\n  { "channel": "a",\n    "key": "sk-oops" }\n]}', '3: rules[0].key must be'],
    ['{ "rules": [\n  { "channel": "a",\n    "oops": 1 }\n]}', '3: rules[0] has a field other than'],
    [
      '{ "rules": [\n  { "channel": "a", "key": "env:ALL" },\n  { "channel": "a", "key": "env:ALL" }]}',
      '3: rules[1] repeats',
    ],
    ['{\n\n "other": [] }', '1: it must be { "rules"'],
    ['{ "rules": [],\n\n "oops": [] }', '3: the top level has a field other than'],
    ['{ "rules": [\n\n  { "channel": "a", "key": "env:NONE" }]}', '3: channel a: env:NONE is not set'],
  ])('a bad edit is refused with its line: %j', (text, message) => {
    expect(refusal(text)).toContain(message)
    expect(refusal(text)).not.toContain('oops')
  })

  test('decision 34: a bad edit keeps the last good state, and the report says which line is wrong', () => {
    const problems: string[] = []
    const keys = withRules([{ channel: 'a', key: 'env:ALL' }], {
      onProblem: ({ message }) => problems.push(message),
    })
    expect(keys.getter(scope('a'))).toBe(env.ALL)
    put('{ "rules": [\n  { "channel": "a", "key": "env:TEAM" },\n  oops\n]}')
    expect(keys.getter(scope('a'))).toBe(env.ALL)
    put('{ "rules": [\n  { "channel": "a", "key": "env:TEAM" },\n  { "channel": "b" }\n]}')
    expect(keys.getter(scope('a'))).toBe(env.ALL)
    expect(problems).toEqual([
      expect.stringContaining('line 3: a value is no text'),
      expect.stringContaining(`${path}:3: rules[1].key must be`),
    ])
  })
})
