import { chmodSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { keyFile } from '@sandbox/credential-scope/sources'
import { tempDir } from '@sandbox/testing'
import { expect, test } from 'vitest'
import { writeDemoKeys } from './demo-keys.ts'
import { keysCheck, keysExplain } from './keys-command.ts'

const open = (path: string, env: NodeJS.ProcessEnv = {}) => ({ path, keys: keyFile({ path, env }) })

function withRules(dir: string, rules: readonly object[]) {
  const path = join(dir, 'keys.json')
  writeFileSync(path, JSON.stringify({ rules }), { mode: 0o600 })
  return open(path)
}

test('the demo keys are good, and none is printed', async () => {
  using dir = tempDir()
  const { path, keys } = writeDemoKeys({ dir: dir.path })
  const options = open(path)
  const printed = [
    await keysCheck(options),
    await keysExplain({ ...options, channel: 'demo:alpha', speaker: '' }),
    await keysExplain({ ...options, channel: 'demo:team', speaker: 'u-ann' }),
    await keysExplain({ ...options, channel: 'demo:team', speaker: '' }),
    await keysExplain({ ...options, channel: 'demo:nokey', speaker: 'u-ann' }),
  ]
  expect(printed).toEqual([
    `${path} is good: its 4 rules lead to a key.`,
    'demo:alpha: the rule for channel demo:alpha chooses file:./alpha.key, which leads to a key.',
    'demo:team, speaker u-ann: the rule for channel demo:team, speaker u-ann chooses file:./ann.key, which leads to a key.',
    'demo:team: no rule matches. Calls are refused, nothing is sent.',
    'demo:nokey, speaker u-ann: no rule matches. Calls are refused, nothing is sent.',
  ])
  for (const { key } of keys) expect(printed.join('\n')).not.toContain(key)
})

test('a rule that leads nowhere is told', async () => {
  using dir = tempDir()
  const options = withRules(dir.path, [{ channel: 'demo:a', key: 'env:NOT_SET' }])
  expect(await keysExplain({ ...options, channel: 'demo:a', speaker: '' })).toContain(
    'env:NOT_SET, which leads to NO key',
  )
  await expect(keysCheck(options)).rejects.toThrow(/NOT_SET/)
})

test('commands are run, and neither their arguments nor what they print is told', async () => {
  using dir = tempDir()
  const script = join(dir.path, 'vault')
  writeFileSync(script, '#!/bin/sh\necho sk-oops-0123456789\n')
  chmodSync(script, 0o700)
  const options = withRules(dir.path, [
    { channel: 'demo:*', key: 'command:./vault --pin 4711', provider: 'claude', model: 'large' },
  ])
  const printed = [
    await keysCheck(options),
    await keysExplain({ ...options, channel: 'demo:x', speaker: 'u-ann' }),
  ]
  expect(printed).toEqual([
    `${options.path} is good: its one rule leads to a key.`,
    'demo:x, speaker u-ann: the rule for channel demo:* chooses command:./vault, which leads to a key. It is for provider claude, model large.',
  ])
  expect(printed.join('\n')).not.toMatch(/oops|4711/)
  writeFileSync(script, '#!/bin/sh\nexit 3\n')
  const again = withRules(dir.path, [{ channel: 'demo:*', key: 'command:./vault' }])
  await expect(keysCheck(again)).rejects.toThrow('The command vault ended with exit code 3')
  expect(await keysExplain({ ...again, channel: 'demo:x', speaker: '' })).toContain('leads to NO key')
})

test('an open key file is refused', async () => {
  using dir = tempDir()
  const path = join(dir.path, 'keys.json')
  writeFileSync(path, '{"rules":[]}', { mode: 0o644 })
  await expect(keysCheck(open(path))).rejects.toThrow(/chmod 0600/)
})

test('a file without a rule is said to refuse everything', async () => {
  using dir = tempDir()
  expect(await keysCheck(withRules(dir.path, []))).toContain('every call is refused')
})
