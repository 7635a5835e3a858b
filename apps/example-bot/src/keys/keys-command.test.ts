import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { tempDir } from '@sandbox/testing'
import { expect, test } from 'vitest'
import { writeDemoKeys } from './demo-keys.ts'
import { keysCheck, keysExplain } from './keys-command.ts'

test('the demo keys are good, and none is printed', () => {
  using dir = tempDir()
  const { path, keys } = writeDemoKeys({ dir: dir.path })
  const printed = [
    keysCheck({ path }),
    keysExplain({ path, channel: 'demo:alpha', speaker: '' }),
    keysExplain({ path, channel: 'demo:team', speaker: 'u-ann' }),
    keysExplain({ path, channel: 'demo:team', speaker: '' }),
    keysExplain({ path, channel: 'demo:nokey', speaker: 'u-ann' }),
  ]
  expect(printed.slice(1)).toEqual([
    'demo:alpha: the rule for channel demo:alpha chooses file:./alpha.key, which leads to a key.',
    'demo:team, speaker u-ann: the rule for channel demo:team, speaker u-ann chooses file:./ann.key, which leads to a key.',
    'demo:team: no rule matches. Calls are refused, nothing is sent.',
    'demo:nokey, speaker u-ann: no rule matches. Calls are refused, nothing is sent.',
  ])
  for (const { key } of keys) expect(printed.join('\n')).not.toContain(key)
})

test('a rule that leads nowhere is told', () => {
  using dir = tempDir()
  const path = join(dir.path, 'keys.json')
  const rules = [{ channel: 'demo:a', key: 'env:NOT_SET' }]
  writeFileSync(path, JSON.stringify({ rules }), { mode: 0o600 })
  expect(keysExplain({ path, channel: 'demo:a', speaker: '', env: {} })).toContain(
    'env:NOT_SET, which leads to NO key',
  )
  expect(() => keysCheck({ path, env: {} })).toThrow(/NOT_SET/)
})

test('an open key file is refused', () => {
  using dir = tempDir()
  const path = join(dir.path, 'keys.json')
  writeFileSync(path, '{"rules":[]}', { mode: 0o644 })
  expect(() => keysCheck({ path })).toThrow(/chmod 0600/)
})
