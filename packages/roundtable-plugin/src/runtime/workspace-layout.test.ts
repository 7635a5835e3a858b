import { execFileSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import {
  existsSync,
  lstatSync,
  mkdirSync,
  readFileSync,
  rmdirSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { account, ownDir, ownRoots, userOptions } from '../../test/account.ts'
import { openWorkspaceLayout, type PreparedWorker } from './workspace-layout.ts'

const open = (roots: { runRoot: string; workspaceRoot: string }) =>
  openWorkspaceLayout({ runRoot: roots.runRoot, workspaceRoot: roots.workspaceRoot, user: userOptions })

test('RL-07 RL-10 a worker gets a fresh run directory and its channel’s workspace', async () => {
  using roots = ownRoots()
  const layout = open(roots)
  const a = await layout.prepare('discord:../../etc')
  const hash = createHash('sha256').update('discord:../../etc').digest('hex')
  expect(a.channelHash).toBe(hash)
  expect(a.workspaceDir).toBe(join(roots.workspaceRoot, hash))
  for (const path of [a.runDir, a.workspaceDir]) {
    expect([lstatSync(path).mode & 0o777, lstatSync(path).uid]).toEqual([0o700, account.uid])
  }
  writeFileSync(join(a.workspaceDir, 'kept'), '')
  const b = await layout.prepare('discord:../../etc')
  expect(b.runDir).not.toBe(a.runDir)
  await a.dispose()
  await a.dispose()
  expect(existsSync(a.runDir)).toBe(false)
  expect(existsSync(join(b.workspaceDir, 'kept'))).toBe(true)
  await b.dispose()
  layout.close()
})

test('[worker:workspace-of-channel] KH-01 RL-07 keys that look alike have workspaces of their own', async () => {
  using roots = ownRoots()
  const layout = open(roots)
  const keys = ['a:b', 'a:B', 'a:_b', 'a:b_', 'a:b/', 'a:b/.', 'a_:b'] as const
  const workspaces = await Promise.all(keys.map(async (key) => (await layout.prepare(key)).workspaceDir))
  expect(new Set(workspaces).size).toBe(keys.length)
  layout.close()
})

test('RL-04 the roots must be two, neither inside the other', () => {
  using dir = ownDir()
  const root = join(dir.path, 'r')
  for (const other of [root, join(root, 'w')]) {
    expect(() => open({ runRoot: root, workspaceRoot: other })).toThrow(/neither inside the other/)
    expect(() => open({ runRoot: other, workspaceRoot: root })).toThrow(/neither inside the other/)
  }
})

test('RL-06 W-68 T67 the socket path is counted in bytes, before anything starts', async () => {
  using dir = ownDir()
  const room = 77 - Buffer.byteLength(`${dir.path}/`)
  const fits = open({ runRoot: join(dir.path, 'x'.repeat(room)), workspaceRoot: join(dir.path, 'w') })
  const { socketPath } = await fits.prepare('a:1')
  expect(Buffer.byteLength(socketPath)).toBe(107)
  fits.close()
  const tooLong = join(dir.path, 'x'.repeat(room + 1))
  expect(() => open({ runRoot: tooLong, workspaceRoot: join(dir.path, 'w') })).toThrow(
    /is 1 bytes too long.*108 bytes, and the system allows 107/,
  )
  // 30 characters and fewer UTF-16 units than the limit, but three bytes each.
  const wide = join(dir.path, '語'.repeat(30))
  expect(() => open({ runRoot: wide, workspaceRoot: join(dir.path, 'w') })).toThrow(/bytes too long/)
})

test('decision 20: the install id stays, and belongs to the path', () => {
  using roots = ownRoots()
  const first = open(roots)
  first.close()
  const second = open(roots)
  second.close()
  expect(second.installId).toBe(first.installId)
  expect(second.installId).toMatch(/^[0-9a-f]{32}$/)
  expect(second.epoch).not.toBe(first.epoch)
  const file = join(roots.runRoot, 'install-id')
  expect(lstatSync(file).mode & 0o777).toBe(0o600)
  const copy = join(roots.runRoot, '..', 'copy')
  const third = open({ ...roots, runRoot: copy })
  third.close()
  writeFileSync(join(copy, 'install-id'), readFileSync(file))
  const fourth = open({ ...roots, runRoot: copy })
  fourth.close()
  expect(fourth.installId).not.toBe(first.installId)
})

test('decision 20: one host per run root, and per workspace root', () => {
  using roots = ownRoots()
  const layout = open(roots)
  expect(() => open(roots)).toThrow(/run root \S+ is used by another host \(process \d+\)/)
  const other = { ...roots, runRoot: `${roots.runRoot}2` }
  expect(() => open(other)).toThrow(/workspace root \S+ is used by another host \(process \d+\)/)
  layout.close()
  layout.close()
  // Neither refusal holds anything.
  open(other).close()
  open(roots).close()
})

test('a sweep removes run directories that nobody uses, and nothing else', async () => {
  using roots = ownRoots()
  const dead = open(roots)
  const left = await dead.prepare('a:1')
  dead.close()
  const layout = open(roots)
  const used = await layout.prepare('a:1')
  mkdirSync(join(roots.runRoot, 'process'))
  const swept = await layout.sweep()
  expect(swept.map((name) => join(roots.runRoot, name))).toEqual([left.runDir])
  expect([existsSync(left.runDir), existsSync(used.runDir)]).toEqual([false, true])
  expect(existsSync(join(roots.runRoot, 'process'))).toBe(true)
  expect(existsSync(left.workspaceDir)).toBe(true)
  layout.close()
})

test('RL-10 a run directory that is being removed is nothing that an earlier turn left', async () => {
  using roots = ownRoots()
  const layout = open(roots)
  const { dispose, runDir } = await layout.prepare('a:1')
  const [, swept] = await Promise.all([dispose(), layout.sweep()])
  expect([swept, existsSync(runDir)]).toEqual([[], false])
  layout.close()
})

test('RL-09 two workers are prepared at once in a channel that is new', async () => {
  using roots = ownRoots()
  const layout = open(roots)
  const [one, other] = await Promise.all([layout.prepare('a:1'), layout.prepare('a:1')])
  expect([one.workspaceDir, one.runDir === other.runDir]).toEqual([other.workspaceDir, false])
  layout.close()
})

test('RL-10 what a plain process put into its run directory, or in the place of it, keeps neither a turn nor a host', async () => {
  using roots = ownRoots()
  const elsewhere = join(roots.free, 'elsewhere')
  mkdirSync(elsewhere)
  const dead = open(roots)
  for (const end of ['dispose', 'sweep'] as const) {
    const [filled, linked, file] = await Promise.all([1, 2, 3].map(() => dead.prepare('a:1')))
    const nest =
      'mkdir -p closed/inner && chmod 0 closed && n=$(printf %0240d 0); i=0; while [ $i -lt 40 ]; do mkdir $n && cd -P $n || exit 1; i=$((i+1)); done'
    execFileSync('sh', ['-c', nest], { cwd: filled?.runDir })
    for (const { runDir } of [linked, file] as PreparedWorker[]) rmdirSync(runDir)
    symlinkSync(elsewhere, linked?.runDir ?? '')
    writeFileSync(file?.runDir ?? '', '')
    const all = [filled, linked, file] as PreparedWorker[]
    if (end === 'dispose') for (const one of all) await one.dispose()
    else {
      dead.close()
      const layout = open(roots)
      expect(await layout.sweep()).toHaveLength(3)
      layout.close()
    }
    expect(all.map(({ runDir }) => lstatSync(runDir, { throwIfNoEntry: false }))).toEqual([
      undefined,
      undefined,
      undefined,
    ])
  }
  expect(existsSync(elsewhere)).toBe(true)
})

test('a workspace that is no directory of ours is refused', async () => {
  using roots = ownRoots()
  const layout = open(roots)
  const { workspaceDir } = await layout.prepare('a:1')
  rmdirSync(workspaceDir)
  symlinkSync('/etc', workspaceDir)
  await expect(layout.prepare('a:1')).rejects.toThrow(/workspace .* Move it away/)
  layout.close()
})
