import { execFileSync } from 'node:child_process'
import { chmodSync, linkSync, mkdirSync, symlinkSync, truncateSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { tempDir } from '@sandbox/testing'
import { describe, expect, test } from 'vitest'
import { workspaceSize } from './workspace-size.ts'

const MIB = 2 ** 20
const LIMITS = { limitBytes: 64 * MIB }

describe('workspaceSize', () => {
  test('W-66 counts files and directories, and says when they fit', async () => {
    using dir = tempDir()
    mkdirSync(join(dir.path, 'a/b'), { recursive: true })
    writeFileSync(join(dir.path, 'a/b/file'), Buffer.alloc(MIB, 1))
    writeFileSync(join(dir.path, 'other'), Buffer.alloc(MIB, 1))
    const { bytes, entries, over } = await workspaceSize(dir.path, LIMITS)
    expect(entries).toBe(4)
    expect(bytes).toBeGreaterThanOrEqual(2 * MIB)
    expect(bytes).toBeLessThan(2.2 * MIB)
    expect(over).toBeUndefined()
  })

  test('W-66 one byte too much and one entry too many are over', async () => {
    using dir = tempDir()
    for (const name of ['1', '2', '3']) writeFileSync(join(dir.path, name), Buffer.alloc(MIB, 1))
    const { bytes } = await workspaceSize(dir.path, LIMITS)
    expect(await workspaceSize(dir.path, { limitBytes: bytes })).toEqual({ bytes, entries: 3 })
    expect(await workspaceSize(dir.path, { limitBytes: bytes - 1 })).toMatchObject({ over: 'bytes' })
    expect(await workspaceSize(dir.path, { ...LIMITS, limitEntries: 3 })).toEqual({ bytes, entries: 3 })
    expect(await workspaceSize(dir.path, { ...LIMITS, limitEntries: 2 })).toMatchObject({
      over: 'entries',
      entries: 3,
    })
  })

  test('W-66 what has a name that is no text is counted too', async () => {
    using dir = tempDir()
    const fill = "b=$(printf '\\377'); mkdir $b && head -c 2097152 /dev/zero > $b/$b"
    execFileSync('sh', ['-c', fill], { cwd: dir.path })
    expect(await workspaceSize(dir.path, LIMITS)).toMatchObject({ entries: 2 })
    expect(await workspaceSize(dir.path, { limitBytes: MIB })).toMatchObject({ over: 'bytes' })
  })

  test('links, FIFOs and sockets are counted and never followed or opened', async () => {
    using dir = tempDir()
    using outside = tempDir()
    writeFileSync(join(outside.path, 'big'), Buffer.alloc(8 * MIB, 1))
    mkdirSync(join(dir.path, 'in'))
    symlinkSync(outside.path, join(dir.path, 'in/out'))
    symlinkSync(join(outside.path, 'big'), join(dir.path, 'big'))
    symlinkSync('.', join(dir.path, 'in/loop'))
    symlinkSync('/dev/zero', join(dir.path, 'zero'))
    // Opening it would wait for a writer for ever.
    execFileSync('mkfifo', [join(dir.path, 'fifo')])
    const server = createServer()
    await new Promise<void>((resolve) => server.listen(join(dir.path, 'socket'), resolve))
    const { bytes, entries, over } = await workspaceSize(dir.path, LIMITS)
    server.close()
    expect(entries).toBe(7)
    expect(bytes).toBeLessThan(MIB)
    expect(over).toBeUndefined()
  })

  test('devices are not opened', async () => {
    expect(await workspaceSize('/dev', LIMITS)).toMatchObject({ entries: expect.any(Number) })
  })

  test('a file with two names counts once, and a sparse one what it takes', async () => {
    using dir = tempDir()
    writeFileSync(join(dir.path, 'one'), Buffer.alloc(MIB, 1))
    const { bytes } = await workspaceSize(dir.path, LIMITS)
    linkSync(join(dir.path, 'one'), join(dir.path, 'two'))
    writeFileSync(join(dir.path, 'sparse'), '')
    truncateSync(join(dir.path, 'sparse'), 2 ** 40)
    expect(await workspaceSize(dir.path, LIMITS)).toEqual({ bytes, entries: 3 })
  })

  test('a directory that is too deep, or closed to us, is over', async () => {
    using dir = tempDir()
    mkdirSync(join(dir.path, Array(140).fill('d').join('/')), { recursive: true })
    expect(await workspaceSize(dir.path, LIMITS)).toMatchObject({ over: 'depth', entries: 129 })
    using other = tempDir()
    mkdirSync(join(other.path, 'closed'))
    chmodSync(join(other.path, 'closed'), 0)
    const root = process.geteuid?.() === 0
    const found = await workspaceSize(other.path, LIMITS)
    chmodSync(join(other.path, 'closed'), 0o700)
    expect(found.over).toBe(root ? undefined : 'entries')
  })

  test('W-66 what no path reaches is over, and not nothing', async () => {
    using dir = tempDir()
    // 17 names of 240 characters: longer than any path may be, and no deeper than many a tree.
    const nest =
      'n=$(printf %0240d 0); i=0; while [ $i -lt 17 ]; do mkdir $n && cd -P $n || exit 1; i=$((i+1)); done'
    execFileSync('sh', ['-c', `${nest}; head -c 1000000 /dev/zero > $n`], { cwd: dir.path })
    const found = await workspaceSize(dir.path, LIMITS)
    // Node 22 cannot.
    execFileSync('rm', ['-rf', '0'.repeat(240)], { cwd: dir.path })
    expect(found).toMatchObject({ over: 'depth' })
  })

  test('W-66 a directory that may be listed and not searched is over', async () => {
    using dir = tempDir()
    mkdirSync(join(dir.path, 'half'))
    writeFileSync(join(dir.path, 'half/file'), Buffer.alloc(MIB, 1))
    chmodSync(join(dir.path, 'half'), 0o400)
    const root = process.geteuid?.() === 0
    const found = await workspaceSize(dir.path, LIMITS)
    chmodSync(join(dir.path, 'half'), 0o700)
    expect(found.over).toBe(root ? undefined : 'entries')
  })

  test('a link or a file in place of the workspace, bad limits and an abort are refused', async () => {
    using dir = tempDir()
    symlinkSync(dir.path, join(dir.path, 'link'))
    writeFileSync(join(dir.path, 'file'), '')
    for (const name of ['link', 'file', 'nothing']) {
      await expect(workspaceSize(join(dir.path, name), LIMITS)).rejects.toMatchObject({
        code: 'spec_invalid',
      })
    }
    for (const limits of [{ limitBytes: -1 }, { limitBytes: Number.NaN }, { ...LIMITS, limitEntries: 1.5 }]) {
      await expect(workspaceSize(dir.path, limits)).rejects.toMatchObject({ code: 'options_invalid' })
    }
    const signal = AbortSignal.abort('enough')
    await expect(workspaceSize(dir.path, { ...LIMITS, signal })).rejects.toMatchObject({ code: 'aborted' })
  })
})
