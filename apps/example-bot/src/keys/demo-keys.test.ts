import { readdirSync, readFileSync, statSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { tempDir } from '@sandbox/testing'
import { expect, test } from 'vitest'
import { writeDemoKeys } from './demo-keys.ts'

test('every file has mode 0600, keys differ, and keys.json refers to them without holding one', () => {
  using dir = tempDir()
  const written = writeDemoKeys({ dir: dir.path })
  expect(readdirSync(dir.path).sort()).toEqual(['alpha.key', 'ann.key', 'ben.key', 'beta.key', 'keys.json'])
  for (const name of readdirSync(dir.path)) expect(statSync(join(dir.path, name)).mode & 0o777).toBe(0o600)
  expect(new Set(written.keys.map((key) => key.key)).size).toBe(4)
  const text = readFileSync(written.path, 'utf8')
  for (const { key, name } of written.keys) {
    expect(text).not.toContain(key)
    expect(readFileSync(join(dir.path, `${name}.key`), 'utf8')).toBe(`${key}\n`)
  }
  expect(JSON.parse(text).rules).toContainEqual({
    channel: 'demo:team',
    speaker: 'u-ann',
    key: 'file:./ann.key',
  })
  expect(text).not.toContain('demo:nokey')
})

test('written again, nothing changes: another demo, or an operator, may use the files', () => {
  using dir = tempDir()
  const first = writeDemoKeys({ dir: dir.path })
  writeFileSync(first.path, '{ "rules": [] }', { mode: 0o600 })
  const second = writeDemoKeys({ dir: dir.path })
  expect(second).toEqual(first)
  expect(readFileSync(first.path, 'utf8')).toBe('{ "rules": [] }')
})

test('a link in the place of a file is replaced, not followed', () => {
  using dir = tempDir()
  using other = tempDir()
  const victim = join(other.path, 'victim')
  writeFileSync(victim, 'untouched')
  for (const name of ['keys.json', 'ann.key']) symlinkSync(victim, join(dir.path, name))
  const { keys } = writeDemoKeys({ dir: dir.path })
  expect(readFileSync(victim, 'utf8')).toBe('untouched')
  expect(keys.map(({ key }) => key)).not.toContain('untouched')
  expect(JSON.parse(readFileSync(join(dir.path, 'keys.json'), 'utf8')).rules).toHaveLength(4)
})
