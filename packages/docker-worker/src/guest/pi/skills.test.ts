import { mkdirSync, symlinkSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { tempDir } from '@sandbox/testing'
import { describe, expect, test } from 'vitest'
import { loadSkills, readSkillFile, skillsPrompt, unreadClaim } from './skills.ts'

function skills(files: Readonly<Record<string, string>>) {
  const directory = tempDir()
  for (const [name, text] of Object.entries(files)) {
    mkdirSync(dirname(join(directory.path, name)), { recursive: true })
    writeFileSync(join(directory.path, name), text)
  }
  return directory
}

const SAIL = '---\nname: sail\ndescription: "How to sail"\ntools: hoist, reef\n---\nMind the boom.\n'

describe('WP-13 the index', () => {
  test('has every directory with its description, by name; other files are not skills', () => {
    using folder = skills({
      'sail/SKILL.md': SAIL,
      'cook/SKILL.md': '---\nname: cook\ndescription: Soup\n---\n',
      'README.md': 'x',
    })
    const index = loadSkills(folder.path)
    expect([...index.keys()]).toEqual(['cook', 'sail'])
    expect(skillsPrompt(index)).toMatch(/- cook: Soup\n- sail: How to sail$/)
    expect(loadSkills(undefined).size).toBe(0)
    expect(skillsPrompt(new Map())).toBe('')
  })

  test.each<[string, Record<string, string>]>([
    ['another name', { 'sail/SKILL.md': SAIL.replace('name: sail', 'name: row') }],
    ['no description', { 'sail/SKILL.md': '---\nname: sail\n---\n' }],
    ['no head', { 'sail/SKILL.md': 'Mind the boom.' }],
    ['no SKILL.md', { 'sail/other.md': 'x' }],
    ['a name that a model cannot say', { 'Sail !/SKILL.md': SAIL }],
  ])('refuses a skill with %s, naming it', (_what, files) => {
    using folder = skills(files)
    expect(() => loadSkills(folder.path)).toThrow(expect.objectContaining({ name: 'GuestError' }))
  })

  test('refuses a directory that is not there', () => {
    expect(() => loadSkills('/nowhere/at/all')).toThrow(expect.objectContaining({ code: 'content_invalid' }))
  })
})

describe('WP-14 reading a skill', () => {
  test('gives its files, cut at 40,000 characters with a note', () => {
    using folder = skills({ 'sail/SKILL.md': SAIL, 'sail/more/long.md': 'x'.repeat(40_010) })
    const index = loadSkills(folder.path)
    expect(readSkillFile(index, 'sail', 'SKILL.md')).toBe(SAIL)
    expect(readSkillFile(index, 'sail', 'more/long.md')).toBe(
      `${'x'.repeat(40_000)}\n\n[cut: 10 more characters]`,
    )
  })

  test('never leaves the skill: no path, no link, no large file', () => {
    using folder = skills({
      'sail/SKILL.md': SAIL,
      'secret.md': 'secret',
      'sail/large.md': 'x'.repeat(256 * 1024 + 1),
    })
    symlinkSync(join(folder.path, 'secret.md'), join(folder.path, 'sail', 'link.md'))
    symlinkSync(folder.path, join(folder.path, 'sail', 'up'))
    const index = loadSkills(folder.path)
    for (const file of [
      '../secret.md',
      'link.md',
      'up/secret.md',
      '/etc/passwd',
      'large.md',
      '.',
      'none.md',
    ]) {
      expect(() => readSkillFile(index, 'sail', file)).toThrow(
        expect.objectContaining({ code: 'tool_refused' }),
      )
    }
    expect(() => readSkillFile(index, 'row', 'SKILL.md')).toThrow('There is no such skill.')
  })
})

test('WP-15 a tool that a skill claims waits until one of its skills was read', () => {
  using folder = skills({ 'sail/SKILL.md': SAIL })
  const index = loadSkills(folder.path)
  expect(unreadClaim(index, 'hoist', new Set())).toBe('sail')
  expect(unreadClaim(index, 'hoist', new Set(['sail']))).toBeUndefined()
  expect(unreadClaim(index, 'other', new Set())).toBeUndefined()
})
