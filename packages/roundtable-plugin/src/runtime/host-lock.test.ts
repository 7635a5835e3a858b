import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { lstatSync, mkdirSync, readdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { tempDir } from '@sandbox/testing'
import { expect, test } from 'vitest'
import { account, ownDir } from '../../test/account.ts'
import { lockForThisHost } from './host-lock.ts'

const program = fileURLToPath(new URL('../../test/lock-program.ts', import.meta.url))
/** Runs a program as the first process of a pid namespace, as a container does. */
const CONTAINED = ['unshare', '--pid', '--fork', '--kill-child', '--mount-proc']
const canContain = spawnSync('unshare', [...CONTAINED.slice(1), 'true']).status === 0

/** A process that takes `directory`, and what it said about that. */
async function locker(directory: string, through: readonly string[] = []) {
  const [command, ...args] = [
    ...through,
    process.execPath,
    '--conditions=@sandbox/source',
    program,
    directory,
  ] as const
  const child: ChildProcess = spawn(command as string, args, { stdio: ['pipe', 'pipe', 'inherit'] })
  const [said] = await once(child.stdout as NodeJS.EventEmitter, 'data')
  const end = async (signal?: NodeJS.Signals) => {
    const ended = once(child, 'exit')
    if (signal) child.kill(signal)
    else child.stdin?.end()
    await ended
  }
  return { said: String(said).trim(), end }
}

test('decision 20: a directory is held once, and given back', () => {
  using dir = tempDir()
  const unlock = lockForThisHost('run root', dir.path)
  expect(() => lockForThisHost('run root', dir.path)).toThrow(`(process ${process.pid})`)
  expect(readdirSync(dir.path)).toHaveLength(1)
  unlock()
  unlock()
  expect(readdirSync(dir.path)).toEqual([])
  lockForThisHost('run root', dir.path)()
})

test('the mark of a killed host is no obstacle, nor is a file that looks like one', async () => {
  using dir = tempDir()
  const killed = await locker(dir.path)
  expect(killed.said).toBe('locked')
  expect(() => lockForThisHost('run root', dir.path)).toThrow(/used by another host/)
  await killed.end('SIGKILL')
  expect(readdirSync(dir.path)).toHaveLength(1)
  writeFileSync(join(dir.path, 'host.1.1.x-y.lock'), '')
  const unlock = lockForThisHost('run root', dir.path)
  expect(readdirSync(dir.path)).toHaveLength(1)
  unlock()
})

test.runIf(process.geteuid?.() === 0)(
  'decision 25 the account of a directory can ask the mark of a root host that was killed',
  () => {
    using dir = ownDir()
    const unlock = lockForThisHost('run root', dir.path)
    const [mark = ''] = readdirSync(dir.path)
    expect(lstatSync(join(dir.path, mark))).toMatchObject(account)
    unlock()
  },
)

test.skipIf(!canContain)('hosts in containers are both process 1, and still only one runs', async () => {
  using dir = tempDir()
  const first = await locker(dir.path, CONTAINED)
  expect(first.said).toBe('locked')
  const second = await locker(dir.path, CONTAINED)
  expect(second.said).toMatch(/used by another host \(process 1\).*another container/)
  expect(() => lockForThisHost('run root', dir.path)).toThrow(/used by another host/)
  await second.end()
  await first.end('SIGKILL')
  const third = await locker(dir.path, CONTAINED)
  expect(third.said).toBe('locked')
  await third.end()
  expect(readdirSync(dir.path)).toEqual([])
})

test.skipIf(process.platform !== 'linux')('a directory may have a longer path than a socket may', () => {
  using dir = tempDir()
  const long = join(dir.path, 'x'.repeat(120))
  mkdirSync(long)
  const unlock = lockForThisHost('workspace root', long)
  expect(() => lockForThisHost('workspace root', long)).toThrow(/used by another host/)
  unlock()
  lockForThisHost('workspace root', long)()
  expect(readdirSync(long)).toEqual([])
})
