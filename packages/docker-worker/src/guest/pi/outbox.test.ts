import { execFileSync } from 'node:child_process'
import { mkdirSync, readdirSync, readFileSync, symlinkSync, truncateSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { tempDir } from '@sandbox/testing'
import { describe, expect, test } from 'vitest'
import { Outbox, ownDirectory } from './outbox.ts'

function open(workspace: string): Outbox {
  const outbox = new Outbox(workspace, 'turn-1')
  outbox.open()
  return outbox
}

describe('reply files', () => {
  test('WP-08 are regular files with safe names, in the order of their names', () => {
    using workspace = tempDir()
    const outbox = open(workspace.path)
    writeFileSync(join(outbox.path, 'b.txt'), 'two')
    writeFileSync(join(outbox.path, 'a.txt'), 'one')
    expect(outbox.collect()).toEqual({
      files: [
        { name: 'a.txt', data: Buffer.from('one').toString('base64') },
        { name: 'b.txt', data: Buffer.from('two').toString('base64') },
      ],
      leftOut: 0,
    })
  })

  test('W-54 WP-08 MD-01 a link, a pipe, a directory, an empty file, an unsafe name and a large file are left out', () => {
    using workspace = tempDir()
    const outbox = open(workspace.path)
    const secret = join(workspace.path, 'secret')
    writeFileSync(secret, 'secret')
    symlinkSync(secret, join(outbox.path, 'link'))
    execFileSync('mkfifo', [join(outbox.path, 'pipe')])
    mkdirSync(join(outbox.path, 'directory'))
    writeFileSync(join(outbox.path, 'empty'), '')
    writeFileSync(join(outbox.path, 'new\nline'), 'x')
    writeFileSync(join(outbox.path, 'large'), '')
    truncateSync(join(outbox.path, 'large'), 10 * 2 ** 20 + 1)
    writeFileSync(join(outbox.path, 'good'), 'good')
    const { files, leftOut } = outbox.collect()
    expect(files.map(({ name }) => name)).toEqual(['good'])
    expect(leftOut).toBe(6)
  })

  test('W-54 MD-03 ten files go along, 50 MiB together; the rest is counted', () => {
    using workspace = tempDir()
    const outbox = open(workspace.path)
    for (let index = 0; index < 12; index += 1) writeFileSync(join(outbox.path, `f${index}`), 'x')
    expect(outbox.collect()).toMatchObject({ files: { length: 10 }, leftOut: 2 })
    outbox.open()
    for (let index = 0; index < 6; index += 1) {
      writeFileSync(join(outbox.path, `f${index}`), '')
      truncateSync(join(outbox.path, `f${index}`), 10 * 2 ** 20)
    }
    expect(outbox.collect()).toMatchObject({ files: { length: 5 }, leftOut: 1 })
  })

  test('W-55 a turn begins with an empty outbox, whatever an earlier one of its id left, and leaves nothing', () => {
    using workspace = tempDir()
    const outbox = open(workspace.path)
    writeFileSync(join(outbox.path, 'stale'), 'stale')
    outbox.open()
    expect(outbox.collect()).toEqual({ files: [], leftOut: 0 })
    outbox.clear()
    expect(readdirSync(join(workspace.path, 'outbox'))).toEqual([])
    outbox.clear()
    expect(outbox.collect()).toEqual({ files: [], leftOut: 0 })
  })

  test('PR-05 a link or file in place of a directory is replaced, and what it leads to is untouched', () => {
    using workspace = tempDir()
    using elsewhere = tempDir()
    writeFileSync(join(elsewhere.path, 'kept'), 'kept')
    symlinkSync(elsewhere.path, join(workspace.path, 'outbox'))
    const outbox = open(workspace.path)
    writeFileSync(join(outbox.path, 'f'), 'x')
    symlinkSync(elsewhere.path, join(workspace.path, 'outbox', 'turn-2'))
    new Outbox(workspace.path, 'turn-2').open()
    expect(readdirSync(elsewhere.path)).toEqual(['kept'])
    writeFileSync(join(workspace.path, 'file'), 'x')
    ownDirectory(join(workspace.path, 'file'))
    expect(readdirSync(join(workspace.path, 'file'))).toEqual([])
  })
})

describe('WP-11 saving a file', () => {
  test.each([
    ['plan.txt', 'plan.txt'],
    ['../../etc/passwd', 'passwd'],
    ['C:\\x\\y.PNG', 'y.png'],
    ['a\u0000b\n.md', 'a_b_.md'],
    ['.hidden', 'file.hidden'],
    ['', 'file'],
    ['..', '_'],
    ['Übersicht – 2.pdf', 'Übersicht _ 2.pdf'],
  ])('under the name %j makes %j', (name, saved) => {
    using workspace = tempDir()
    expect(open(workspace.path).save(name, Buffer.from('x'))).toBe(saved)
  })

  test('never overwrites: -2, -3; a link in its place is another file', () => {
    using workspace = tempDir()
    const outbox = open(workspace.path)
    const target = join(workspace.path, 'target')
    writeFileSync(target, 'kept')
    symlinkSync(target, join(outbox.path, 'a.txt'))
    expect([1, 2].map(() => outbox.save('a.txt', Buffer.from('x')))).toEqual(['a-2.txt', 'a-3.txt'])
    expect(readFileSync(target, 'utf8')).toBe('kept')
  })

  test.each([0, 10 * 2 ** 20 + 1])('of %i bytes is refused', (size) => {
    using workspace = tempDir()
    expect(() => open(workspace.path).save('a', Buffer.alloc(size))).toThrow(TypeError)
  })
})
