import { execFileSync } from 'node:child_process'
import { mkdirSync, symlinkSync, truncateSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { tempDir } from '@sandbox/testing'
import { expect, test } from 'vitest'
import { openConversation } from './session-file.ts'

test('PR-05 PR-21 whatever lies beside a conversation, it is continued', () => {
  using dir = tempDir()
  const sessions = join(dir.path, 'sessions')
  const first = openConversation(dir.path)
  first.appendMessage({ role: 'user', content: 'hello', timestamp: 1 })
  const path = first.getSessionFile() as string
  execFileSync('sh', ['-c', ": > $(printf '\\377').jsonl && mkfifo pipe.jsonl"], { cwd: sessions })
  mkdirSync(join(sessions, 'directory.jsonl'))
  symlinkSync(path, join(sessions, 'link.jsonl'))
  writeFileSync(join(sessions, 'empty.jsonl'), '')
  writeFileSync(join(sessions, 'large.jsonl'), '')
  truncateSync(join(sessions, 'large.jsonl'), 128 * 1024 * 1024 + 1)
  expect(openConversation(dir.path).getSessionFile()).toBe(path)
})
