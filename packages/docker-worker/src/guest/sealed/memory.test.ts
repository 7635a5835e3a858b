import { mkdirSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tempDir } from '@sandbox/testing'
import { expect, test } from 'vitest'
import { jsonBytes } from '../shared/json.ts'
import { MemoryStore } from './memory.ts'

const refused = expect.objectContaining({ code: 'memory_refused' })

function file(workspace: string) {
  return JSON.parse(readFileSync(`${workspace}/memory.json`, 'utf8'))
}

test('ME-01, ME-06 set, get and remove; an empty answer is []', () => {
  using workspace = tempDir()
  const memory = new MemoryStore(workspace.path, 'ann')
  expect(memory.get({ scope: 'speaker' })).toBe('[]')
  memory.set({ scope: 'speaker', key: ' tea ', text: 'green' })
  memory.set({ scope: 'speaker', key: 'tea', text: 'black' })
  memory.set({ scope: 'speaker', key: 'cake', text: 'none' })
  expect(JSON.parse(memory.get({ scope: 'speaker' }))).toEqual([
    { key: 'cake', text: 'none' },
    { key: 'tea', text: 'black' },
  ])
  memory.remove({ scope: 'speaker', key: 'cake' })
  expect(memory.get({ scope: 'speaker', key: 'cake' })).toBe('[]')
})

test('ME-06 filters by key, and by a query over key and text in any case', () => {
  using workspace = tempDir()
  const memory = new MemoryStore(workspace.path, 'ann')
  memory.set({ scope: 'channel', key: 'Rules', text: 'be kind' })
  memory.set({ scope: 'channel', key: 'lunch', text: 'at NOON' })
  const keys = (input: object) =>
    JSON.parse(memory.get({ scope: 'channel', ...input })).map(({ key }: { key: string }) => key)
  expect(keys({ key: 'lunch' })).toEqual(['lunch'])
  expect(keys({ query: 'rULES' })).toEqual(['Rules'])
  expect(keys({ query: 'noon' })).toEqual(['lunch'])
  expect(keys({ query: 'nothing' })).toEqual([])
})

test('ME-02 facts belong to the speaker of the turn; no argument selects another', () => {
  using workspace = tempDir()
  new MemoryStore(workspace.path, 'ann').set({ scope: 'speaker', key: 'pin', text: 'of Ann', speaker: 'bob' })
  const bob = new MemoryStore(workspace.path, 'bob')
  for (const input of [{}, { speaker: 'ann' }, { speakerId: 'ann' }, { key: 'pin' }, { query: 'Ann' }]) {
    expect(bob.get({ scope: 'speaker', ...input })).toBe('[]')
  }
  expect(bob.preview('speaker').json).toBe('[]')
  bob.remove({ scope: 'speaker', key: 'pin', speaker: 'ann' })
  bob.set({ scope: 'speaker', key: 'pin', text: 'of Bob' })
  expect(new MemoryStore(workspace.path, 'ann').get({ scope: 'speaker' })).toContain('of Ann')
})

test('ME-03 channel notes are shared in the workspace, and only there', () => {
  using workspace = tempDir()
  using other = tempDir()
  new MemoryStore(workspace.path, 'ann').set({ scope: 'channel', key: 'k', text: 'v' })
  const bob = new MemoryStore(workspace.path, 'bob')
  bob.set({ scope: 'channel', key: 'k', text: 'w' })
  expect(JSON.parse(bob.get({ scope: 'channel' }))).toEqual([{ key: 'k', text: 'w' }])
  expect(new MemoryStore(other.path, 'ann').get({ scope: 'channel' })).toBe('[]')
})

test.each([
  [{ scope: 'owner', key: 'k', text: 't' }],
  [{ key: 'k', text: 't' }],
  [{ scope: ['speaker'], key: 'k', text: 't' }],
  [{ scope: 'speaker', key: ' ', text: 't' }],
  [{ scope: 'speaker', key: 'k'.repeat(129), text: 't' }],
  [{ scope: 'speaker', key: 7, text: 't' }],
  [{ scope: 'speaker', key: 'k', text: ' \n' }],
  [{ scope: 'speaker', key: 'k', text: 'x'.repeat(2049) }],
  [{ scope: 'speaker', key: 'k' }],
])('ME-01, ME-04 refuses to set %j', (input) => {
  using workspace = tempDir()
  const memory = new MemoryStore(workspace.path, 'ann')
  expect(() => memory.set(input)).toThrow(refused)
  expect(readdirSync(workspace.path)).toEqual([])
})

test('ME-04 keys and ids are data, never paths or prototype names', () => {
  using workspace = tempDir()
  const memory = new MemoryStore(workspace.path, '../../ann')
  for (const key of ['../escape', '/etc/passwd', '__proto__', 'constructor']) {
    memory.set({ scope: 'speaker', key, text: key })
  }
  const again = new MemoryStore(workspace.path, '../../ann')
  expect(again.get({ scope: 'speaker', key: '__proto__' })).toBe('[{"key":"__proto__","text":"__proto__"}]')
  expect(readdirSync(workspace.path)).toEqual(['memory.json'])
})

test('W-74 one speaker fills a quarter at most; the others still have room', () => {
  using workspace = tempDir()
  const ann = new MemoryStore(workspace.path, 'ann')
  for (let index = 0; index < 32; index += 1) {
    ann.set({ scope: 'speaker', key: `s${index}`, text: 'x' })
    ann.set({ scope: 'channel', key: `c${index}`, text: 'x' })
  }
  expect(() => ann.set({ scope: 'speaker', key: 'more', text: 'x' })).toThrow(refused)
  expect(() => ann.set({ scope: 'channel', key: 'more', text: 'x' })).toThrow(refused)
  ann.set({ scope: 'channel', key: 'c0', text: 'replaced' })
  new MemoryStore(workspace.path, 'bob').set({ scope: 'channel', key: 'more', text: 'by bob' })
  expect(file(workspace.path).entries).toHaveLength(65)
})

test('W-74 one speaker fills a quarter of the bytes at most', () => {
  using workspace = tempDir()
  const memory = new MemoryStore(workspace.path, 'ann')
  const text = '\u0001'.repeat(2048)
  for (let index = 0; index < 10; index += 1) memory.set({ scope: 'speaker', key: `k${index}`, text })
  expect(() => memory.set({ scope: 'speaker', key: 'k10', text })).toThrow(refused)
})

test('ME-05, ME-07 at full capacity setting is refused without loss, replacing and removing work', () => {
  using workspace = tempDir()
  for (const speaker of ['a', 'b', 'c', 'd']) {
    const memory = new MemoryStore(workspace.path, speaker)
    for (let index = 0; index < 64; index += 1)
      memory.set({ scope: 'speaker', key: `k${index}`, text: speaker })
  }
  const full = readFileSync(`${workspace.path}/memory.json`, 'utf8')
  const memory = new MemoryStore(workspace.path, 'e')
  expect(() => memory.set({ scope: 'channel', key: 'k', text: 'x' })).toThrow(refused)
  expect(readFileSync(`${workspace.path}/memory.json`, 'utf8')).toBe(full)
  const last = new MemoryStore(workspace.path, 'd')
  last.set({ scope: 'speaker', key: 'k0', text: 'replaced' })
  last.remove({ scope: 'speaker', key: 'k1' })
  new MemoryStore(workspace.path, 'e').set({ scope: 'channel', key: 'k', text: 'x' })
  expect(file(workspace.path).entries).toHaveLength(256)
})

test('ME-05 over 512 KiB is refused', () => {
  using workspace = tempDir()
  const text = '\u0001'.repeat(2048)
  const fill = (speaker: string) => {
    const memory = new MemoryStore(workspace.path, speaker)
    for (let index = 0; index < 10; index += 1) memory.set({ scope: 'speaker', key: `k${index}`, text })
  }
  for (const speaker of ['a', 'b', 'c', 'd']) fill(speaker)
  expect(() => fill('e')).toThrow(refused)
  expect(statSync(`${workspace.path}/memory.json`).size).toBeLessThanOrEqual(512 * 1024)
})

test('ME-05 a write that fails changes nothing', () => {
  using workspace = tempDir()
  const directory = `${workspace.path}/gone`
  mkdirSync(directory)
  const memory = new MemoryStore(directory, 'ann')
  memory.set({ scope: 'speaker', key: 'k', text: 'kept' })
  rmSync(directory, { recursive: true })
  expect(() => memory.set({ scope: 'speaker', key: 'other', text: 'lost' })).toThrow()
  expect(memory.get({ scope: 'speaker' })).toBe('[{"key":"k","text":"kept"}]')
})

test('W-74 a long listing comes in pages that fit a tool result, each entry once', () => {
  using workspace = tempDir()
  const memory = new MemoryStore(workspace.path, 'ann')
  for (let index = 0; index < 40; index += 1) {
    memory.set({
      scope: 'speaker',
      key: `k${String(index).padStart(2, '0')}`,
      text: '"\\'.repeat(20 * index + 1),
    })
  }
  const keys: string[] = []
  let cursor: string | undefined
  do {
    const text = memory.get({ scope: 'speaker', ...(cursor === undefined ? {} : { cursor }) })
    expect(jsonBytes(text)).toBeLessThanOrEqual(4096)
    const items: { key?: string; cursor?: string }[] = JSON.parse(text)
    keys.push(...items.flatMap(({ key }) => key ?? []))
    cursor = items.at(-1)?.cursor
  } while (cursor !== undefined)
  expect(keys).toEqual(Array.from({ length: 40 }, (_, index) => `k${String(index).padStart(2, '0')}`))
})

test('W-74 keys only', () => {
  using workspace = tempDir()
  const memory = new MemoryStore(workspace.path, 'ann')
  for (let index = 0; index < 40; index += 1)
    memory.set({ scope: 'channel', key: `k${index}`, text: 'x'.repeat(2000) })
  const items = JSON.parse(memory.get({ scope: 'channel', keys_only: true }))
  expect(items).toHaveLength(40)
  expect(items[0]).toEqual({ key: 'k0' })
})

test('an entry that is larger than a page is cut, and the listing goes on', () => {
  using workspace = tempDir()
  const memory = new MemoryStore(workspace.path, 'ann')
  memory.set({ scope: 'speaker', key: 'a', text: '\u0001'.repeat(2048) })
  memory.set({ scope: 'speaker', key: 'b', text: 'small' })
  const first = memory.get({ scope: 'speaker' })
  expect(jsonBytes(first)).toBeLessThanOrEqual(4096)
  const items = JSON.parse(first)
  expect(items[0].text.endsWith('[cut]')).toBe(true)
  const rest =
    items.at(-1).cursor === 'a' ? JSON.parse(memory.get({ scope: 'speaker', cursor: 'a' })) : items.slice(1)
  expect(rest).toEqual([{ key: 'b', text: 'small' }])
})

test('WA-04 the preview has the newest entries, at most 4 KiB, and says how many are left', () => {
  using workspace = tempDir()
  const memory = new MemoryStore(workspace.path, 'ann')
  for (let index = 0; index < 10; index += 1)
    memory.set({ scope: 'channel', key: `k${index}`, text: 'x'.repeat(1000) })
  const { json, left } = memory.preview('channel')
  expect(jsonBytes(json)).toBeLessThanOrEqual(4096)
  expect(JSON.parse(json).map(({ key }: { key: string }) => key)).toEqual(['k9', 'k8', 'k7'])
  expect(left).toBe(7)
})

test.each([
  ['no JSON', 'x'],
  ['another version', '{"version":0,"entries":[]}'],
  ['an entry without an owner', '{"version":1,"entries":[{"scope":"speaker","key":"k","text":"t"}]}'],
  ['an unknown scope', '{"version":1,"entries":[{"scope":"owner","speaker":"a","key":"k","text":"t"}]}'],
  [
    'one note twice',
    JSON.stringify({
      version: 1,
      entries: ['a', 'b'].map((speaker) => ({ scope: 'channel', speaker, key: 'k', text: 't' })),
    }),
  ],
  [
    'too many entries',
    JSON.stringify({
      version: 1,
      entries: Array.from({ length: 257 }, (_, index) => ({
        scope: 'channel',
        speaker: 'a',
        key: `k${index}`,
        text: 't',
      })),
    }),
  ],
])('W-73 (was ME-08) a file with %s is set aside and memory starts empty', (_, content) => {
  using workspace = tempDir()
  writeFileSync(`${workspace.path}/memory.json`, content)
  const memory = new MemoryStore(workspace.path, 'ann')
  expect(memory.quarantined).toBe(true)
  expect(memory.get({ scope: 'channel' })).toBe('[]')
  expect(readFileSync(`${workspace.path}/memory.json.bad`, 'utf8')).toBe(content)
  memory.set({ scope: 'channel', key: 'k', text: 'new' })
  expect(new MemoryStore(workspace.path, 'ann').quarantined).toBe(false)
})
