import { execFileSync } from 'node:child_process'
import {
  existsSync,
  linkSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tempDir } from '@sandbox/testing'
import { expect, test } from 'vitest'
import { readSmallFile, setAside, writeFileAtomic } from './atomic-file.ts'

test('ME-07 writes 0600 whatever the umask, and replaces', () => {
  using directory = tempDir()
  const path = `${directory.path}/f.json`
  const before = process.umask(0)
  try {
    writeFileAtomic(path, 'one')
    writeFileAtomic(path, 'two')
  } finally {
    process.umask(before)
  }
  expect(readFileSync(path, 'utf8')).toBe('two')
  expect(statSync(path).mode & 0o777).toBe(0o600)
  expect(readdirSync(directory.path)).toEqual(['f.json'])
})

test('a planted link is replaced, never followed; a hard link keeps its old text', () => {
  using directory = tempDir()
  const path = `${directory.path}/f.json`
  const victim = `${directory.path}/victim`
  writeFileSync(victim, 'untouched')
  symlinkSync(victim, path)
  writeFileAtomic(path, 'new')
  expect(lstatSync(path).isSymbolicLink()).toBe(false)
  linkSync(path, `${directory.path}/second`)
  writeFileAtomic(path, 'newer')
  expect(readFileSync(victim, 'utf8')).toBe('untouched')
  expect(readFileSync(`${directory.path}/second`, 'utf8')).toBe('new')
})

test('ME-05 a write that fails leaves the old file and no temporary one', () => {
  using directory = tempDir()
  mkdirSync(`${directory.path}/f.json`)
  expect(() => writeFileAtomic(`${directory.path}/f.json`, 'x')).toThrow()
  expect(readdirSync(directory.path)).toEqual(['f.json'])
  expect(() => writeFileAtomic(`${directory.path}/none/f.json`, 'x')).toThrow()
})

test('reads a regular file; none is undefined', () => {
  using directory = tempDir()
  writeFileSync(`${directory.path}/f`, 'text é')
  expect(readSmallFile(`${directory.path}/f`, 7)).toBe('text é')
  expect(readSmallFile(`${directory.path}/none`, 7)).toBeUndefined()
  expect(readSmallFile(`${directory.path}/none/f`, 7)).toBeUndefined()
})

test('a link, a directory, a pipe, a long file and bytes that are no UTF-8 are refused, and nothing hangs', () => {
  using directory = tempDir()
  const at = (name: string) => `${directory.path}/${name}`
  writeFileSync(at('long'), '12345678')
  writeFileSync(at('bytes'), Buffer.from([0xc3, 0x28]))
  symlinkSync(at('long'), at('link'))
  symlinkSync(at('none'), at('dangling'))
  mkdirSync(at('directory'))
  execFileSync('mkfifo', [at('pipe')])
  for (const name of ['long', 'bytes', 'link', 'dangling', 'directory', 'pipe']) {
    expect(() => readSmallFile(at(name), 7), name).toThrow(expect.objectContaining({ code: 'file_invalid' }))
  }
})

test('W-73 setting aside keeps one file, and finds another name when that is taken by a directory', () => {
  using directory = tempDir()
  const path = `${directory.path}/f`
  for (const text of ['one', 'two']) {
    writeFileSync(path, text)
    expect(setAside(path)).toBe(true)
  }
  expect(readdirSync(directory.path)).toEqual(['f.bad'])
  expect(readFileSync(`${path}.bad`, 'utf8')).toBe('two')
  mkdirSync(path)
  expect(setAside(path)).toBe(true)
  expect(existsSync(path)).toBe(false)
  expect(setAside(path)).toBe(false)
})
