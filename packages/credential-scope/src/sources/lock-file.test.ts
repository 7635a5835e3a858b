import { spawnSync } from 'node:child_process'
import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { hostname } from 'node:os'
import { join } from 'node:path'
import { tempDir } from '@sandbox/testing'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { holdLock } from './lock-file.ts'

let dir: ReturnType<typeof tempDir>
let path: string
beforeEach(() => {
  dir = tempDir()
  path = join(dir.path, 'x.lock')
})
afterEach(() => dir[Symbol.dispose]())

const id = (letter: string) => letter.repeat(16)
const deadPid = () => spawnSync('true').pid as number

/** A lock as this very process would write it, with something changed. */
async function leave(file: string, change: Record<string, unknown>): Promise<void> {
  const lock = await holdLock(file, 1_000)
  const holder = JSON.parse(readFileSync(file, 'utf8'))
  await lock[Symbol.asyncDispose]()
  writeFileSync(file, JSON.stringify({ ...holder, ...change }))
}

describe('holdLock', () => {
  test('T71 one at a time, however many want it', async () => {
    let inside = 0
    let most = 0
    await Promise.all(
      Array.from({ length: 20 }, async () => {
        await using _lock = await holdLock(path, 20_000)
        most = Math.max(most, ++inside)
        await new Promise((done) => setImmediate(done))
        inside -= 1
      }),
    )
    expect(most).toBe(1)
    expect(readdirSync(dir.path)).toEqual([])
  })

  test('a lock that is held is waited for, then named', async () => {
    await using _lock = await holdLock(path, 1_000)
    await expect(holdLock(path, 30)).rejects.toMatchObject({
      code: 'source_invalid',
      message: expect.stringContaining(`process ${process.pid} has held this lock`),
    })
  })

  test.each<[string, () => Record<string, unknown>]>([
    ['is gone', () => ({ id: id('a'), pid: deadPid() })],
    ['has given its pid to another process', () => ({ id: id('a'), started: '1' })],
    ['ran before this host was started', () => ({ id: id('a'), place: otherBoot() })],
  ])('T71 the lock of a process that %s is taken over, by one of many', async (_what, change) => {
    await leave(path, change())
    let inside = 0
    let most = 0
    await Promise.all(
      Array.from({ length: 8 }, async () => {
        await using _lock = await holdLock(path, 10_000)
        most = Math.max(most, ++inside)
        await new Promise((done) => setImmediate(done))
        inside -= 1
      }),
    )
    expect(most).toBe(1)
    expect(readdirSync(dir.path)).toEqual([])
  })

  test('a process that died while it took over a lock is taken over itself', async () => {
    await leave(`${path}.gone-${id('a')}`, { id: id('b'), pid: deadPid() })
    await leave(path, { id: id('a'), pid: deadPid() })
    await (await holdLock(path, 5_000))[Symbol.asyncDispose]()
    expect(readdirSync(dir.path)).toEqual([])
  })

  test('T71 while a live process takes over a lock, nobody else touches it', async () => {
    await leave(path, { id: id('a'), pid: deadPid() })
    await leave(`${path}.gone-${id('a')}`, { id: id('b') })
    await expect(holdLock(path, 100)).rejects.toThrow(/has held this lock/)
    expect(readdirSync(dir.path).sort()).toEqual(['x.lock', `x.lock.gone-${id('a')}`])
  })

  test.each([
    ['on another host', { place: 'elsewhere boot-1 pid:[1]' }],
    ['in another pid namespace', { place: otherNamespace() }],
  ])('a process %s cannot be seen, so its lock is respected', async (_what, change) => {
    await leave(path, { ...change, id: id('a'), pid: deadPid() })
    await expect(holdLock(path, 50)).rejects.toThrow(/has held this lock/)
  })

  test('a lock that is not understood is respected', async () => {
    for (const text of ['', '{', '{"id":"x","pid":1}', `{"id":"${id('a')}","pid":"1"}`]) {
      writeFileSync(path, text)
      await expect(holdLock(path, 1)).rejects.toThrow(/somebody has held/)
    }
  })
})

function placeParts(): string[] {
  const [boot, namespace] = spawnSync('sh', [
    '-c',
    'cat /proc/sys/kernel/random/boot_id; readlink /proc/self/ns/pid',
  ])
    .stdout.toString()
    .trim()
    .split('\n')
  return [hostname(), boot ?? '', namespace ?? '']
}

function otherBoot(): string {
  const [host, , namespace] = placeParts()
  return `${host} another-boot ${namespace}`
}

function otherNamespace(): string {
  const [host, boot] = placeParts()
  return `${host} ${boot} pid:[1]`
}
