import {
  chmodSync,
  chownSync,
  mkdirSync,
  readFileSync,
  renameSync,
  rmSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { tempDir } from '@sandbox/testing'
import Schema from 'typebox/schema'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { CredentialError, fingerprintOf, resolveCredential } from '../index.ts'
import { type KeyFile, type KeyFileOptions, keyFile } from './index.ts'

const alphaKey = 'sk-alpha-0123456789'
const teamKey = 'sk-team-0123456789'
const annKey = 'sk-ann-0123456789'
const env = { ALPHA_KEY: alphaKey, TEAM_KEY: `${teamKey}\n` }

let dir: ReturnType<typeof tempDir>
let path: string
let problems: CredentialError[]

beforeEach(() => {
  dir = tempDir()
  path = join(dir.path, 'keys.json')
  problems = []
})
afterEach(() => dir[Symbol.dispose]())

const rules = [
  { channel: 'demo:alpha', key: 'env:ALPHA_KEY' },
  { channel: 'demo:team', key: 'env:TEAM_KEY' },
  { channel: 'demo:team', speaker: 'u-ann', key: 'file:./ann.key' },
]

/** Writes as careful programs do: a new file, renamed over the old one. Long ago, so that it counts as settled. */
function put(file: string, text: string, mode = 0o600): void {
  writeFileSync(`${file}.new`, text, { mode })
  chmodSync(`${file}.new`, mode)
  utimesSync(`${file}.new`, new Date(1_700_000_000_000), new Date(1_700_000_000_000))
  renameSync(`${file}.new`, file)
}

function open(more: Partial<KeyFileOptions> = {}): KeyFile {
  return keyFile({ path, env, onProblem: (problem) => problems.push(problem), ...more })
}

function standard(): KeyFile {
  put(path, JSON.stringify({ rules }))
  put(join(dir.path, 'ann.key'), `${annKey}\n`)
  return open()
}

const scope = (channel: string, id = 'u-bob') => ({ channel, speaker: { id, name: 'Ann' } })
const ask = (keys: KeyFile, channel: string, id?: string) => keys.getter(scope(channel, id))

function refusal(run: () => unknown): string {
  try {
    run()
  } catch (error) {
    if (CredentialError.isInstance(error) && error.code === 'source_invalid') return error.message
    throw error
  }
  return 'nothing was refused'
}

describe('choosing', () => {
  test('T3 channel and speaker beat channel; no rule means no key', () => {
    const keys = standard()
    expect(ask(keys, 'demo:alpha')).toBe(alphaKey)
    expect(ask(keys, 'demo:team')).toBe(teamKey)
    expect(ask(keys, 'demo:team', 'u-ann')).toBe(annKey)
    expect(ask(keys, 'demo:alpha', 'u-ann')).toBe(alphaKey)
    expect(ask(keys, 'demo:other', 'u-ann')).toBe(undefined)
  })

  test('T2 the place of a rule in the file means nothing', () => {
    put(path, JSON.stringify({ rules: rules.toReversed() }))
    put(join(dir.path, 'ann.key'), annKey)
    expect(ask(open(), 'demo:team', 'u-ann')).toBe(annKey)
    expect(ask(open(), 'demo:team')).toBe(teamKey)
  })

  test('T1 CS-09 an empty table refuses everything', async () => {
    put(path, '{"rules":[]}')
    const keys = open()
    keys.check()
    const pending = resolveCredential({
      getter: keys.getter,
      scope: scope('demo:alpha'),
      origin: 'https://a.example',
    })
    await expect(pending).rejects.toMatchObject({ code: 'credential_missing' })
  })

  test('W-09 a display name never chooses', () => {
    put(path, JSON.stringify({ rules: [{ channel: 'demo:team', speaker: 'Ann', key: 'env:TEAM_KEY' }] }))
    expect(ask(open(), 'demo:team', 'u-ann')).toBe(undefined)
  })

  test('names like those of Object.prototype are only names', () => {
    put(
      path,
      '{"rules":[{"channel":"__proto__","key":"env:ALPHA_KEY"},{"channel":"x","key":"env:constructor"}]}',
    )
    const keys = open()
    expect(ask(keys, '__proto__')).toBe(alphaKey)
    expect(ask(keys, 'toString')).toBe(undefined)
    expect(refusal(() => ask(keys, 'x'))).toContain('env:constructor is not set')
  })

  test('decision 16: a rule may name the origin that its key is for', async () => {
    put(path, '{"rules":[{"channel":"a","key":"env:ALPHA_KEY","origin":"https://a.example/v1"}]}')
    const ask = { getter: open().getter, scope: scope('a') }
    expect((await resolveCredential({ ...ask, origin: 'https://a.example' })).fingerprint).toBe(
      fingerprintOf(alphaKey),
    )
    await expect(resolveCredential({ ...ask, origin: 'https://b.example' })).rejects.toMatchObject({
      code: 'credential_origin',
    })
  })

  test('explain names rule, source and fingerprint, never the key', () => {
    const keys = standard()
    expect(keys.explain(scope('demo:team', 'u-ann'))).toEqual({
      rule: 'channel demo:team, speaker u-ann',
      source: 'file:./ann.key',
      fingerprint: fingerprintOf(annKey),
    })
    expect(keys.explain(scope('demo:team'))).toEqual({
      rule: 'channel demo:team',
      source: 'env:TEAM_KEY',
      fingerprint: fingerprintOf(teamKey),
    })
    expect(keys.explain(scope('demo:none'))).toEqual({
      rule: undefined,
      source: undefined,
      fingerprint: undefined,
    })
    rmSync(join(dir.path, 'ann.key'))
    expect(keys.explain(scope('demo:team', 'u-ann'))).toMatchObject({
      source: 'file:./ann.key',
      fingerprint: undefined,
    })
  })

  test('process.env is the default', () => {
    put(path, JSON.stringify({ rules: [{ channel: 'a', key: 'env:SANDBOX_TEST_KEY' }] }))
    process.env.SANDBOX_TEST_KEY = alphaKey
    try {
      expect(ask(keyFile({ path }), 'a')).toBe(alphaKey)
    } finally {
      delete process.env.SANDBOX_TEST_KEY
    }
  })
})

describe('decision 34: the file changes', () => {
  test('T8 the next call uses the changed file', () => {
    const keys = standard()
    expect(ask(keys, 'demo:alpha')).toBe(alphaKey)
    put(path, JSON.stringify({ rules: [{ channel: 'demo:alpha', key: 'env:TEAM_KEY' }] }))
    expect(ask(keys, 'demo:alpha')).toBe(teamKey)
    expect(ask(keys, 'demo:team')).toBe(undefined)
  })

  test('T8 the next call uses a changed key, also when it is as long and as old as the one before', () => {
    const keys = standard()
    expect(ask(keys, 'demo:team', 'u-ann')).toBe(annKey)
    put(join(dir.path, 'ann.key'), annKey.replace('ann', 'eve'))
    expect(ask(keys, 'demo:team', 'u-ann')).toBe(annKey.replace('ann', 'eve'))
  })

  test('a file that is written in place, again and again in one tick of the clock, is never missed', () => {
    const keys = standard()
    for (let i = 10; i < 60; i++) {
      writeFileSync(join(dir.path, 'ann.key'), `sk-number-${i}-0123`)
      expect(ask(keys, 'demo:team', 'u-ann')).toBe(`sk-number-${i}-0123`)
    }
  })

  test.each<[string, () => void, RegExp]>([
    [
      'half-written',
      () => put(path, '{"rules":[{"channel":"demo'),
      /keys\.json: not JSON, comments aside: line 1/,
    ],
    ['empty', () => put(path, ''), /not JSON/],
    ['wrong in a rule', () => put(path, '{"rules":[{"channel":"demo:alpha"}]}'), /rules\[0\]\.key/],
    ['readable by others', () => chmodSync(path, 0o644), /mode is 0644.*chmod 0600/],
    [
      'replaced by a link',
      () => {
        renameSync(path, `${path}.real`)
        symlinkSync(`${path}.real`, path)
      },
      /symbolic link/,
    ],
    [
      'replaced by a directory',
      () => {
        rmSync(path)
        mkdirSync(path)
      },
      /not a regular file/,
    ],
  ])('a file that is %s keeps the last good state and is reported once', (_what, spoil, message) => {
    const keys = standard()
    expect(ask(keys, 'demo:alpha')).toBe(alphaKey)
    spoil()
    for (let i = 0; i < 3; i++) expect(ask(keys, 'demo:alpha')).toBe(alphaKey)
    expect(problems.map((problem) => [problem.code, message.test(problem.message)])).toEqual([
      ['source_invalid', true],
    ])
    rmSync(path, { recursive: true })
    put(path, JSON.stringify({ rules: [{ channel: 'demo:alpha', key: 'env:TEAM_KEY' }] }))
    expect(ask(keys, 'demo:alpha')).toBe(teamKey)
    put(path, 'broken again')
    expect(ask(keys, 'demo:alpha')).toBe(teamKey)
    expect(problems).toHaveLength(2)
  })

  test('a key that broke keeps its last good state and is reported', () => {
    const keys = standard()
    expect(ask(keys, 'demo:team', 'u-ann')).toBe(annKey)
    put(join(dir.path, 'ann.key'), '')
    expect(ask(keys, 'demo:team', 'u-ann')).toBe(annKey)
    expect(problems.map(({ message }) => message)).toEqual([
      expect.stringContaining('ann.key: the key is empty'),
    ])
  })

  test('a deleted file refuses everything, and a new one is used', () => {
    const keys = standard()
    expect(ask(keys, 'demo:alpha')).toBe(alphaKey)
    rmSync(path)
    expect(refusal(() => ask(keys, 'demo:alpha'))).toContain('does not exist')
    expect(refusal(() => keys.explain(scope('demo:alpha')))).toContain('does not exist')
    put(path, 'broken')
    expect(refusal(() => ask(keys, 'demo:alpha'))).toContain('not JSON')
    put(path, JSON.stringify({ rules }))
    expect(ask(keys, 'demo:alpha')).toBe(alphaKey)
  })

  test('a deleted key refuses its scope and no other', () => {
    const keys = standard()
    expect(ask(keys, 'demo:team', 'u-ann')).toBe(annKey)
    rmSync(join(dir.path, 'ann.key'))
    expect(refusal(() => ask(keys, 'demo:team', 'u-ann'))).toContain('channel demo:team, speaker u-ann')
    expect(ask(keys, 'demo:team')).toBe(teamKey)
  })

  test('a callback that throws breaks nothing, and none is needed', () => {
    standard()
    for (const onProblem of [
      () => {
        throw new TypeError('x')
      },
      undefined,
    ]) {
      put(path, JSON.stringify({ rules }))
      const keys = keyFile({ path, env, ...(onProblem && { onProblem }) })
      expect(ask(keys, 'demo:alpha')).toBe(alphaKey)
      put(path, 'broken')
      expect(ask(keys, 'demo:alpha')).toBe(alphaKey)
    }
  })
})

describe('check', () => {
  test('a good file passes', () => {
    expect(() => standard().check()).not.toThrow()
  })

  test('it never hands out anything before the file was good', () => {
    expect(refusal(() => open().check())).toContain('does not exist')
    expect(refusal(() => ask(open(), 'demo:alpha'))).toContain('does not exist')
  })

  test.each([
    ['an array', '[]', 'must be { "rules"'],
    ['no rules', '{}', 'must be { "rules"'],
    ['rules that are no list', '{"rules":{}}', 'must be { "rules"'],
    ['another field', '{"rules":[],"sk-oops-123456":1}', 'a field other than $schema, rules'],
    ['a rule that is no object', '{"rules":["x"]}', 'rules[0] is not an object'],
    [
      'another field in a rule',
      '{"rules":[{"channel":"a","key":"env:A","sk-oops":1}]}',
      'rules[0] has a field other than channel, speaker, key, origin, provider, model',
    ],
    ['no channel', '{"rules":[{"key":"env:A"}]}', 'rules[0].channel'],
    ['an empty speaker', '{"rules":[{"channel":"a","speaker":" ","key":"env:A"}]}', 'rules[0].speaker'],
    ['a control character', '{"rules":[{"channel":"a\\u0000b","key":"env:A"}]}', 'rules[0].channel'],
    [
      'the key itself',
      '{"rules":[{"channel":"a","key":"sk-oops-123456"}]}',
      'rules[0].key must be "env:NAME"',
    ],
    ['a key that is no text', '{"rules":[{"channel":"a","key":7}]}', 'rules[0].key'],
    [
      'a double',
      '{"rules":[{"channel":"a","key":"env:A"},{"channel":"a","key":"env:B"}]}',
      'rules[1] repeats the rule for channel a',
    ],
    [
      'a double with a speaker',
      '{"rules":[{"channel":"a","speaker":"s","key":"env:A"},{"channel":"a","speaker":"s","key":"env:B"}]}',
      'rules[1] repeats the rule for channel a, speaker s',
    ],
  ])('%s is refused, with the place and without the text', (_what, text, message) => {
    put(path, text)
    const refused = refusal(() => open().check())
    expect(refused).toContain(`${path}:1: `)
    expect(refused).toContain(message)
    expect(refused).not.toContain('oops')
  })

  test('the published schema refuses what the file format refuses, and allows what it allows', () => {
    const schema = Schema.Compile(
      JSON.parse(readFileSync(new URL('../../schemas/keys.schema.json', import.meta.url), 'utf8')),
    )
    const origin = 'https://a.example'
    const cases: unknown[] = [
      { rules },
      { rules: [] },
      { $schema: './keys.schema.json', rules: [{ channel: 'a b', key: 'env:_A1', origin }] },
      {
        rules: [
          { channel: 'demo:*', key: 'command:vault read x', provider: 'claude', model: 'm' },
          { channel: 'demo:*', speaker: 'u-ann', key: 'oauth:anthropic:./login.json' },
        ],
      },
      ...[{}, [], { rules: {} }, { rules: [], more: 1 }, { rules: ['x'] }],
      ...[
        { key: 'env:ALPHA_KEY' },
        { channel: ' ', key: 'env:ALPHA_KEY' },
        { channel: 'a\u0000', key: 'env:ALPHA_KEY' },
        { channel: 'a', speaker: '', key: 'env:ALPHA_KEY' },
        { channel: 'a', key: 'env:' },
        { channel: 'a', key: 'env:1A' },
        { channel: 'a', key: 'file:' },
        { channel: 'a', key: 'sk-oops-123456' },
        { channel: 'a', key: 'env:ALPHA_KEY', origin: 'api.example' },
        { channel: 'a', key: 'env:ALPHA_KEY', more: 1 },
        { channel: '*', key: 'env:ALPHA_KEY' },
        { channel: 'a*b', key: 'env:ALPHA_KEY' },
        { channel: 'a**', key: 'env:ALPHA_KEY' },
        { channel: 'a', key: 'command: x' },
        { channel: 'a', key: 'oauth:./login.json' },
        { channel: 'a', key: 'env:ALPHA_KEY', provider: '' },
        { channel: 'a', key: 'env:ALPHA_KEY', model: 7 },
      ].map((rule) => ({ rules: [rule] })),
    ]
    const verdicts = cases.map((value) => {
      put(path, JSON.stringify(value))
      const format = refusal(() => ask(open(), 'none:none')) === 'nothing was refused'
      return [JSON.stringify(value), schema.Check(value), format]
    })
    expect(verdicts.filter(([, bySchema, byFormat]) => bySchema !== byFormat)).toEqual([])
    expect(verdicts.filter(([, bySchema]) => bySchema)).toHaveLength(4)
  })

  test('$schema may stand there, for editors', () => {
    put(path, '{"$schema":"./keys.schema.json","rules":[]}')
    expect(() => open().check()).not.toThrow()
  })

  test('W-23 it names every key that is not there or cannot be used', () => {
    put(
      path,
      JSON.stringify({
        rules: [
          { channel: 'a', key: 'env:NOT_SET' },
          { channel: 'b', key: 'env:SHORT' },
          { channel: 'c', key: 'file:none.key' },
          { channel: 'd', key: 'file:open.key' },
          { channel: 'e', key: 'env:ALPHA_KEY' },
        ],
      }),
    )
    put(join(dir.path, 'open.key'), annKey, 0o644)
    const lines = refusal(() => open({ env: { ...env, SHORT: 'k1' } }).check()).split('\n')
    expect(lines).toEqual([
      expect.stringMatching(/keys\.json:1: channel a: env:NOT_SET is not set$/),
      expect.stringMatching(/channel b: env:SHORT: the key is shorter than 8 characters/),
      expect.stringMatching(/channel c: .*none\.key: the file does not exist/),
      expect.stringMatching(/channel d: .*open\.key: its mode is 0644, others may read it: chmod 0600/),
    ])
  })

  test('a file of somebody else is refused', ({ skip }) => {
    if (process.geteuid?.() !== 0) skip()
    standard()
    chownSync(path, 12345, 12345)
    expect(refusal(() => open().check())).toContain('belongs to user 12345')
  })

  test('a key file that is far too large is refused', () => {
    put(path, JSON.stringify({ rules: [{ channel: 'a', key: 'file:large.key' }] }))
    put(join(dir.path, 'large.key'), 'k'.repeat(65 * 1024))
    expect(refusal(() => open().check())).toContain('larger than 65536 bytes')
  })
})
