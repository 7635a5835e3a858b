import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { tempDir } from '@sandbox/testing'
import { expect, test } from 'vitest'
import { claimCheckState } from './check-state.ts'

test('two checks at a time have a directory each, and both go', () => {
  using parent = tempDir()
  const one = claimCheckState(parent.path)
  const two = claimCheckState(parent.path)
  expect(two.state.path).not.toBe(one.state.path)
  one.release()
  two.release()
  expect([one, two].map(({ state }) => existsSync(state.path))).toEqual([false, false])
})

test('T51 what a killed check left is taken over: the run root stays for the sweep, keys go', async () => {
  using parent = tempDir()
  const dead = claimCheckState(parent.path).state
  const child = spawn('sleep', ['60'])
  const stat = readFileSync(`/proc/${child.pid}/stat`, 'utf8')
  const started = stat.slice(stat.lastIndexOf(')') + 2).split(' ')[19]
  writeFileSync(join(dead.path, 'check.owner'), `${child.pid} ${started}`)
  mkdirSync(dead.runRoot, { mode: 0o700 })
  writeFileSync(join(dead.runRoot, 'install.id'), 'kept')
  writeFileSync(join(dead.keysDir, 'a.key'), 'gone')

  const beside = claimCheckState(parent.path)
  expect(beside.state.path).not.toBe(dead.path)
  child.kill('SIGKILL')
  await once(child, 'exit')

  const after = claimCheckState(parent.path)
  expect(after.state.path).toBe(dead.path)
  expect(readFileSync(join(after.state.runRoot, 'install.id'), 'utf8')).toBe('kept')
  expect(existsSync(join(after.state.keysDir, 'a.key'))).toBe(false)
})
