import { rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { keyFile } from '@sandbox/credential-scope/sources'
import { tempDir } from '@sandbox/testing'
import { expect, test } from 'vitest'
import { watchKeys } from './watch-keys.ts'

test('decision 34: a bad edit is told when it is made, with its line, and a file that is gone once', async () => {
  using dir = tempDir()
  const path = join(dir.path, 'keys.json')
  const told: string[] = []
  writeFileSync(path, '{ "rules": [] }', { mode: 0o600 })
  const keys = keyFile({ path, onProblem: ({ message }) => told.push(message) })
  keys.check()
  const end = watchKeys({ keys, everyMs: 5, onGone: (problem) => told.push(problem) })
  try {
    writeFileSync(path, '{\n  "rules": [{}]\n}')
    await expect
      .poll(() => told, { interval: 5 })
      .toEqual([expect.stringContaining(`${path}:2: rules[0].channel`)])
    rmSync(path)
    await expect.poll(() => told.length, { interval: 5 }).toBe(2)
    expect(told[1]).toContain('does not exist')
  } finally {
    end()
  }
})
