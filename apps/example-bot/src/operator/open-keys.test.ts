import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { tempDir } from '@sandbox/testing'
import { expect, test } from 'vitest'
import { openKeys } from './open-keys.ts'

test.each([
  ['of another name', { own: { api: 'openai', url: 'https://api.example/v1', model: 'm' } } as const, 'own'],
  ['of any name where there are none: no turn of it could be answered', undefined, 'none'],
])('a rule for a provider %s is refused, with its line', (_, providers, known) => {
  using dir = tempDir()
  const keys = join(dir.path, 'keys.json')
  const rule = '{ "channel": "room:*", "key": "env:K", "provider": "openai" }'
  writeFileSync(keys, `{ "rules": [\n${rule}\n] }`, { mode: 0o600 })
  const opened = openKeys({ keys, ...(providers && { providers }) }, { env: { K: 'sk-k-0123456789' } })
  expect(() => opened.check()).toThrow(`${keys}:2: rules[0].provider names no provider: known are ${known}`)
})
