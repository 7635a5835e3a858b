import { execFileSync } from 'node:child_process'
import { mkdirSync, readdirSync, readFileSync, statSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { tempDir } from '@sandbox/testing'
import { expect, test } from 'vitest'
import { MemoryStore } from '../src/guest/sealed/memory.ts'
import { forgetSpeaker } from '../src/host/speaker-memory.ts'

const facts = (workspace: string, speaker: string, scope: 'speaker' | 'channel') =>
  JSON.parse(new MemoryStore(workspace, speaker).get({ scope }))

test('ME-02 what the guest keeps of one speaker is forgotten; the facts of others and the notes of the channel stay', () => {
  using dir = tempDir()
  for (const speaker of ['ann', 'bob']) {
    const memory = new MemoryStore(dir.path, speaker)
    memory.set({ scope: 'speaker', key: 'tea', text: `of ${speaker}` })
    memory.set({ scope: 'channel', key: `note of ${speaker}`, text: 'shared' })
  }
  expect(forgetSpeaker(dir.path, 'ann')).toBe(true)
  expect(facts(dir.path, 'ann', 'speaker')).toEqual([])
  expect(facts(dir.path, 'bob', 'speaker')).toEqual([{ key: 'tea', text: 'of bob' }])
  expect(facts(dir.path, 'bob', 'channel')).toHaveLength(2)
  const text = readFileSync(join(dir.path, 'memory.json'), 'utf8')
  expect(text).not.toContain('"ann"')
  expect([statSync(join(dir.path, 'memory.json')).mode & 0o777, readdirSync(dir.path)]).toEqual([
    0o600,
    ['memory.json'],
  ])
  expect(forgetSpeaker(dir.path, 'ann')).toBe(false)
  new MemoryStore(dir.path, 'ann').set({ scope: 'speaker', key: 'tea', text: 'anew' })
  expect(facts(dir.path, 'ann', 'speaker')).toEqual([{ key: 'tea', text: 'anew' }])
})

test('W-73 what was set aside, left half written, or cannot be read may hold the speaker, and goes', () => {
  for (const make of [
    (path: string) => writeFileSync(path, '{"version":1,"entries":[{"speaker":"ann"'),
    (path: string) => writeFileSync(path, 'null'),
    (path: string) => writeFileSync(path, 'x'.repeat(1024 * 1024 + 1)),
    (path: string) => mkdirSync(join(path, 'inner'), { recursive: true }),
    (path: string) => void execFileSync('mkfifo', [path]),
  ]) {
    using dir = tempDir()
    for (const name of ['memory.json.bad', 'memory.json.a1b2.bad', 'memory.json.a1b2.tmp', 'history.json']) {
      writeFileSync(join(dir.path, name), 'ann')
    }
    make(join(dir.path, 'memory.json'))
    expect(forgetSpeaker(dir.path, 'ann')).toBe(true)
    expect(readdirSync(dir.path)).toEqual(['history.json'])
  }
})

test('[erase:speaker-forgotten] a memory that can be read but not written again hides nobody', () => {
  using dir = tempDir()
  const entries = [{ scope: 'speaker', speaker: 'ann', key: 'k', text: 't' }]
  const deep = '['.repeat(100_000) + ']'.repeat(100_000)
  const text = `${JSON.stringify({ version: 1, entries }).slice(0, -1)},"more":${deep}}`
  writeFileSync(join(dir.path, 'memory.json'), text)
  expect(facts(dir.path, 'ann', 'speaker')).toHaveLength(1)
  expect(forgetSpeaker(dir.path, 'ann')).toBe(true)
  expect(readdirSync(dir.path)).toEqual([])
})

test('[workspace:no-planted-links] a link in the place of the memory is removed, and what it leads to stays', () => {
  using dir = tempDir()
  using other = tempDir()
  const outside = join(other.path, 'file')
  const text = JSON.stringify({
    version: 1,
    entries: [{ scope: 'speaker', speaker: 'ann', key: 'k', text: 't' }],
  })
  writeFileSync(outside, text)
  symlinkSync(outside, join(dir.path, 'memory.json'))
  expect(forgetSpeaker(dir.path, 'ann')).toBe(true)
  expect([readdirSync(dir.path), readFileSync(outside, 'utf8')]).toEqual([[], text])
})

test('a workspace without memory is left alone', () => {
  using dir = tempDir()
  expect(forgetSpeaker(dir.path, 'ann')).toBe(false)
  expect(readdirSync(dir.path)).toEqual([])
})
