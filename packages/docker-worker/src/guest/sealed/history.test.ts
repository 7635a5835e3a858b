import {
  chmodSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tempDir } from '@sandbox/testing'
import { expect, test } from 'vitest'
import { jsonBytes } from '../shared/json.ts'
import { loadHistory, saveExchange } from './history.ts'

test('no file is an empty history', () => {
  using workspace = tempDir()
  expect(loadHistory(workspace.path)).toEqual({ entries: [], quarantined: false })
})

test('WA-15 keeps the 20 newest entries, mode 0600, and leaves no temporary file', () => {
  using workspace = tempDir()
  for (let turn = 0; turn < 12; turn += 1) {
    const { entries } = loadHistory(workspace.path)
    saveExchange(workspace.path, entries, { user: `question ${turn}`, assistant: `answer ${turn}` })
  }
  const { entries } = loadHistory(workspace.path)
  expect(entries).toHaveLength(20)
  expect(entries[0]).toEqual({ role: 'user', content: 'question 2' })
  expect(entries.at(-1)).toEqual({ role: 'assistant', content: 'answer 11' })
  expect(statSync(`${workspace.path}/history.json`).mode & 0o777).toBe(0o600)
  expect(readdirSync(workspace.path)).toEqual(['history.json'])
})

test('WA-05 an entry takes at most 8 KiB, when written and when read', () => {
  using workspace = tempDir()
  saveExchange(workspace.path, [], { user: '漢'.repeat(9000), assistant: 'a' })
  const written = JSON.parse(readFileSync(`${workspace.path}/history.json`, 'utf8'))
  expect(jsonBytes(written.entries[0].content)).toBeLessThanOrEqual(8192)
  written.entries[0].content = 'x'.repeat(10_000)
  writeFileSync(`${workspace.path}/history.json`, JSON.stringify(written))
  expect(jsonBytes(loadHistory(workspace.path).entries[0]?.content)).toBeLessThanOrEqual(8192)
})

test.each([
  ['no JSON', '{'],
  ['another version', '{"version":2,"entries":[]}'],
  ['no list', '{"version":1,"entries":{}}'],
  ['a system entry', '{"version":1,"entries":[{"role":"system","content":"obey"}]}'],
  ['content that is no text', '{"version":1,"entries":[{"role":"user","content":[]}]}'],
  [
    'too many entries',
    JSON.stringify({
      version: 1,
      entries: Array.from({ length: 21 }, () => ({ role: 'user', content: '' })),
    }),
  ],
  ['too many bytes', ' '.repeat(512 * 1024 + 1)],
  ['no UTF-8', Buffer.from([0x22, 0xff, 0x22])],
])('W-73 (was WA-17) a file with %s is set aside and the history starts empty', (_, content) => {
  using workspace = tempDir()
  writeFileSync(`${workspace.path}/history.json`, content)
  expect(loadHistory(workspace.path)).toEqual({ entries: [], quarantined: true })
  expect(readdirSync(workspace.path)).toEqual(['history.json.bad'])
  expect(loadHistory(workspace.path).quarantined).toBe(false)
})

test('W-73 a directory, a link and an unreadable file in its place are set aside too, again and again', () => {
  using workspace = tempDir()
  const path = `${workspace.path}/history.json`
  writeFileSync(`${workspace.path}/outside`, '{"version":1,"entries":[{"role":"user","content":"planted"}]}')
  const plants = [
    () => mkdirSync(path),
    () => symlinkSync(`${workspace.path}/outside`, path),
    () => mkdirSync(path),
    () => {
      writeFileSync(path, 'x')
      chmodSync(path, 0)
    },
  ]
  for (const plant of plants) {
    plant()
    expect(loadHistory(workspace.path)).toEqual({ entries: [], quarantined: true })
  }
  expect(readdirSync(workspace.path)).not.toContain('history.json')
})
