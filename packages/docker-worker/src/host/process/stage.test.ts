import { chmodSync, mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { tempDir } from '@sandbox/testing'
import { expect, test } from 'vitest'
import { stagePrograms } from './stage.ts'

const me = { uid: process.getuid?.() ?? 0, gid: process.getgid?.() ?? 0 }

function programs(root: string, mode: number) {
  const [runtime, bundle] = [join(root, 'runtime'), join(root, 'guest.mjs')]
  writeFileSync(runtime, '#!/bin/sh\n')
  writeFileSync(bundle, 'export {}\n')
  chmodSync(runtime, mode)
  chmodSync(bundle, 0o644)
  return { runtime, bundle }
}

function staged(root: string): string {
  const directory = join(root, 'staged')
  mkdirSync(directory)
  return directory
}

test('decision 25 a runtime that everybody may run is linked, a bundle is not: it may be written anew while it is used', async () => {
  using dir = tempDir()
  const [sources, directory] = [programs(dir.path, 0o755), staged(dir.path)]
  const first = await stagePrograms(directory, sources, me)
  expect(statSync(first.runtime).ino).toBe(statSync(sources.runtime).ino)
  expect(statSync(first.bundle).ino).not.toBe(statSync(sources.bundle).ino)
  expect(await stagePrograms(directory, sources, me)).toEqual(first)
  const both = await Promise.all([1, 2].map(() => stagePrograms(directory, sources, me)))
  expect([both[0], readdirSync(directory).length]).toEqual([first, 2])
})

test('decision 25 a program that others may not run is copied, and stays as it was', async () => {
  using dir = tempDir()
  const [sources, directory] = [programs(dir.path, 0o700), staged(dir.path)]
  const { runtime } = await stagePrograms(directory, sources, me)
  expect([statSync(runtime).mode & 0o777, statSync(sources.runtime).mode & 0o777]).toEqual([0o755, 0o700])
  expect(statSync(runtime).ino).not.toBe(statSync(sources.runtime).ino)
})

test('decision 25 a program that was replaced is staged anew, and what was staged before goes without harm to it', async () => {
  using dir = tempDir()
  const [sources, directory] = [programs(dir.path, 0o755), staged(dir.path)]
  const before = await stagePrograms(directory, sources, me)
  const other = { ...sources, runtime: join(dir.path, 'other') }
  writeFileSync(other.runtime, '#!/bin/sh\nexit 1\n', { mode: 0o755 })
  const after = await stagePrograms(directory, other, me)
  expect(after.runtime).not.toBe(before.runtime)
  expect(readdirSync(directory)).toHaveLength(2)
  expect(readFileSync(sources.runtime, 'utf8')).toBe('#!/bin/sh\n')
})
