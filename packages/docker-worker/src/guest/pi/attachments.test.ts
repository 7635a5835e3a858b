import { execFileSync } from 'node:child_process'
import { mkdirSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { tempDir } from '@sandbox/testing'
import { expect, test } from 'vitest'
import { readAttachment } from './attachments.ts'

function withFile(name: string, bytes: string | Buffer) {
  const workspace = tempDir()
  mkdirSync(join(workspace.path, 'attachments'))
  writeFileSync(join(workspace.path, 'attachments', name), bytes)
  return workspace
}

test('a text is read in parts of 40,000 characters', () => {
  using workspace = withFile('log.txt', `${'a'.repeat(40_000)}${'b'.repeat(5)}`)
  const first = readAttachment(workspace.path, 'log.txt')
  expect(first).toEqual({
    text: `${'a'.repeat(40_000)}\n\n[cut: 5 more characters, read on with from: 40000]`,
  })
  expect(readAttachment(workspace.path, 'log.txt', 40_000)).toEqual({ text: 'bbbbb' })
})

test.each([
  ['image/png', '89504e470d0a1a0a00'],
  ['image/jpeg', 'ffd8ffe000'],
  ['image/webp', `52494646${'00'.repeat(4)}57454250`],
  ['image/gif', '47494638396100'],
])('MD-02 an image is known by its first bytes: %s', (mimeType, hex) => {
  const bytes = Buffer.from(hex, 'hex')
  using workspace = withFile('a.bin', bytes)
  expect(readAttachment(workspace.path, 'a.bin')).toEqual({
    image: { mimeType, data: bytes.toString('base64') },
  })
})

test('bytes that are neither are named, not shown', () => {
  using workspace = withFile('a.bin', Buffer.from([1, 0, 2]))
  expect(readAttachment(workspace.path, 'a.bin')).toEqual({ text: '[a.bin: 3 bytes that are no text]' })
})

test('no link is followed, no pipe waited for, no path taken', () => {
  using workspace = withFile('a.txt', 'a')
  symlinkSync('/etc/passwd', join(workspace.path, 'attachments', 'link'))
  execFileSync('mkfifo', [join(workspace.path, 'attachments', 'pipe')])
  for (const name of ['link', 'pipe', 'none', '.', '..', '../a', 'a/b', '']) {
    expect(() => readAttachment(workspace.path, name)).toThrow(
      expect.objectContaining({ code: 'tool_refused' }),
    )
  }
})
