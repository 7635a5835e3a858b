import { chmodSync, existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { tempDir } from '@sandbox/testing'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { type CredentialError, cached, explain, fingerprintOf, resolveCredential } from '../index.ts'
import { type FromCommandOptions, fromCommand, fromEnv, fromFile } from './index.ts'

const scope = { channel: 'demo:alpha', speaker: { id: 'u-ann', name: '-rf "$(x)"' } }
const token = 'sk-alpha-0123456789'

let dir: ReturnType<typeof tempDir>
beforeEach(() => {
  dir = tempDir()
})
afterEach(() => dir[Symbol.dispose]())

describe('fromEnv', () => {
  test('CS-09 a variable is read on each call; without one there is no credential', () => {
    const env: Record<string, string> = {}
    const getter = fromEnv('KEY', { env })
    expect(getter(scope)).toBe(undefined)
    env.KEY = token
    expect(getter(scope)).toBe(token)
    expect(fromEnv('constructor', { env })(scope)).toBe(undefined)
  })

  test('process.env is the default', () => {
    process.env.SANDBOX_TEST_FROM_ENV = token
    try {
      expect(fromEnv('SANDBOX_TEST_FROM_ENV')(scope)).toBe(token)
    } finally {
      delete process.env.SANDBOX_TEST_FROM_ENV
    }
  })

  test('something that is no name is refused, since it may be the key', () => {
    for (const name of ['', 'sk-alpha', 'A=B', '1A']) expect(() => fromEnv(name)).toThrow(TypeError)
  })
})

describe('fromFile', () => {
  test('decision 34: changed, broken, deleted', async () => {
    const path = join(dir.path, 'a.key')
    const problems: CredentialError[] = []
    const getter = fromFile({ path, onProblem: (problem) => problems.push(problem) })
    expect(() => getter(scope)).toThrow(/does not exist/)
    writeFileSync(path, `${token}\n`, { mode: 0o600 })
    expect(getter(scope)).toBe(token)
    expect(await explain(getter, scope)).toMatchObject({
      source: `file:${path}`,
      fingerprint: fingerprintOf(token),
    })
    writeFileSync(path, 'sk-beta-0123456789')
    expect(getter(scope)).toBe('sk-beta-0123456789')
    chmodSync(path, 0o640)
    expect([getter(scope), getter(scope)]).toEqual(['sk-beta-0123456789', 'sk-beta-0123456789'])
    expect(problems.map(({ message }) => message)).toEqual([expect.stringContaining('mode is 0640')])
    rmSync(path)
    expect(() => getter(scope)).toThrow(/does not exist/)
  })
})

describe('fromCommand', () => {
  const node = (script: string, more: Partial<FromCommandOptions> = {}) =>
    fromCommand({ command: [process.execPath, '-e', script], timeoutMs: 15_000, ...more })
  const sh = (script: string, more: Partial<FromCommandOptions> = {}) =>
    fromCommand({ command: ['/bin/sh', '-c', script], timeoutMs: 15_000, ...more })

  test('T9 it prints a credential, or JSON with its end', async () => {
    expect(await sh(`echo ${token}`)(scope)).toBe(token)
    expect(
      await sh(`echo '{"token":"${token}","expiresAt":"2030-01-01T00:00:00Z","origin":"https://a.example"}'`)(
        scope,
      ),
    ).toEqual({
      token,
      expiresAt: Date.UTC(2030, 0, 1),
      origin: 'https://a.example',
    })
    expect(await sh(`echo '{"token":"${token}","expiresAt":1893456000000}'`)(scope)).toEqual({
      token,
      expiresAt: 1893456000000,
    })
    expect(await sh(`echo '{"token":"${token}","expiresAt":null}'`)(scope)).toEqual({ token })
  })

  test('CS-09 printing nothing is no credential', async () => {
    for (const script of ['true', 'echo', `echo '{}'`, `echo '{"token":null}'`]) {
      expect(await sh(script)(scope)).toBe(undefined)
    }
  })

  test('T9 no shell sees its arguments; it learns the scope by its environment, and nothing else of ours', async () => {
    process.env.SANDBOX_TEST_SECRET = token
    const command: [string, ...string[]] = [
      process.execPath,
      '-e',
      'console.log(JSON.stringify({ token: JSON.stringify([process.argv.slice(1), process.env]) }))',
      '--',
      '$(id)',
      '; id',
    ]
    const answer = await fromCommand({ command, timeoutMs: 15_000 })(scope)
    delete process.env.SANDBOX_TEST_SECRET
    const [args, env] = JSON.parse((answer as { token: string }).token)
    expect(args.slice(-2)).toEqual(['$(id)', '; id'])
    const { PATH, HOME } = process.env
    expect(env).toMatchObject({ SANDBOX_CHANNEL: 'demo:alpha', SANDBOX_SPEAKER_ID: 'u-ann', PATH, HOME })
    expect(Object.keys(env)).not.toContain('SANDBOX_TEST_SECRET')
    expect(JSON.stringify(env)).not.toContain('-rf')
  })

  test('its environment and directory can be given', async () => {
    const answer = await sh('echo "$FROM-$PWD-0123456789"', { env: { FROM: 'x' }, cwd: dir.path })(scope)
    expect(answer).toBe(`x-${dir.path}-0123456789`)
  })

  test.each([
    ['fails', `echo ${token}; exit 3`, 'exit code 3'],
    ['dies', `echo ${token}; kill -9 $$`, 'signal SIGKILL'],
    ['prints broken JSON', `echo '{"token":"${token}"'`, 'printed neither'],
    ['prints a token that is no text', `echo '{"token":7}'`, 'printed neither'],
    ['prints an origin that is no text', `echo '{"token":"${token}","origin":7}'`, 'printed neither'],
    ['prints an odd end', `echo '{"token":"${token}","expiresAt":"soon"}'`, 'printed neither'],
    ['prints an end that is no time', `echo '{"token":"${token}","expiresAt":true}'`, 'printed neither'],
  ])(
    'CS-10 a command that %s fails the call, and its output is in no message',
    async (_what, script, message) => {
      const getter = sh(script)
      const error = await resolveCredential({
        getter,
        scope,
        origin: 'https://a.example',
        deadlineMs: 15_000,
      }).then(
        () => undefined,
        (caught: Error) => caught,
      )
      expect(error).toMatchObject({ code: 'credential_error', cause: { code: 'source_invalid' } })
      const cause = String(error?.cause)
      expect(cause).toContain(message)
      expect(`${error?.message}${cause}`).not.toContain('alpha')
    },
  )

  test('a program that is not there, and one that prints without end', async () => {
    await expect(fromCommand({ command: ['/no/such/program'] })(scope)).rejects.toThrow(
      /could not be started/,
    )
    await expect(sh('yes')(scope)).rejects.toThrow(/more than 65536 bytes/)
  })

  test('W-06 after its time it is killed, with all that it started', async () => {
    const marker = join(dir.path, 'alive')
    const script = `(while :; do date +%s%N > ${marker}; sleep 0.02; done) & wait`
    await expect(sh(script, { timeoutMs: 300 })(scope)).rejects.toThrow(/did not end within 300 ms/)
    await expectQuiet(marker)
  })

  test('W-06 the call’s signal kills it, and none is started after it', async () => {
    const marker = join(dir.path, 'alive')
    const control = new AbortController()
    const script = `(while :; do date +%s%N > ${marker}; sleep 0.02; done) & wait`
    const pending = sh(script)(scope, { signal: control.signal })
    while (!existsSync(marker)) await sleep(5)
    control.abort()
    await expect(pending).rejects.toThrow(/the call is over/)
    await expectQuiet(marker)
    await expect(sh('true')(scope, { signal: AbortSignal.abort() })).rejects.toThrow(/was not started/)
  })

  test('T9 cached around it runs it once for all', async () => {
    const log = join(dir.path, 'runs')
    const getter = cached(sh(`echo run >> ${log}; echo ${token}`), { ttlMs: 60_000, keyOf: () => '' })
    const answers = await Promise.all(Array.from({ length: 20 }, () => getter(scope)))
    expect(new Set(answers)).toEqual(new Set([token]))
    expect(await getter(scope)).toBe(token)
    expect(readFileSync(log, 'utf8')).toBe('run\n')
  })

  test('explain names the program and no argument', async () => {
    expect(await explain(node(`console.log('${token}')`), scope, { deadlineMs: 15_000 })).toMatchObject({
      source: expect.stringMatching(/^command:[a-z0-9.]+$/),
      fingerprint: fingerprintOf(token),
    })
  })

  test('unusable options are refused at once', () => {
    expect(() => fromCommand({ command: [''] })).toThrow(TypeError)
    expect(() => fromCommand({ command: [] as never })).toThrow(TypeError)
    for (const timeoutMs of [0, -1, Number.NaN, 2 ** 31]) {
      expect(() => fromCommand({ command: ['true'], timeoutMs })).toThrow(TypeError)
    }
  })
})

/** Nothing writes to the file any more. */
async function expectQuiet(file: string): Promise<void> {
  await sleep(100)
  const before = existsSync(file) ? readFileSync(file, 'utf8') : ''
  await sleep(200)
  expect(existsSync(file) ? readFileSync(file, 'utf8') : '').toBe(before)
}
