import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { tempDir } from '@sandbox/testing'
import { expect, test } from 'vitest'
import * as root from '../src/index.ts'
import * as sources from '../src/sources/index.ts'

const readme = readFileSync(new URL('../README.md', import.meta.url), 'utf8')
const blocks = [...readme.matchAll(/```ts\n([\s\S]*?)```/g)].map(([, code = '']) => code)
const scope = { channel: 'discord:42', speaker: { id: 'ann', name: 'Ann' } }

/** Runs a block of the README as the body of a function that knows the package's exports and `more`. */
async function runBlock(code: string, result: string, more: Record<string, unknown>): Promise<unknown> {
  const known = { ...root, ...sources, ...more }
  const body = `return (async () => { ${code}\nreturn ${result} })()`
  return new Function(...Object.keys(known), body)(...Object.values(known))
}

test('the three lines at the top of the README work as they stand', async () => {
  const headers: Record<string, string> = {}
  const env = { ANN_KEY: 'sk-ann-0123456789' }
  const more = { scope, headers, fromEnv: (name: string) => sources.fromEnv(name, { env }) }
  const getter = (await runBlock(blocks[0] ?? '', 'getter', more)) as root.CredentialGetter
  expect(headers).toEqual({ authorization: `Bearer ${env.ANN_KEY}` })
  expect(blocks[0]?.trim().split('\n')).toHaveLength(3)

  const shown = (await runBlock((blocks[2] ?? '').replace('await', 'const found = await'), 'found', {
    scope,
    getter,
  })) as root.CredentialExplanation
  expect(shown).toEqual({
    rule: 'channel discord:42, speaker ann',
    source: 'env:ANN_KEY',
    fingerprint: root.fingerprintOf(env.ANN_KEY),
    outcome: 'ok',
  })
  expect(blocks[2]).toContain(`{ rule: '${shown.rule}', source: '${shown.source}', fingerprint: '`)
})

test('the matcher of the README stops a stream', async () => {
  const secret = new root.Secret({ token: 'sk-ann-0123456789', origin: 'https://a.example' })
  const answer = { text: 'the key is sk-ann-0123456789' }
  const wire = Buffer.from(JSON.stringify(answer))
  const body = [wire.subarray(0, 20), wire.subarray(20)]
  const written: Buffer[] = []
  const response = { write: (bytes: Uint8Array) => written.push(Buffer.from(bytes)) }
  const stream = (await runBlock(blocks[3] ?? '', 'stream', {
    secret,
    answer,
    body,
    response,
  })) as root.SecretStream
  expect(stream.hit).toBe(true)
  expect(Buffer.concat(written).toString()).toBe('{"text":"the key is ')
})

test('the key file of the README is one, and is used as it says', async () => {
  using dir = tempDir()
  const [, text = ''] = /```json\n([\s\S]*?)```/.exec(readme) ?? []
  const path = join(dir.path, 'keys.json')
  writeFileSync(path, text, { mode: 0o600 })
  writeFileSync(join(dir.path, 'ann.key'), 'sk-ann-0123456789\n', { mode: 0o600 })
  const env = { TEAM_KEY: 'sk-team-0123456789' }
  const keyFile = (options: sources.KeyFileOptions) => sources.keyFile({ ...options, path, env })
  const team = { channel: 'demo:team', speaker: { id: 'u-bob', name: 'Bob' } }
  const keys = (await runBlock(blocks[4] ?? '', 'keys', { keyFile, scope: team })) as sources.KeyFile
  expect(keys.explain(team)).toMatchObject({ rule: 'channel demo:team', source: 'env:TEAM_KEY' })
  expect(keys.explain({ channel: 'demo:x', speaker: { id: 'u-ann', name: 'Ann' } })).toMatchObject({
    rule: 'channel demo:*, speaker u-ann',
    provider: 'claude',
  })
})

test('the login of the README is a getter', async () => {
  using dir = tempDir()
  const store = () => sources.tokenStore({ path: join(dir.path, 'login.json') })
  const getter = (await runBlock(blocks[5] ?? '', 'getter', { tokenStore: store })) as root.CredentialGetter
  expect(await getter(scope)).toBe(undefined)
})
